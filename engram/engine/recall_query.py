"""What a recall asks, checked before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram import arguments
from engram.errors import InvalidArgument
from engram.index import ACCURACIES
from engram.retrieval import MAX_K, MODES, Blending, Query

if TYPE_CHECKING:
    from engram.storage import EpisodeFilter

_DEPTH_MAX: Final = 100
_NO_VECTOR: Final = np.empty(0, dtype=np.float32)


def recall_query(
    query: str,
    k: int,
    allowed: EpisodeFilter,
    *,
    mode: str,
    accuracy: str,
    depth: int,
    decay: float,
    vector_weight: float,
    fts_weight: float,
    candidate_limit: int | None,
    min_score: float | None,
    blending: str | Blending,
    now: int,
) -> Query:
    """Return a recall's arguments, checked, without its vector; see `EpisodeMemory.recall`.

    Raises:
        InvalidArgument, InvalidType: One of them is refused.
    """
    text = arguments.query(query)
    count = arguments.integer(k, "k", 1, MAX_K)
    for name, value, known in (("mode", mode, MODES), ("accuracy", accuracy, ACCURACIES)):
        if value not in known:
            message = f"{name} must be one of {', '.join(known)}"
            raise InvalidArgument(message)
    meaning, words = _weights(vector_weight, fts_weight)
    pool, floor = candidate_limit, min_score
    return Query(
        text=text,
        vector=_NO_VECTOR,
        k=count,
        mode=mode,
        accuracy=accuracy,
        allowed=allowed,
        now=now,
        blending=Blending.of(blending),
        vector_weight=meaning,
        text_weight=words,
        pool=None if pool is None else arguments.integer(pool, "candidate_limit", 1, 2**31),
        min_score=None if floor is None else arguments.number(floor, "min_score"),
        depth=arguments.integer(depth, "depth", 0, _DEPTH_MAX),
        decay=arguments.number(decay, "decay", 0.0, 1.0),
    )


def _weights(vector_weight: float, text_weight: float) -> tuple[float, float]:
    meaning = arguments.number(vector_weight, "vector_weight", 0.0)
    words = arguments.number(text_weight, "fts_weight", 0.0)
    if meaning == words == 0.0:
        message = "vector_weight and fts_weight must not both be 0"
        raise InvalidArgument(message)
    return meaning, words
