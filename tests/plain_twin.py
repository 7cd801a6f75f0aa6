"""A memory in plain Python: what `Engram` must answer, computed the slow and obvious way."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pytest
from stand_ins import WordEmbedder

from engram import SearchResult


@dataclass(frozen=True)
class Row:
    id: str
    content: str
    agent: str | None
    at: datetime
    tags: tuple[str, ...]
    actors: tuple[str, ...]
    provenance: str
    quarantined: bool


def stored(vector: np.ndarray) -> np.ndarray:
    """A vector after its way through float16."""
    rounded = vector.astype(np.float32).astype(np.float16).astype(np.float32)
    return (rounded / np.linalg.norm(rounded)).astype(np.float32)


class PlainMemory:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._embedder = WordEmbedder()

    def matching(
        self,
        agent: str | None = None,
        *,
        tags: tuple[str, ...] = (),
        actors: tuple[str, ...] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        provenance: str | None = None,
        exclude_quarantined: bool = False,
    ) -> list[Row]:
        return [
            row
            for row in self.rows
            if (agent is None or row.agent == agent)
            and set(tags) <= set(row.tags)
            and set(actors) <= set(row.actors)
            and (since is None or row.at >= since)
            and (until is None or row.at <= until)
            and (provenance is None or row.provenance == provenance)
            and not (exclude_quarantined and row.quarantined)
        ]

    def distance(self, query: str, row: Row) -> float:
        q = stored(self._embedder.vector(query)).astype(np.float64)
        v = stored(self._embedder.vector(row.content)).astype(np.float64)
        return float(np.sqrt(np.dot(v - q, v - q)))

    def cosine(self, query: str, k: int, rows: list[Row]) -> list[tuple[str, float]]:
        ranked = sorted((self.distance(query, row), self.rows.index(row), row) for row in rows)
        return [(row.id, 1 / (1 + distance)) for distance, _, row in ranked[:k]]

    def bm25(self, query: str, row: Row) -> float:
        """FTS5's bm25() with its own constants, over all rows, agents and filters aside."""
        documents = [Counter(other.content.lower().split()) for other in self.rows]
        words = Counter(row.content.lower().split())
        average = sum(d.total() for d in documents) / len(documents)
        score = 0.0
        for term in dict.fromkeys(query.lower().split()):
            frequency = sum(term in d for d in documents)
            idf = math.log((len(documents) - frequency + 0.5) / (frequency + 0.5))
            idf = idf if idf > 0 else 1e-6
            tf = words[term]
            score += idf * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * words.total() / average))
        return score

    def hybrid(
        self, query: str, k: int, rows: list[Row], weights: tuple[float, float] = (0.5, 0.5)
    ) -> list[tuple[str, float]]:
        pool = 4 * k
        vector = dict(self.cosine(query, pool, rows))
        scored = [(-self.bm25(query, row), self.rows.index(row), row) for row in rows]
        text = {row.id: -score for score, _, row in sorted(scored)[:pool] if score < 0}
        sides = [self._scaled(vector), self._scaled(text)]
        order = {row.id: at for at, row in enumerate(self.rows)}
        blended = {
            uid: sum(w * side.get(uid, 0.0) for w, side in zip(weights, sides, strict=True))
            / sum(weights)
            for uid in vector.keys() | text.keys()
        }
        return sorted(blended.items(), key=lambda item: (-item[1], order[item[0]]))[:k]

    @staticmethod
    def _scaled(pool: dict[str, float]) -> dict[str, float]:
        if not pool:
            return {}
        low, high = min(pool.values()), max(pool.values())
        return {
            uid: (score - low) / (high - low) if high > low else 1.0 for uid, score in pool.items()
        }


def same_ranking(found: list[SearchResult], expected: list[tuple[str, float]]) -> bool:
    """Same scores, same episodes; those whose scores differ by mere rounding may trade places."""
    rounding = 1e-6
    scores = [score for _, score in expected]
    cut = scores[-1] + rounding if scores else 0.0
    return [r.score for r in found] == pytest.approx(scores, abs=rounding) and {
        r.episode.id for r in found if r.score > cut
    } == {uid for uid, score in expected if score > cut}
