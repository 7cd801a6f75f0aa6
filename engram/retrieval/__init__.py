"""Recall: candidates from both sides, blended and ranked."""

from __future__ import annotations

from engram.retrieval.recall import MAX_K, MODES, Query, recall

__all__ = ["MAX_K", "MODES", "Query", "recall"]
