"""Weighted reciprocal-rank fusion: one ranking of what two rankings put forward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engram import arguments
from engram.config.experience import (
    OTHER_PROJECT_WEIGHT,
    RRF_K,
    SPARSE_WEIGHT,
    VECTOR_WEIGHT,
)
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DEEP: Final = 100
_DEEP_PER_RESULT: Final = 4
_CUTS: Final = (3, 5, 10, 20)
_LARGEST: Final = 1e6


@dataclass(frozen=True, slots=True)
class Fusion:
    """What a place in each ranking is worth.

    A memory scores `vector_weight / (rrf_k + rank)` for its rank by meaning, counted from 1, and
    `sparse_weight / (rrf_k + rank)` for its rank by words. A ranking that lacks it adds nothing,
    nor does one in which its rank is beyond `depth`: there it is as if it were not ranked at all.

    Attributes:
        rrf_k: How slowly a rank loses value; above 0, up to a million.
        vector_weight: The weight of meaning, 0 to a million.
        sparse_weight: The weight of words, likewise.
        other_project_weight: What the scores of other projects' memories are multiplied by where a
            project is asked for, 0 to 1; with 0 they are left out.
    """

    rrf_k: float = RRF_K
    vector_weight: float = VECTOR_WEIGHT
    sparse_weight: float = SPARSE_WEIGHT
    other_project_weight: float = OTHER_PROJECT_WEIGHT

    def __post_init__(self) -> None:
        """Refuse what gives no ranking.

        Raises:
            InvalidArgument, InvalidType: A value is no finite number or out of its range, or both
                weights are 0.
        """
        if arguments.number(self.rrf_k, "rrf_k", 0.0, _LARGEST) == 0.0:
            message = "rrf_k must be greater than 0"
            raise InvalidArgument(message)
        meaning = arguments.number(self.vector_weight, "vector_weight", 0.0, _LARGEST)
        words = arguments.number(self.sparse_weight, "sparse_weight", 0.0, _LARGEST)
        if meaning == words == 0.0:
            message = "vector_weight and sparse_weight must not both be 0"
            raise InvalidArgument(message)
        arguments.number(self.other_project_weight, "other_project_weight", 0.0, 1.0)

    def depth(self, limit: int, least_weight: float) -> int | None:
        """Return how long both rankings must be for an answer of `limit` memories.

        What neither of two rankings of this length has cannot be in the answer, even if all that
        they have is weighted least. It is 100 for every limit that
        needs no more, so that scores do not depend on those.

        Args:
            limit: How many are returned.
            least_weight: What scores are multiplied by at least, above 0.

        Returns:
            A length; None where only all of both will do.
        """
        heavier = max(self.vector_weight, self.sparse_weight)
        both = self.vector_weight + self.sparse_weight
        needed = (both / heavier) * (self.rrf_k + limit) / least_weight - self.rrf_k
        if not math.isfinite(needed):
            return None
        return max(_DEEP, _DEEP_PER_RESULT * limit, math.ceil(needed))

    def scores(self, by_meaning: Iterable[int], by_words: Iterable[int]) -> dict[int, float]:
        """Return the score of every key in either of two rankings, each best first."""
        found: dict[int, float] = {}
        for weight, ranking in (
            (self.vector_weight, by_meaning),
            (self.sparse_weight, by_words),
        ):
            for rank, key in enumerate(ranking, 1):
                found[key] = found.get(key, 0.0) + weight / (self.rrf_k + rank)
        return found


def shadow_rewards(scores: Sequence[float]) -> list[dict[str, float]]:
    """Return what shorter answers would have held of an answer's scores.

    Args:
        scores: The scores of what was returned, best first.

    Returns:
        `k` and `reward`, the share of the first `k` in the sum of all, for some `k`; nothing where
        nothing was returned, or all of it scored 0.
    """
    total = math.fsum(scores)
    if not total:
        return []
    return [{"k": k, "reward": min(math.fsum(scores[:k]) / total, 1.0)} for k in _CUTS]
