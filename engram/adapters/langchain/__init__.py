"""LangChain: a retriever, a chat message history and a vector store over an `Engram`.

The names can be imported without langchain-core; using one then raises `MissingExtra`, which is an
`ImportError`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from engram.adapters.absent import absent

if TYPE_CHECKING:
    from engram.adapters.langchain.history import EngramChatMessageHistory
    from engram.adapters.langchain.retriever import EngramRetriever
    from engram.adapters.langchain.vectorstore import EngramVectorStore

__all__ = ["EngramChatMessageHistory", "EngramRetriever", "EngramVectorStore"]

_HOMES = {
    "EngramChatMessageHistory": "history",
    "EngramRetriever": "retriever",
    "EngramVectorStore": "vectorstore",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "langchain_core":
            raise
        return absent(name, "langchain")
    return getattr(home, name)
