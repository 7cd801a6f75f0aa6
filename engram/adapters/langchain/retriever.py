"""`EngramRetriever`: the memories that answer a query, as LangChain documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, Field, ValidationError, field_validator

from engram import arguments
from engram.engine import Engram  # noqa: TC001 - likewise
from engram.errors import InvalidArgument, InvalidType
from engram.models import FactResult
from engram.retrieval import MAX_K
from engram.storage import fact_records

if TYPE_CHECKING:
    from langchain_core.callbacks.manager import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )

    from engram.models import Episode, Filters, SearchResult

__all__ = ["EngramRetriever"]

_OPTIONS: Final = ("k", "mode", "kind", "filters", "as_of", "min_score")


class EngramRetriever(BaseRetriever):
    """Finds memories by `Engram.recall_memories`; part of any chain.

    Each document's `page_content` is the episode's text and its `id` the episode's id; its metadata
    has `id`, `score`, `timestamp` (ISO 8601), `importance`, `provenance` and `quarantined`, so that
    a chain can tell whose words it is about to trust. Of a fact the content is its subject,
    predicate and object, `timestamp` is when it began to hold, and `importance` its confidence;
    where there may be facts, `kind` says "episodic" or "semantic". Async calls run on a worker
    thread.

    What a call passes beside the query (`retriever.invoke("tea", k=3)`) takes the place of the
    attribute of that name, for that call; any attribute below but `engram` can be passed.

    Attributes:
        engram: The memory; the retriever does not close it.
        k: How many documents, 1 to 4096.
        mode: "hybrid", "cosine" or "spreading".
        kind: "episodic", "semantic" (facts) or "any", which ranks both together.
        filters: Conditions on episodes: `tags`, `actors`, `since`, `until`, `provenance`,
            `exclude_quarantined`; see `engram.Filters`; None is none. (`tags` and `metadata` of the
            retriever itself are LangChain's, for tracing.)
        as_of: Only what had happened by then.
        min_score: Leave out what is less sure than this to answer, or in the other modes scores
            lower; see `engram.Engram.recall`.

    Raises:
        pydantic.ValidationError, InvalidType: An attribute is refused, or there is none of a name.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    engram: Engram = Field(repr=False)
    k: int = Field(default=5, ge=1, le=MAX_K)
    mode: Literal["hybrid", "cosine", "spreading"] = "hybrid"
    kind: Literal["episodic", "semantic", "any"] = "episodic"
    filters: Mapping[str, Any] = Field(default_factory=dict)
    as_of: datetime | None = None
    min_score: float | None = None

    @field_validator("filters", mode="before")
    @classmethod
    def _no_filters(cls, filters: object) -> object:
        return {} if filters is None else filters

    @field_validator("filters")
    @classmethod
    def _check_filters(cls, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        # What can be read only once would filter the first call and no other.
        kept = {
            name: tuple(value)
            if isinstance(value, Iterable) and not isinstance(value, str)
            else value
            for name, value in filters.items()
        }
        arguments.allowed(None, cast("Filters", kept))
        return kept

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **instead: Any
    ) -> list[Document]:
        """Return the documents for a query; LangChain calls it with its callbacks around it."""
        return self._documents(query, **instead)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **instead: Any
    ) -> list[Document]:
        """Return the documents for a query without holding up the event loop."""
        return await run_in_executor(None, self._documents, query, **instead)

    def _documents(self, query: str, **instead: Any) -> list[Document]:
        asked = self._with(instead) if instead else self
        found = self.engram.recall_memories(
            query,
            asked.k,
            kind=asked.kind,
            mode=asked.mode,
            as_of=asked.as_of,
            min_score=asked.min_score,
            **cast("Filters", asked.filters),
        )
        documents = [_document(result) for result in found]
        if asked.kind != "episodic":
            for document, result in zip(documents, found, strict=True):
                document.metadata["kind"] = (
                    "semantic" if isinstance(result, FactResult) else "episodic"
                )
        return documents

    def _with(self, instead: Mapping[str, Any]) -> Self:
        """Return a retriever with other attributes, checked as its own are.

        Raises:
            InvalidArgument, InvalidType: One of them is refused, or unknown.
        """
        if unknown := instead.keys() - _OPTIONS:
            message = f"unexpected keyword argument {min(unknown)!r}"
            raise InvalidType(message, f"a call may pass {', '.join(_OPTIONS)}")
        asked = self.model_copy()
        for name, value in instead.items():
            try:
                setattr(asked, name, value)
            except ValidationError as error:
                message = f"{name} is refused: {error.errors()[0]['msg']}"
                raise InvalidArgument(message) from None
        return asked


def _document(result: SearchResult | FactResult) -> Document:
    if isinstance(result, FactResult):
        fact = result.fact
        statement = fact_records.statement(fact.subject, fact.predicate, fact.object)
        return _described(result, result, fact.id, statement, fact.valid_from, fact.confidence)
    told = result.episode
    return _described(result, told, told.id, told.content, told.timestamp, result.importance)


def _described(
    result: SearchResult | FactResult,
    source: Episode | FactResult,
    uid: str,
    text: str,
    since: datetime,
    importance: float,
) -> Document:
    return Document(
        page_content=text,
        id=uid,
        metadata={
            "id": uid,
            "score": result.score,
            "timestamp": since.isoformat(),
            "importance": importance,
            "provenance": source.provenance,
            "quarantined": source.quarantined,
        },
    )
