"""What the calls about experiences return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of an experience that was to be stored.

    Attributes:
        id: Its id, or that of the one which says the same.
        indexed: Searches find it by meaning; False: its text waits to be embedded.
        deduplicated: Nothing was written but that the other one was used again.
    """

    id: str
    indexed: bool
    deduplicated: bool = False
