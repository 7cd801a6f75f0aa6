"""A LangChain `Embeddings` object as the embedder of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from langchain_core.embeddings import Embeddings

from engram.errors import InvalidType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LangChainEmbedder"]

_NAMES = ("model", "model_name", "model_id", "deployment")


class LangChainEmbedder:
    """Embeds with a LangChain `Embeddings` object, one vector per text.

    Making one embeds a word, which says how many numbers a vector has.

    Args:
        embeddings: The object; it is called on several threads at once.
        fingerprint: What changes whenever the vectors of the same text would. None is the name of
            its class and of its model, as far as the object tells that.

    Raises:
        InvalidType: It is no `Embeddings`.
    """

    def __init__(self, embeddings: Embeddings, fingerprint: str | None = None) -> None:
        if not isinstance(embeddings, Embeddings):
            message = f"embeddings must be a LangChain Embeddings, not {type(embeddings).__name__}"
            raise InvalidType(message)
        self._embeddings = embeddings
        self.dim = len(embeddings.embed_query("dimension"))
        self.fingerprint = _described(embeddings) if fingerprint is None else fingerprint

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return one vector per text: float32[n, dim]."""
        return np.array(self._embeddings.embed_documents(texts), dtype=np.float32)

    def embed_documents(self, texts: list[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the vectors, float32[n, dim], and how many each text has: one."""
        return self.embed(texts), np.ones(len(texts), dtype=np.int64)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector to search with: float32[dim]."""
        return np.array(self._embeddings.embed_query(text), dtype=np.float32)


def _described(embeddings: Embeddings) -> str:
    kind = type(embeddings)
    named = (getattr(embeddings, name, None) for name in _NAMES)
    models = [model for model in named if isinstance(model, str) and model]
    return ":".join(["langchain", f"{kind.__module__}.{kind.__qualname__}", *models])
