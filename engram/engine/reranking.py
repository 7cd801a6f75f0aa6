"""The rerankers of an open store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from engram.embedding import LateInteraction, resolve_reranker
from engram.engine.session import Session

if TYPE_CHECKING:
    from engram.embedding import Embedder, Reranker

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
