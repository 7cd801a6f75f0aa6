"""Decay and pruning over a whole store, in slices: no lock is held for long at any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram import _native
from engram.storage import EpisodeFilter
from engram.storage.strength import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from engram.cognition.decay import DecayConfig
    from engram.storage import Store
    from engram.storage.strength import Accesses, Traces

SLICE = 8_192
"""Episodes judged and rewritten in one transaction: about 15 ms, most of it to read them."""
JUDGED_AT_ONCE = 2_000
"""Episodes read, to find those below a threshold, in one transaction."""
DELETED_AT_ONCE = 50
"""Episodes erased in one transaction: about 20 ms."""
RECALLS_KEPT = 10_000
"""Recalls that stay in the access log one by one; older ones become counts."""
FOLDED_AT_ONCE = 500
"""Recalls folded in one transaction."""


def decay(
    store: Store,
    agent: str | None,
    now: int,
    config: DecayConfig,
    traces: Iterator[Traces] | None = None,
) -> int:
    """Recompute the importance of an agent's episodes and return how many there were.

    Args:
        store: The store.
        agent: Whose episodes, and whose accesses count; None is everyone's.
        now: The time to judge at, in microseconds.
        config: The weights.
        traces: The columns of the agent's episodes, for who has them at hand: parts of at most
            `SLICE`, ascending, each episode once. Every step is asked for inside the transaction
            that writes what comes of it, and must hold what is there then. None reads the store.
    """
    store.flush()
    more = True
    while more:
        with store.writing():
            more = store.strength.fold(RECALLS_KEPT, FOLDED_AT_ONCE)
    parts = store.strength.traces(agent, SLICE) if traces is None else traces
    done = 0
    while True:
        with store.writing():
            part = next(parts, None)
            if part is None:
                return done
            accesses = store.strength.accesses(part.episodes, agent)
            since = np.where(accesses.latest == NEVER, part.happened, accesses.latest)
            importance = _importance(part, accesses, since, now, config)
            store.strength.importance.set(part.episodes, importance)
        done += len(part.episodes)


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

    Every episode is judged again in the transaction that erases it: one that was recalled or
    hidden meanwhile stays, one that is gone does not count.
    """
    for keys, _ in faded(store, agent, now, config, threshold):
        for at in range(0, len(keys), DELETED_AT_ONCE):
            with store.writing():
                some = keys[at : at + DELETED_AT_ONCE]
                doomed = _below(store, some, agent, now, config, threshold)
                ids = store.remove_episodes(doomed.tolist(), now)
            yield ids


def _slices(store: Store, agent: str | None) -> Iterator[NDArray[np.int64]]:
    with store.reading():
        keys = store.episodes.matching(EpisodeFilter(agent=agent))
    for at in range(0, len(keys), JUDGED_AT_ONCE):
        yield keys[at : at + JUDGED_AT_ONCE]


def _below(
    store: Store,
    keys: NDArray[np.int64],
    agent: str | None,
    now: int,
    config: DecayConfig,
    threshold: float,
) -> NDArray[np.int64]:
    traces, written = store.strength.known(keys)
    accesses = store.strength.accesses(traces.episodes, agent)
    since = np.maximum(np.maximum(traces.happened, written), accesses.latest)
    return traces.episodes[_importance(traces, accesses, since, now, config) < threshold]


def _importance(
    traces: Traces,
    accesses: Accesses,
    since: NDArray[np.int64],
    now: int,
    config: DecayConfig,
) -> NDArray[np.float64]:
    return _native.decay(
        traces.salience,
        traces.valence,
        accesses.counts,
        since,
        now,
        config.lambda_,
        config.alpha,
        config.beta,
    )
