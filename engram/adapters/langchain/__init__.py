"""LangChain: a retriever, a chat message history and a vector store over an `Engram`.

The names can be imported without langchain-core; using one then raises `MissingExtra`, which is an
`ImportError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.adapters.absent import loader

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

__getattr__ = loader(__name__, _HOMES, "langchain_core", "langchain")
