"""The documented import path of the exchange format."""

from __future__ import annotations

from engram.transfer.reference import VERSION as EXPORT_VERSION
from engram.transfer.reference import from_document, to_document

__all__ = ["EXPORT_VERSION", "from_document", "to_document"]
