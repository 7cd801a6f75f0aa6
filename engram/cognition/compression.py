"""Compression: summaries take the place of what has faded.

The model is asked outside every transaction. A summary is written and its sources erased in one, or
neither: a source that was forgotten or hidden meanwhile may be quoted in the summary, which is then
dropped.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from engram.provenance import least_trusted
from engram.storage import NewEpisode
from engram.times import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from engram.models import Episode
    from engram.storage import Store


def batches(
    store: Store, agent: str | None, importance: float, size: int
) -> Iterator[tuple[NDArray[np.int64], list[Episode]]]:
    """Yield keys and episodes of what has faded, oldest first, never two agents' in one batch.

    Args:
        store: The store.
        agent: Whose episodes; None is everyone's.
        importance: Only episodes below it, as of the last decay; summaries are left out.
        size: Episodes per batch.
    """
    with store.reading():
        faded = store.strength.below(importance, agent)
    for _, owned in groupby(faded, key=lambda pair: pair[0]):
        keys = np.array([key for _, key in owned], dtype=np.int64)
        for at in range(0, len(keys), size):
            batch = keys[at : at + size]
            with store.reading():
                episodes = store.episodes.fetch(batch) if _available(store, batch) else []
            # One that is gone or hidden by now: the next compression takes the rest.
            if episodes:
                yield batch, episodes


def summary(text: str, sources: Sequence[Episode]) -> NewEpisode:
    """Return the episode that stands for others.

    As late, as salient, as little trusted and as quarantined as any of them, with everybody who
    took part in one, so that erasing a person finds it.
    """
    return NewEpisode(
        content=text,
        occurred_at=max(to_micros(source.timestamp) for source in sources),
        actors=tuple(dict.fromkeys(actor for source in sources for actor in source.actors)),
        tags=("summary",),
        salience=max(source.salience for source in sources),
        provenance=least_trusted(source.provenance for source in sources),
        quarantined=any(source.quarantined for source in sources),
        summary_of=tuple(source.id for source in sources),
    )


def erase(store: Store, keys: NDArray[np.int64], now: int) -> bool:
    """Erase the sources of a summary, inside its transaction.

    Returns:
        Whether all were still there and to be found; if not, nothing is erased.
    """
    if not _available(store, keys):
        return False
    store.remove_episodes(keys.tolist(), now)
    return True


def _available(store: Store, keys: NDArray[np.int64]) -> bool:
    return len(store.strength.ids(keys)) == len(keys)
