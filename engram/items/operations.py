"""Which calls of an `ItemMemory` are traced, and what is recorded of each."""

from __future__ import annotations

from typing import Final

from engram.tracing import Operation, length

__all__ = ["DOCUMENTS", "OPERATIONS"]

_PLAIN: Final = Operation()
_LISTING: Final = Operation(("limit",), length("namespaces"))

OPERATIONS: Final = {
    "put": _PLAIN,
    "delete_many": _PLAIN,
    "write": _PLAIN,
    "sweep": Operation(describe=lambda erased: {"engram.episodes": erased}),
    "get": _PLAIN,
    "get_many": Operation(describe=length("items")),
    "search": Operation(("limit", "offset"), length("results"), finds=True),
    "namespaces": _LISTING,
    "namespaces_that_match": _LISTING,
}
"""The calls of an `ItemMemory`; their spans begin with "engram.items."."""

DOCUMENTS: Final = {
    "nearby": Operation(("k",), lambda found: {"engram.results": len(found.items)}, finds=True),
}
"""Those that a `DocumentMemory` has beside them."""
