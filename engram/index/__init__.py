"""Derived structures: what makes recall fast, built from the store and never its truth."""

from __future__ import annotations

from engram.index.adjacency import Adjacency
from engram.index.text import TextPostings
from engram.index.vectors import Neighbours, VectorIndex

__all__ = ["Adjacency", "Neighbours", "TextPostings", "VectorIndex"]
