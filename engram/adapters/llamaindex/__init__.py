"""LlamaIndex: a chat memory, a memory block and a retriever over an `Engram`.

The names can be imported without llama-index-core; using one then raises `MissingExtra`, which is
an `ImportError`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from engram.adapters.absent import absent

if TYPE_CHECKING:
    from engram.adapters.llamaindex.block import EngramMemoryBlock
    from engram.adapters.llamaindex.memory import EngramMemory
    from engram.adapters.llamaindex.retriever import EngramRetriever

__all__ = ["EngramMemory", "EngramMemoryBlock", "EngramRetriever"]

_HOMES = {"EngramMemory": "memory", "EngramMemoryBlock": "block", "EngramRetriever": "retriever"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "llama_index":
            raise
        return absent(name, "llamaindex")
    return getattr(home, name)
