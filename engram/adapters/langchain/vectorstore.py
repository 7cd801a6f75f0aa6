"""`EngramVectorStore`: documents with ids and metadata, found by meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from engram import arguments
from engram.adapters.langchain.embeddings import LangChainEmbedder
from engram.errors import InvalidArgument, InvalidType
from engram.items import DocumentMemory, ItemPut

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    from langchain_core.embeddings import Embeddings

    from engram.items import Item, Nearby

__all__ = ["EngramVectorStore"]

_ROOM: Final = "langchain.documents"
"""What the namespace of every document begins with; LangGraph's labels have no dots."""

_PAGE: Final = 1000


class EngramVectorStore(VectorStore):
    """Documents in a store file, in collections, each under its id.

    Adding under an id that is there replaces the document. A document is an episode as well, so
    that `Engram` finds it beside the conversations of an agent; its provenance is "external".

    A search compares with every vector: nothing nearer is missed. Vectors are kept in 16-bit
    floating point; scores are cosines of those, within about 0.001 of what was embedded, higher is
    better. The async methods run on worker threads. Use it as a context manager or call `close`.

    Args:
        path: The store file, also one that is open elsewhere; ":memory:" lives with the object.
        embedding: What embeds; it must be that of the whole store. None is the model the store was
            written with, for a new store a local one, as `Engram` has it.
        collection: The documents that this object sees; others in the same file do not mix.
        fingerprint: What changes whenever the vectors of `embedding` would. None is made from the
            names of its class and its model.
        agent_id: Whose documents they are; None is nobody's in particular.
        key: Passphrase of an encrypted store.

    Raises:
        CannotOpen, NotAStore, StoreTooNew, ModelMismatch, InvalidArgument, InvalidType: As for
            `Engram`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        embedding: Embeddings | None = None,
        *,
        collection: str = "default",
        fingerprint: str | None = None,
        agent_id: str | None = None,
        key: str | None = None,
    ) -> None:
        self._namespace = (_ROOM, arguments.text(collection, "collection"))
        self._embedding = embedding
        self._memory = DocumentMemory(
            path,
            embedder=None if embedding is None else LangChainEmbedder(embedding, fingerprint),
            agent_id=agent_id,
            key=key,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._memory.close()

    @property
    def embeddings(self) -> Embeddings | None:
        """What embeds; None where that is a model of engram's own."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **options: Any,
    ) -> Self:
        """Return a vector store that has some texts; `options` are those of the constructor.

        Raises:
            InvalidArgument, InvalidType: As for the constructor and `add_texts`.
        """
        store = cls(embedding=embedding, **options)
        try:
            store.add_texts(texts, metadatas, ids=ids)
        except BaseException:
            store.close()
            raise
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **unknown: Any,
    ) -> list[str]:
        """Add texts, or replace those that have the same ids, all or none; return the ids.

        Args:
            texts: Any texts; long ones are embedded in chunks by a model of engram's own.
            metadatas: A JSON object for each, given back as it is.
            ids: A name for each; None, for one or for all, makes one.
            **unknown: Refused.

        Raises:
            InvalidArgument, InvalidType: An argument is refused; nothing is written.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As for `Engram.observe_many`.
        """
        _refuse(unknown)
        listed = arguments.names(texts, "texts")
        named = [str(uuid4()) if one is None else one for one in _each(ids, len(listed), "ids")]
        described = [_metadata(one) for one in _each(metadatas, len(listed), "metadatas")]
        self._memory.put(
            ItemPut(
                self._namespace,
                name,
                {"page_content": text, "metadata": metadata},
                (text,),
            )
            for name, text, metadata in zip(named, listed, described, strict=True)
        )
        return named

    def delete(self, ids: Sequence[str] | None = None, **unknown: Any) -> bool:
        """Erase documents, as `Engram.forget` does; return True, also where there were none.

        Args:
            ids: Which; None is all of the collection.
            **unknown: Refused.

        Raises:
            InvalidArgument, InvalidType: An argument is refused; nothing is erased.
        """
        _refuse(unknown)
        if ids is not None:
            self._memory.delete_many((self._namespace, one) for one in arguments.names(ids, "ids"))
            return True
        while found := self._memory.search(self._namespace, limit=_PAGE):
            self._memory.delete_many((one.namespace, one.key) for one in found)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with some ids, in their order, without those that are not there."""
        names = [(self._namespace, one) for one in arguments.names(ids, "ids")]
        return [_document(item) for item in self._memory.get_many(names) if item is not None]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - what LangChain calls it
        **unknown: Any,
    ) -> list[Document]:
        """Return the documents nearest in meaning, the nearest first.

        Args:
            query: Any text.
            k: How many at most; there are as many, if so many match.
            filter: What the metadata must have: `{"year": 2020}`, `{"year": {"$gte": 2020}}`, with
                `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`. It applies before the choice.
            **unknown: Refused, so that no misspelt filter goes unnoticed.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ModelMissing, ModelMismatch, Busy, Closed, CorruptStore: As for `Engram.recall`.
        """
        return _documents(self._nearby(query, k, filter, unknown))

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        **unknown: Any,
    ) -> list[tuple[Document, float]]:
        """Return what `similarity_search` does, each with its cosine, -1 to 1."""
        near = self._nearby(query, k, filter, unknown)
        return [(_document(item), item.score or 0.0) for item in near.items]

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        **unknown: Any,
    ) -> list[Document]:
        """Return what `similarity_search` does, for a vector that the store's model made."""
        return _documents(self._nearby(embedding, k, filter, unknown))

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        **unknown: Any,
    ) -> list[Document]:
        """Return documents that are near in meaning and differ from each other.

        Args:
            query: Any text.
            k: How many at most, 1 to 1,000.
            fetch_k: Of how many of the nearest they are chosen, 1 to 1,000.
            lambda_mult: From 0, as different as can be, to 1, as near as can be.
            filter: As for `similarity_search`.
            **unknown: Refused.

        Raises:
            InvalidArgument, InvalidType, ModelMissing, ModelMismatch, Busy, Closed, CorruptStore:
                As for `similarity_search`.
        """
        return self._diverse(query, k, fetch_k, lambda_mult, filter, unknown)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        **unknown: Any,
    ) -> list[Document]:
        """Return what `max_marginal_relevance_search` does, for a vector of the store's model."""
        return self._diverse(embedding, k, fetch_k, lambda_mult, filter, unknown)

    def _diverse(
        self,
        query: str | list[float],
        k: int,
        fetch_k: int,
        lambda_mult: float,
        wanted: Mapping[str, Any] | None,
        unknown: Mapping[str, Any],
    ) -> list[Document]:
        most = arguments.integer(k, "k", 1, _PAGE)
        share = arguments.number(lambda_mult, "lambda_mult", 0.0, 1.0)
        pool = max(most, arguments.integer(fetch_k, "fetch_k", 1, _PAGE))
        near = self._nearby(query, pool, wanted, unknown)
        chosen = maximal_marginal_relevance(near.query, list(near.vectors), share, most)
        return [_document(near.items[at]) for at in chosen]

    def _nearby(
        self,
        query: str | list[float],
        k: int,
        wanted: Mapping[str, Any] | None,
        unknown: Mapping[str, Any],
    ) -> Nearby:
        _refuse(unknown)
        if wanted is not None:
            arguments.json_object(wanted, "filter")
        condition = {"metadata": wanted} if wanted else None
        return self._memory.nearby(self._namespace, query, k, filter=condition)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Return what makes a relevance, 0 to 1, of a score: what points away is not relevant."""
        return lambda score: min(1.0, max(0.0, score))


def _document(item: Item) -> Document:
    value = item.value
    return Document(value["page_content"], id=item.key, metadata=value["metadata"])


def _documents(near: Nearby) -> list[Document]:
    return [_document(item) for item in near.items]


def _each(values: Sequence[Any] | None, count: int, argument: str) -> Iterable[Any]:
    """Return a value for each text, None where none are given."""
    if values is not None and (isinstance(values, str) or not isinstance(values, Sequence)):
        message = f"{argument} must be a list, not {type(values).__name__}"
        raise InvalidType(message)
    if not values:
        return repeat(None, count)
    if len(values) != count:
        message = f"{argument} must be a list of as many as there are texts"
        raise InvalidArgument(message)
    return values


def _metadata(given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        message = f"each of metadatas must be a mapping, not {type(given).__name__}"
        raise InvalidType(message)
    return dict(given)


def _refuse(unknown: Mapping[str, Any]) -> None:
    if unknown:
        message = f"unexpected keyword argument {min(unknown)!r}"
        raise InvalidType(message)
