"""Embedded memory for AI agents: episodes in one SQLite file, found by meaning, words and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram._version import __version__
from engram.models import Episode, EpisodePage, Filters, ObserveInput, SearchResult

if TYPE_CHECKING:
    from engram.engine import Engram

__all__ = [
    "Engram",
    "Episode",
    "EpisodePage",
    "Filters",
    "ObserveInput",
    "SearchResult",
    "__version__",
]


def __getattr__(name: str) -> object:
    # The engine brings NumPy and SQLite; a command that only prints its help needs neither.
    if name == "Engram":
        from engram.engine import Engram  # noqa: PLC0415

        return Engram
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
