"""Recall: candidates from both sides, blended and ranked."""

from __future__ import annotations

from engram.retrieval.blending import Blending
from engram.retrieval.choosing import chosen, text_of
from engram.retrieval.memories import KINDS, FactQuery, recall_memories
from engram.retrieval.ranking import MAX_K, Query, Ranking
from engram.retrieval.recall import MODES, recall
from engram.retrieval.reranked import outputs

__all__ = [
    "KINDS",
    "MAX_K",
    "MODES",
    "Blending",
    "FactQuery",
    "Query",
    "Ranking",
    "chosen",
    "outputs",
    "recall",
    "recall_memories",
    "text_of",
]
