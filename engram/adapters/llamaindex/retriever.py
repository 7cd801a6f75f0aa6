"""`EngramRetriever`: the memories that answer a query, as LlamaIndex nodes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Unpack

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from engram import arguments
from engram.retrieval import MAX_K, MODES

if TYPE_CHECKING:
    from llama_index.core.schema import QueryBundle

    from engram.engine import Engram
    from engram.models import Filters, SearchResult

__all__ = ["EngramRetriever"]


class EngramRetriever(BaseRetriever):
    """Finds episodes by `Engram.recall`; part of any query engine.

    A node's text is the episode's and its id the episode's id; its metadata has `timestamp`
    (ISO 8601), `importance`, `provenance` and `quarantined`, so that one can tell whose words they
    are. Async calls run on a worker thread.

    Args:
        engram: The memory; the retriever does not close it.
        k: How many nodes, 1 to 4096.
        mode: "hybrid", "cosine" or "spreading".
        min_score: Leave out what scores lower; see `Engram.recall`.
        **filters: Conditions on episodes: `tags`, `actors`, `since`, `until`, `provenance`,
            `exclude_quarantined`; see `engram.Filters`.

    Raises:
        InvalidArgument, InvalidType: An argument is refused.
    """

    def __init__(
        self,
        engram: Engram,
        k: int = 5,
        *,
        mode: str = "hybrid",
        min_score: float | None = None,
        **filters: Unpack[Filters],
    ) -> None:
        super().__init__()
        self._engram = engram
        self._k = arguments.integer(k, "k", 1, MAX_K)
        self._mode = arguments.one_of(mode, MODES, "mode")
        self._min_score = None if min_score is None else arguments.number(min_score, "min_score")
        arguments.allowed(None, filters)
        self._filters = filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._engram.recall(
            query_bundle.query_str,
            self._k,
            mode=self._mode,
            min_score=self._min_score,
            **self._filters,
        )
        return [_node(result) for result in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(result: SearchResult) -> NodeWithScore:
    episode = result.episode
    node = TextNode(
        id_=episode.id,
        text=episode.content,
        metadata={
            "timestamp": episode.timestamp.isoformat(),
            "importance": result.importance,
            "provenance": episode.provenance,
            "quarantined": episode.quarantined,
        },
        excluded_llm_metadata_keys=["importance"],
    )
    return NodeWithScore(node=node, score=result.score)
