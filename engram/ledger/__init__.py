"""`Ledger`: what a store knows of projects, evidence and lifecycles, without a model."""

from __future__ import annotations

from engram.ledger.dormancy import DormantReview
from engram.ledger.evidence import EvidenceRecords
from engram.ledger.handoffs import SessionHandoffs
from engram.ledger.lifecycle import MemoryLifecycle

__all__ = ["Ledger"]


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
