"""Check observations: stored, read and listed."""

from __future__ import annotations

from engram.ledger.opening import Opening


class EvidenceRecords(Opening):
    """The calls about them."""
