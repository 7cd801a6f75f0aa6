"""Limits so small that a few hundred episodes go every way that a million does."""

from __future__ import annotations

from engram.index import episode_index, segment, selection, tail, upkeep, vectors

LIMITS = (
    (episode_index, "TAIL_ROWS", 96),
    (episode_index, "SEGMENT_ROWS", 256),
    (selection, "FEW", 40),
    (selection, "ZONE", 16),
    (segment, "ZONE", 16),
    (tail, "ZONE", 16),
    (vectors, "_ROWS_MOST", {"high": 24, "fast": 12}),
    (vectors, "_ROWS_PER_RESULT", 2),
    (vectors, "_COARSE_LEAST", 8),
    (vectors, "_SCANNED", 60),
    (upkeep, "_KEPT_FROM", 20),
    (upkeep, "_AT_CLOSE", 600),
)


def shrink() -> None:
    """Set them for the rest of the process."""
    for module, name, value in LIMITS:
        setattr(module, name, value)
