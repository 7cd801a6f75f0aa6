"""LlamaIndex: a chat memory, a memory block and a retriever over an `Engram`.

The names can be imported without llama-index-core; using one then raises `MissingExtra`, which is
an `ImportError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.adapters.absent import loader

if TYPE_CHECKING:
    from engram.adapters.llamaindex.block import EngramMemoryBlock
    from engram.adapters.llamaindex.memory import EngramMemory
    from engram.adapters.llamaindex.retriever import EngramRetriever

__all__ = ["EngramMemory", "EngramMemoryBlock", "EngramRetriever"]

_HOMES = {"EngramMemory": "memory", "EngramMemoryBlock": "block", "EngramRetriever": "retriever"}

__getattr__ = loader(__name__, _HOMES, "llama_index", "llamaindex")
