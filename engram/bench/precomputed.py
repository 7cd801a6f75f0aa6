"""An embedder that computes nothing: it hands out the vectors it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["PrecomputedEmbedder"]


class PrecomputedEmbedder:
    """Stands in for a model whose vectors are known already.

    Args:
        fingerprint: That of the model, so that a store can be opened with either.
        name: The model's name, if it has one.
        dim: Numbers in a vector.
        questions: What will be asked.
        vectors: float32[len(questions), dim]: the questions' vectors.
    """

    def __init__(
        self,
        fingerprint: str,
        name: str | None,
        dim: int,
        questions: Sequence[str],
        vectors: NDArray[np.float32],
    ) -> None:
        self.fingerprint = fingerprint
        self.name = name
        self.dim = dim
        self._questions: dict[str, NDArray[np.float32]] = dict(zip(questions, vectors, strict=True))
        self._next: NDArray[np.float32] = np.empty((0, dim), np.float32)

    def hand_out(self, vectors: NDArray[np.float32]) -> None:
        """Set the vectors of the texts that are embedded next: float32[texts, dim]."""
        self._next = vectors

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return what `hand_out` was given, one row per text."""
        if len(texts) != len(self._next):
            message = f"{len(self._next)} vectors were handed out for {len(texts)} texts"
            raise ValueError(message)
        return self._next

    def embed_documents(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return what `hand_out` was given, as one chunk per text."""
        return self.embed(texts), np.ones(len(texts), np.int64)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        return self._questions[text]
