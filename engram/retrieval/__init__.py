"""Recall: candidates from both sides, blended and ranked."""

from __future__ import annotations

from engram.retrieval.blending import Blending
from engram.retrieval.memories import KINDS, FactQuery, recall_memories
from engram.retrieval.ranking import MAX_K, Query
from engram.retrieval.recall import MODES, recall

__all__ = ["KINDS", "MAX_K", "MODES", "Blending", "FactQuery", "Query", "recall", "recall_memories"]
