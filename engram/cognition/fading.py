"""Decay and pruning over a whole store, in slices: no lock is held for long at any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram import _native
from engram.storage import EpisodeFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from engram.cognition.decay import DecayConfig
    from engram.storage import Store
    from engram.storage.strength import Traces

SLICE = 2_000
"""Episodes read, judged and rewritten in one transaction: about 20 ms."""
DELETED_AT_ONCE = 50
"""Episodes erased in one transaction: about 20 ms."""
RECALLS_KEPT = 10_000
"""Recalls that stay in the access log one by one; older ones become counts."""
FOLDED_AT_ONCE = 500
"""Recalls folded in one transaction."""


def decay(store: Store, agent: str | None, now: int, config: DecayConfig) -> int:
    """Recompute the importance of an agent's episodes and return how many there were.

    Args:
        store: The store.
        agent: Whose episodes, and whose accesses count; None is everyone's.
        now: The time to judge at, in microseconds.
        config: The weights.
    """
    store.flush()
    more = True
    while more:
        with store.writing():
            more = store.strength.fold(RECALLS_KEPT, FOLDED_AT_ONCE)
    done = 0
    for keys in _slices(store, agent):
        with store.writing():
            traces = store.strength.traces(keys, agent)
            importance = _importance(traces, traces.accessed, now, config)
            changed = importance != traces.importance
            store.strength.set_importance(traces.episodes[changed], importance[changed])
        done += len(traces.episodes)
    return done


def faded(
    store: Store, agent: str | None, now: int, config: DecayConfig, threshold: float
) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
    """Yield keys and ids of an agent's episodes below a threshold, slice by slice.

    Age counts from the latest of event, writing and last recall: history that is written down
    today is as young as today.
    """
    store.flush()
    for keys in _slices(store, agent):
        with store.reading():
            below = _below(store, keys, agent, now, config, threshold)
            ids = store.strength.ids(below)
        if ids:
            yield below, ids


def prune(
    store: Store, agent: str | None, now: int, config: DecayConfig, threshold: float
) -> Iterator[list[str]]:
    """Erase what `faded` yields and yield the ids of each transaction once it is committed.

    Every episode is judged again in the transaction that erases it: one that was recalled
    meanwhile stays, one that is gone does not count.
    """
    for keys, _ in faded(store, agent, now, config, threshold):
        for at in range(0, len(keys), DELETED_AT_ONCE):
            with store.writing():
                some = keys[at : at + DELETED_AT_ONCE]
                doomed = _below(store, some, agent, now, config, threshold)
                ids = store.strength.ids(doomed)
                store.remove_episodes(doomed.tolist(), now)
            yield ids


def _slices(store: Store, agent: str | None) -> Iterator[NDArray[np.int64]]:
    with store.reading():
        keys = store.episodes.matching(EpisodeFilter(agent=agent))
    for at in range(0, len(keys), SLICE):
        yield keys[at : at + SLICE]


def _below(
    store: Store,
    keys: NDArray[np.int64],
    agent: str | None,
    now: int,
    config: DecayConfig,
    threshold: float,
) -> NDArray[np.int64]:
    traces = store.strength.traces(keys, agent)
    return traces.episodes[_importance(traces, traces.known, now, config) < threshold]


def _importance(
    traces: Traces, since: NDArray[np.int64], now: int, config: DecayConfig
) -> NDArray[np.float64]:
    return _native.decay(
        traces.salience,
        traces.valence,
        traces.accesses,
        since,
        now,
        config.lambda_,
        config.alpha,
        config.beta,
    )
