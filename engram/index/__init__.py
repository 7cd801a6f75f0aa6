"""Derived structures: what makes recall fast, built from the store and never its truth."""

from __future__ import annotations

from engram.index.adjacency import Adjacency
from engram.index.distances import distance_bounds, true_distances, true_vectors
from engram.index.episode_index import DEFAULT_BUDGET, EpisodeIndex
from engram.index.fact_index import FACT, FactIndex
from engram.index.mapped import Damaged
from engram.index.matching import match_memories, weigh_memories
from engram.index.ranking import K1, WordWeights
from engram.index.selection import Selection, times_of
from engram.index.shelf import Shelf
from engram.index.upkeep import Upkeep
from engram.index.vectors import ACCURACIES, Neighbours, nearest, nearest_facts, nearest_of

__all__ = [
    "ACCURACIES",
    "DEFAULT_BUDGET",
    "FACT",
    "K1",
    "Adjacency",
    "Damaged",
    "EpisodeIndex",
    "FactIndex",
    "Neighbours",
    "Selection",
    "Shelf",
    "Upkeep",
    "WordWeights",
    "distance_bounds",
    "match_memories",
    "nearest",
    "nearest_facts",
    "nearest_of",
    "times_of",
    "true_distances",
    "true_vectors",
    "weigh_memories",
]
