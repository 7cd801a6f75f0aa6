"""The rerankers of an open store."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from engram.embedding import LateInteraction, resolve_reranker
from engram.embedding.reranking import local_reranker
from engram.engine.session import Session
from engram.retrieval import chosen, outputs, text_of
from engram.tracing import stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from engram.embedding import Embedder, Reranker
    from engram.models import FactResult, SearchResult
    from engram.retrieval import Query, Ranking

_Result = TypeVar("_Result", bound="SearchResult | FactResult")

DEFAULT_CROSS_ENCODER: Final = "BAAI/bge-reranker-base"


class Reranking(Session):
    """What reads the best candidates of a recall or a search again."""

    @cached_property
    def _rerankers(self) -> dict[str | None, tuple[Embedder, Reranker]]:
        return {}

    def _reranker(self, name: str | None, embedder: Embedder) -> Reranker:
        """Return the reranker of a name, the same as long as the embedder is.

        Args:
            name: The name of a cross-encoder; None is the late interaction of the embedder.
            embedder: Compared where there is no such cross-encoder on this machine.
        """
        kept = self._rerankers.get(name)
        if kept is None or kept[0] is not embedder:
            reranker: Reranker
            if name is None:
                reranker = LateInteraction(embedder, reason="late interaction was asked for")
            else:
                reranker = resolve_reranker(name, embedder)
            kept = self._rerankers[name] = embedder, reranker
        return kept[1]

    def _emit(
        self, event: str, data: Iterable[Mapping[str, object]], *, run_id: str | None = None
    ) -> None:
        """Append events, and forget what was read of memories that are erased."""
        if event == "memory_forgotten":
            self._rerankers.clear()
        super()._emit(event, data, run_id=run_id)

    def _chosen(
        self, query: Query, ranking: Ranking, candidates: list[_Result]
    ) -> tuple[list[_Result], NDArray[np.int64]]:
        """Return the results among the candidates of a recall, and their keys.

        Outside any transaction: this may run a model.

        Raises:
            ModelMissing: A cross-encoder is asked for, and not on this machine.
            ModelCorrupt: The reranker cannot be used.
        """
        said = None
        name, embedder = query.blending.rerank, self._embedder
        # Where nothing is embedded there is no query vector, and no model to ask.
        if name and query.mode == "hybrid" and len(query.vector) and embedder is not None:
            read = candidates[: query.blending.rerank_top]
            with stage("rerank"):
                if name == "cross_encoder":
                    reranker: Reranker = local_reranker(DEFAULT_CROSS_ENCODER)
                else:
                    reranker = self._reranker(None, embedder)
                said = outputs(reranker, query.text, [text_of(one) for one in read])
        places, scores = chosen(ranking, query, said)
        results = [
            replace(candidates[place], score=score)
            for place, score in zip(places.tolist(), scores.tolist(), strict=True)
        ]
        return results, ranking.keys[places]
