"""Finding the experience that means what a new one means."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index import nearest
from engram.retrieval.recall import refreshed
from engram.storage import EpisodeFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from engram.index import EpisodeIndex
    from engram.storage import NewExperience, Store

_FIRST: Final = 16
_GROWTH: Final = 8
_MOST: Final = 1024
"""Neighbours of a part that are looked at: at first, so many times as many, and at most."""
_SLACK: Final = 1e-5
"""By how much the distance of a neighbour may be off."""


def alike(
    store: Store,
    index: EpisodeIndex,
    new: NewExperience,
    vectors: NDArray[np.float32],
    fields: NDArray[np.int64],
    agent: str | None,
    threshold: float,
) -> int | None:
    """Return the key of the experience that means the same, in a write transaction.

    All parts must have a cosine above the threshold. Of a part in several chunks the lowest counts,
    chunk by chunk; one of another number of chunks means something else, and so does a part that
    is blank on one side. Of several the one whose lowest cosine is highest is taken, then the
    oldest.

    Args:
        store: The store.
        index: Its index.
        new: The new experience.
        vectors: float32[m, dim], the chunks of its parts, rounded as stored vectors are.
        fields: int64[m], the part that each chunk is of.
        agent: Whose it is.
        threshold: The cosine that all parts must exceed, 0 to 1.
    """
    if not any(part.strip() for part in new.parts):
        return None
    search = partial(_near, index, vectors, fields, _filter(new, agent), threshold)
    near = refreshed(index, search)
    ranked = sorted(_above(store, index, near, vectors, fields, threshold))
    fit = store.duplicates.comparable([key for _, key in ranked], new, agent)
    return next((key for _, key in ranked if key in fit), None)


def _filter(new: NewExperience, agent: str | None) -> EpisodeFilter:
    return EpisodeFilter(
        agent=agent,
        exclude_quarantined=True,
        memory_types=(new.memory_type,),
        project=new.project,
    )


def _near(
    index: EpisodeIndex,
    vectors: NDArray[np.float32],
    fields: NDArray[np.int64],
    allowed: EpisodeFilter,
    threshold: float,
) -> NDArray[np.int64]:
    """Return the keys of episodes, ascending, among which are all that can be alike.

    Whatever is alike has a chunk that near to the first chunk of each part, so one part with few
    such neighbours decides. Where thousands share every part, the nearest of each are returned.
    """
    reach = math.sqrt(2.0 * (1.0 - threshold)) + _SLACK
    starts = np.flatnonzero(np.diff(fields, prepend=-1))
    k = _FIRST
    while True:
        found = []
        for start in starts.tolist():
            neighbours = nearest(index, vectors[start], k, allowed, "high")
            within = neighbours.episodes[neighbours.distances <= reach]
            if len(within) < k:
                return np.sort(within)
            found.append(within)
        if k >= _MOST:
            return np.unique(np.concatenate(found))
        k *= _GROWTH


def _above(
    store: Store,
    index: EpisodeIndex,
    keys: NDArray[np.int64],
    vectors: NDArray[np.float32],
    fields: NDArray[np.int64],
    threshold: float,
) -> Iterator[tuple[float, int]]:
    """Yield those episodes all of whose parts are alike: the lowest cosine, negative, and the key.

    What comes first is the best.
    """
    episodes, parts, stored = store.embeddings.fields(keys, index.model)
    firsts = np.searchsorted(episodes, keys).tolist()
    ends = np.searchsorted(episodes, keys, side="right").tolist()
    for key, first, end in zip(keys.tolist(), firsts, ends, strict=True):
        if not np.array_equal(parts[first:end], fields):
            continue
        cosines = np.einsum("ij,ij->i", stored[first:end], vectors, dtype=np.float64)
        lowest = min(float(cosines.min()), 1.0)
        if lowest > threshold:
            yield -lowest, key
