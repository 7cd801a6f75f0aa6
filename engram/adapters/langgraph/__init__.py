"""LangGraph: its long-term memory, a `BaseStore`, over an engram store.

The name can be imported without LangGraph; using it then raises `MissingExtra`, which is an
`ImportError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.adapters.absent import loader

if TYPE_CHECKING:
    from engram.adapters.langgraph.store import EngramStore

__all__ = ["EngramStore"]

__getattr__ = loader(__name__, {"EngramStore": "store"}, "langgraph", "langgraph")
