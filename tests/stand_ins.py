"""Stand-ins for what tests must control: the embedder's meaning of words, and the time."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np


class WordEmbedder:
    """Texts are the sum of fixed random directions, one per word: deterministic, no model."""

    def __init__(self, dim: int = 32, fingerprint: str = "words") -> None:
        self.dim = dim
        self.fingerprint = fingerprint
        self.embedded = 0

    def embed(self, texts: list[str]) -> np.ndarray:
        self.embedded += len(texts)
        return np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(
            len(texts), self.dim
        )

    def vector(self, text: str) -> np.ndarray:
        total = np.zeros(self.dim)
        for word in text.lower().split() or [""]:
            total += direction(word, self.dim)
        return total / np.linalg.norm(total)


@lru_cache(maxsize=50_000)
def direction(word: str, dim: int) -> np.ndarray:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big")).normal(size=dim)


class Clock:
    """A clock that stands still until told otherwise."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)
