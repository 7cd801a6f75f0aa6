"""Session checkpoints: saved, cleared and taken up."""

from __future__ import annotations

from engram.ledger.opening import Opening


class SessionHandoffs(Opening):
    """The calls about them."""
