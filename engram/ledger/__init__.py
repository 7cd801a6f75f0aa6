"""`Ledger`: what a store knows of projects, evidence and lifecycles, without a model."""

from __future__ import annotations

from typing import Final

from engram.ledger.dormancy import DormantReview
from engram.ledger.evidence import EvidenceRecords
from engram.ledger.handoffs import SessionHandoffs
from engram.ledger.lifecycle import MemoryLifecycle
from engram.tracing import Operation, length, traced

__all__ = ["OPERATIONS", "Ledger"]

_PLAIN: Final = Operation()
_LISTING: Final = Operation(("limit",), length("results"))

OPERATIONS: Final = {
    "totals": _PLAIN,
    "recent": _LISTING,
    "save_checkpoint": _PLAIN,
    "clear_checkpoint": _PLAIN,
    "checkpoints": _LISTING,
    "context": Operation(("limit",)),
    "put_evidence": _PLAIN,
    "get_evidence": _PLAIN,
    "list_evidence": _LISTING,
    "review_dormant": _LISTING,
    "inspect_dormant": _PLAIN,
    "judge_dormant": _PLAIN,
    "hide": _PLAIN,
    "set_status": _PLAIN,
    "invalidate": _PLAIN,
    "restore": _PLAIN,
    "lifecycle_of": _PLAIN,
}
"""The calls of a `Ledger` that are traced; their spans begin with "engram.ledger."."""


@traced(OPERATIONS, "ledger.")
class Ledger(SessionHandoffs, EvidenceRecords, DormantReview, MemoryLifecycle):
    """The books of an existing store, kept without loading a model or an index.

    Nothing is opened before the first call that needs the store, and arguments are checked before
    that. A store that is made, replaced or removed meanwhile is noticed at the next call. Safe to
    share between threads.

    Args:
        path: The store's file; it is never made. "~" is the home folder.
        key: Passphrase of an encrypted store.
        busy_timeout: Seconds to wait while another connection writes.
        clock: Where "now" comes from.
    """
