"""Bounded texts: what most arguments of a ledger are."""

from __future__ import annotations

from engram.arguments import label

__all__ = ["label"]
