"""The store: one SQLite file, spoken to by this package alone."""

from __future__ import annotations

from engram.storage.columns import ColumnBatch, origins
from engram.storage.connection import MEMORY
from engram.storage.embeddings import VectorBatch, as_stored
from engram.storage.episodes import NewEpisode
from engram.storage.fact_records import Evidence, FactSource, NewFact
from engram.storage.filters import EpisodeFilter
from engram.storage.graph import Edges
from engram.storage.old_store import read_old_store
from engram.storage.record_writer import RecordWriter
from engram.storage.records import KINDS, Column, Record, RecordReader
from engram.storage.store import Store
from engram.storage.strength import Traces
from engram.storage.text import Phrase

__all__ = [
    "KINDS",
    "MEMORY",
    "Column",
    "ColumnBatch",
    "Edges",
    "EpisodeFilter",
    "Evidence",
    "FactSource",
    "NewEpisode",
    "NewFact",
    "Phrase",
    "Record",
    "RecordReader",
    "RecordWriter",
    "Store",
    "Traces",
    "VectorBatch",
    "as_stored",
    "origins",
    "read_old_store",
]
