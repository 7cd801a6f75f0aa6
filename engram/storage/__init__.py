"""The store: one SQLite file, spoken to by this package alone."""

from __future__ import annotations

from engram.storage.connection import MEMORY
from engram.storage.embeddings import VectorBatch, as_stored
from engram.storage.episodes import NewEpisode
from engram.storage.fact_records import Evidence, FactSource, NewFact
from engram.storage.filters import EpisodeFilter
from engram.storage.graph import Edges
from engram.storage.store import Store

__all__ = [
    "MEMORY",
    "Edges",
    "EpisodeFilter",
    "Evidence",
    "FactSource",
    "NewEpisode",
    "NewFact",
    "Store",
    "VectorBatch",
    "as_stored",
]
