"""Embedded memory for AI agents: episodes in one SQLite file, found by meaning, words and time."""

from __future__ import annotations

from engram._version import __version__
from engram.engine import Engram
from engram.models import Episode, EpisodePage, Filters, ObserveInput, SearchResult

__all__ = [
    "Engram",
    "Episode",
    "EpisodePage",
    "Filters",
    "ObserveInput",
    "SearchResult",
    "__version__",
]
