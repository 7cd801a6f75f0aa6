"""The built-in reranker: a query's vectors against those of the parts of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from engram.embedding.protocol import embed_documents, embed_query
from engram.embedding.sentences import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.embedding.protocol import Embedder

__all__ = ["LateInteraction"]


class LateInteraction:
    """Scores a text by its best part, with no model but the embedder's.

    Args:
        embedder: Any embedder.
        reason: Why this reranker is used, for people.
    """

    kind: Literal["late_interaction"] = "late_interaction"
    output: Literal["normalized_score"] = "normalized_score"

    def __init__(self, embedder: Embedder, *, reason: str) -> None:
        self._embedder = embedder
        self.reason = reason

    @property
    def name(self) -> str:
        """The embedder's name, or its fingerprint where it has none."""
        name = getattr(self._embedder, "name", None)
        return name if isinstance(name, str) and name else self._embedder.fingerprint

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return how well each text answers the query, float64[n] in 0..1.

        Raises:
            InvalidType: The embedder returned no numbers.
            InvalidArgument: The embedder returned the wrong shape, or numbers that are not finite.
            ModelMissing: The embedder's model is not on this machine any more.
            ModelCorrupt: The embedder's model cannot be read.
        """
        asked = embed_query(self._embedder, query)
        best: list[float] = []
        for text in texts:
            parts = [text[start:end] for start, end in sentence_spans(text)]
            vectors, _ = embed_documents(self._embedder, list(dict.fromkeys([text, *parts])))
            best.append(float((vectors @ asked).max()))
        return np.clip(np.array(best, np.float64), 0.0, 1.0)

    def calibrated(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what `scores` returned: it is calibrated already."""
        return np.clip(np.asarray(raw, np.float64), 0.0, 1.0)
