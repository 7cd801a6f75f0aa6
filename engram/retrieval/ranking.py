"""What a recall asks, and the ranking that answers it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.retrieval.blending import DEFAULT, Blending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.models import Certificate
    from engram.storage import EpisodeFilter

    Ranked = tuple[NDArray[np.int64], NDArray[np.float64]]
    """Keys, best first, and what they are ranked by."""

    Chunks = tuple[NDArray[np.float32], NDArray[np.int64]]
    """Vectors of chunks, and the key of what each is of."""

MAX_K: Final = 4096
"""The largest `k`, and the largest pool of candidates a side contributes."""

POOL: Final = 64
"""Candidates each side contributes at least, so that an answer of up to 64 results is the beginning
of a longer one."""

_POOL_PER_RESULT: Final = 4

DIVERSITY_POOL: Final = 64
"""Candidates that change places for being unlike each other, however many results are asked for:
up to there an answer is the beginning of a longer one."""


@dataclass(frozen=True, slots=True)
class Query:
    """A recall with its arguments checked.

    Attributes:
        text: What was asked.
        vector: float32[dim], unit length, rounded as stored vectors are; empty where the store has
            none.
        k: How many results at most.
        mode: One of `MODES`.
        accuracy: One of `engram.index.ACCURACIES`.
        allowed: Which episodes may be returned.
        now: When it is asked, or the time it is asked about, in microseconds.
        blending: How a hybrid recall ranks its candidates.
        vector_weight: Share of the vector side, against `text_weight`.
        text_weight: Share of the keyword side.
        pool: Candidates each side contributes, at least `k`; None: see `Query.candidates`.
        min_score: Results below it are left out.
        depth: Hops of spreading activation.
        decay: The share of activation that survives a hop.
    """

    text: str
    vector: NDArray[np.float32]
    k: int
    mode: str
    accuracy: str
    allowed: EpisodeFilter
    now: int
    blending: Blending = DEFAULT
    vector_weight: float = 0.5
    text_weight: float = 0.5
    pool: int | None = None
    min_score: float | None = None
    depth: int = 2
    decay: float = 0.5

    @property
    def candidates(self) -> int:
        """How many candidates each side of a hybrid recall contributes at most.

        Unless it is said, `POOL`, or `k` where that is more: neither the number of results nor what
        is done with the ranking changes the scores. By "min_max" four for each result. Where words
        have no weight and nothing is left out by its confidence it is what mode "cosine" would look
        for, so that both find the same.
        """
        if self.blending.method == "min_max":
            pool = _POOL_PER_RESULT * self.k
        elif self.text_share == 0.0 and self.min_score is None:
            pool = self.width
        else:
            pool = POOL
        return max(min(self.pool or pool, MAX_K), self.k)

    @property
    def width(self) -> int:
        """How many candidates a hybrid recall ranks, of which `chosen` chooses the results."""
        read = self.blending.rerank_top if self.blending.rerank else 0
        return max(self.k, read, self.unlike)

    @property
    def unlike(self) -> int:
        """How many of the first candidates change places for being unlike each other."""
        if not self.blending.diversity:
            return 0
        # What a reranker reads may be among the first only then.
        return max(DIVERSITY_POOL, self.blending.rerank_top if self.blending.rerank else 0)

    @property
    def text_share(self) -> float:
        """What words count against all there is, 0 to 1."""
        # Divided first: the sum of two large weights is no number.
        largest = max(self.vector_weight, self.text_weight)
        meaning, words = self.vector_weight / largest, self.text_weight / largest
        return words / (meaning + words)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Keys, best first, with what is known of each in step; see `FACT` for those of facts.

    Attributes:
        keys: int64[n].
        scores: float64[n], 0 to 1.
        distances: float64[n], of the unit vectors; infinite without one.
        certificate: How the nearest ones were found.
        confidences: float64[n], 0 to 1; None where words were not looked at.
        calibrated: Whether it is the confidence that a floor is for, and not the score; what is
            below one is left out then.
        vectors: Of the first m, float32[m, dim], unit length, the chunk that is nearest to the
            query, zeros where there is none; None unless the choice of results needs them.
    """

    keys: NDArray[np.int64]
    scores: NDArray[np.float64]
    distances: NDArray[np.float64]
    certificate: Certificate | None
    confidences: NDArray[np.float64] | None = None
    calibrated: bool = False
    vectors: NDArray[np.float32] | None = None

    def taken(
        self, places: NDArray[np.int64], scores: NDArray[np.float64] | None = None
    ) -> Ranking:
        """Return some of it in another order.

        Args:
            places: Of these, int64[m], the first ones.
            scores: float64[m], in the place of theirs.
        """
        sure = self.confidences
        return replace(
            self,
            keys=self.keys[places],
            scores=self.scores[places] if scores is None else scores,
            distances=self.distances[places],
            confidences=None if sure is None else sure[places],
        )

    def passed(self, floor: float | None) -> NDArray[np.int64]:
        """Return the places of what is not below a floor, int64[m], ascending."""
        if floor is None or self.calibrated:
            return np.arange(len(self.keys))
        return np.flatnonzero(self.scores >= floor)

    def sure(self) -> list[float | None]:
        """Return the confidence of each, None where it is not known."""
        if self.confidences is None:
            return [None] * len(self.keys)
        confidences: list[float | None] = self.confidences.tolist()
        return confidences
