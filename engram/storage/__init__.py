"""The store: one SQLite file, spoken to by this package alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.storage.columns import QUARANTINED, ColumnBatch, origins
    from engram.storage.connection import MEMORY
    from engram.storage.embeddings import VectorBatch, as_stored
    from engram.storage.episodes import NewEpisode, Origin
    from engram.storage.experiences import Outline, Use
    from engram.storage.fact_records import FactSource, NewFact
    from engram.storage.fact_search import FactColumns
    from engram.storage.feedback import RoutedSearch
    from engram.storage.filters import EpisodeFilter, FactFilter
    from engram.storage.folding import folded
    from engram.storage.full_text import FullText
    from engram.storage.graph import Edges
    from engram.storage.headings import heading
    from engram.storage.items import NewItem, StoredItem
    from engram.storage.memories import Memory
    from engram.storage.old_store import read_old_store
    from engram.storage.record_writer import RecordWriter
    from engram.storage.records import KINDS, Column, Record, RecordReader
    from engram.storage.store import Store
    from engram.storage.strength import Traces
    from engram.storage.triplets import (
        INSIGHT,
        INSIGHT_TYPES,
        MEMORY_TYPES,
        NewExperience,
        Texts,
        texts_of,
        wire_time,
    )
    from engram.storage.turns import TurnColumns

__all__ = [
    "INSIGHT",
    "INSIGHT_TYPES",
    "KINDS",
    "MEMORY",
    "MEMORY_TYPES",
    "QUARANTINED",
    "Column",
    "ColumnBatch",
    "Edges",
    "EpisodeFilter",
    "FactColumns",
    "FactFilter",
    "FactSource",
    "FullText",
    "Memory",
    "NewEpisode",
    "NewExperience",
    "NewFact",
    "NewItem",
    "Origin",
    "Outline",
    "Record",
    "RecordReader",
    "RecordWriter",
    "RoutedSearch",
    "Store",
    "StoredItem",
    "Texts",
    "Traces",
    "TurnColumns",
    "Use",
    "VectorBatch",
    "as_stored",
    "folded",
    "heading",
    "origins",
    "read_old_store",
    "texts_of",
    "wire_time",
]

# Loaded at first use: most of it brings NumPy, and a ledger needs none of that.
_LAZY = {
    "QUARANTINED": "engram.storage.columns",
    "ColumnBatch": "engram.storage.columns",
    "origins": "engram.storage.columns",
    "MEMORY": "engram.storage.connection",
    "VectorBatch": "engram.storage.embeddings",
    "as_stored": "engram.storage.embeddings",
    "NewEpisode": "engram.storage.episodes",
    "Origin": "engram.storage.episodes",
    "INSIGHT": "engram.storage.triplets",
    "INSIGHT_TYPES": "engram.storage.triplets",
    "MEMORY_TYPES": "engram.storage.triplets",
    "NewExperience": "engram.storage.triplets",
    "wire_time": "engram.storage.triplets",
    "Outline": "engram.storage.experiences",
    "Texts": "engram.storage.triplets",
    "Use": "engram.storage.experiences",
    "texts_of": "engram.storage.triplets",
    "FactSource": "engram.storage.fact_records",
    "NewFact": "engram.storage.fact_records",
    "FactColumns": "engram.storage.fact_search",
    "NewItem": "engram.storage.items",
    "StoredItem": "engram.storage.items",
    "RoutedSearch": "engram.storage.feedback",
    "EpisodeFilter": "engram.storage.filters",
    "FactFilter": "engram.storage.filters",
    "FullText": "engram.storage.full_text",
    "folded": "engram.storage.folding",
    "Edges": "engram.storage.graph",
    "heading": "engram.storage.headings",
    "Memory": "engram.storage.memories",
    "read_old_store": "engram.storage.old_store",
    "RecordWriter": "engram.storage.record_writer",
    "KINDS": "engram.storage.records",
    "Column": "engram.storage.records",
    "Record": "engram.storage.records",
    "RecordReader": "engram.storage.records",
    "Store": "engram.storage.store",
    "Traces": "engram.storage.strength",
    "TurnColumns": "engram.storage.turns",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
