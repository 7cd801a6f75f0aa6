"""Dormant memories: reviewed, inspected and judged."""

from __future__ import annotations

from engram.ledger.opening import Opening


class DormantReview(Opening):
    """The calls about them."""
