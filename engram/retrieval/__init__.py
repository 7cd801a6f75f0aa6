"""Recall: candidates from both sides, blended and ranked."""

from __future__ import annotations

from engram.retrieval.memories import KINDS, FactQuery, recall_memories
from engram.retrieval.recall import MAX_K, MODES, Query, recall

__all__ = ["KINDS", "MAX_K", "MODES", "FactQuery", "Query", "recall", "recall_memories"]
