"""What a search asks for, and the two rankings of memories that answer it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from engram.experience.models import LEAST_TO_MOST
from engram.index import nearest
from engram.storage import INSIGHT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from engram.index import EpisodeIndex
    from engram.retrieval.fusion import Fusion
    from engram.storage import EpisodeFilter, Outline, Store

    Match = Callable[[str, EpisodeFilter, int], tuple[NDArray[np.int64], NDArray[np.float64]]]
    """Returns what of a filter's episodes matches a query best, at most so many."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A search with its arguments checked; any of the filters may let a memory through."""

    text: str
    limit: int
    mode: str
    project: str | None
    fusion: Fusion
    filters: tuple[EpisodeFilter, ...]
    trained: bool

    def weight(self, outline: Outline) -> float:
        """What the score of a memory is multiplied by."""
        full = self.project in (None, outline.project) or outline.memory_type == INSIGHT
        return 1.0 if full else self.fusion.other_project_weight

    def depth(self, most: int) -> int:
        """How long the rankings must be, given how long they can be."""
        least = 1.0 if self.project is None else self.fusion.other_project_weight
        # With 0 the filters leave only what counts in full.
        least = (least or 1.0) * (LEAST_TO_MOST if self.trained else 1.0)
        needed = self.fusion.depth(self.limit, least)
        return most if needed is None else min(needed, most)

    def eligible(self, ranked: list[tuple[float, Outline]]) -> list[tuple[float, Outline]]:
        """Return what of a ranking may be in the answer, best first."""
        if not self.trained or not 0 < self.limit < len(ranked):
            return ranked[: self.limit]
        needed = ranked[self.limit - 1][0] * LEAST_TO_MOST
        return [scored for scored in ranked if scored[0] >= needed]


def rankings(
    store: Store, index: EpisodeIndex | None, vector: NDArray[np.float32] | None, asked: Asked
) -> tuple[list[int], list[int]]:
    """Return the keys of what answers a query by meaning and by words, best first."""
    depth = asked.depth(sys.maxsize if index is None else max(index.documents, 1))
    by_meaning: list[int] = []
    if index is not None and vector is not None:
        near = [nearest(index, vector, depth, one, "high") for one in asked.filters]
        by_meaning = _best([(one.episodes, one.distances) for one in near], depth)
    by_word = store.text.search if index is None else index.match
    by_words = _matches(partial(by_word, every_word=True), asked, depth)
    if len(by_words) < depth:
        match = store.text.search_beginnings if index is None else index.match_beginnings
        by_words = list(dict.fromkeys([*by_words, *_matches(match, asked, depth)]))[:depth]
    return by_meaning, by_words


def _matches(match: Match, asked: Asked, depth: int) -> list[int]:
    found = [match(asked.text, one, depth) for one in asked.filters]
    return _best([(keys, -scores) for keys, scores in found], depth)


def _best(rankings: list[tuple[NDArray[np.int64], NDArray[np.float64]]], most: int) -> list[int]:
    """Return the keys of rankings as one, the lowest cost first, ties in insertion order."""
    keys = np.concatenate([keys for keys, _ in rankings])
    order = np.lexsort((keys, np.concatenate([costs for _, costs in rankings])))
    return list(dict.fromkeys(keys[order].tolist()))[:most]
