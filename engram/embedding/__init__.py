"""Embedding: texts to unit vectors, with models found on this machine.

`resolve` finds a model and returns its embedder; `embed_documents` and `embed_query` run any
embedder and vouch for what it returns. Importing this loads neither a model nor a runtime.
"""

from __future__ import annotations

from engram.embedding.deterministic import DeterministicEmbedder
from engram.embedding.embedder import OnnxEmbedder
from engram.embedding.late_interaction import LateInteraction
from engram.embedding.location import LocalModel
from engram.embedding.protocol import (
    DocumentEmbedder,
    Embedder,
    check_embedder,
    embed_documents,
    embed_query,
)
from engram.embedding.reranking import Reranker, resolve_reranker
from engram.embedding.resolution import resolve

__all__ = [
    "DeterministicEmbedder",
    "DocumentEmbedder",
    "Embedder",
    "LateInteraction",
    "LocalModel",
    "OnnxEmbedder",
    "Reranker",
    "check_embedder",
    "embed_documents",
    "embed_query",
    "resolve",
    "resolve_reranker",
]
