"""Dormant recall: each search may look at what lies dormant, once its answer is made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from engram.engine.session import Session
from engram.retrieval.dormancy import DormantSearch
from engram.storage import EpisodeFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from engram.config import DormantRecall
    from engram.embedding import Embedder, Reranker

_LOCKED: Final = 0.05
"""Seconds to wait while another connection writes: somebody waits for the answer meanwhile."""

_LOG = logging.getLogger("engram.dormancy")


class DormantShadow(Session):
    """What searches do for it."""

    def _evaluate_dormant(
        self,
        query: str,
        answered: Collection[int],
        reranker: Callable[[Embedder], Reranker],
        settings: DormantRecall,
    ) -> None:
        """Note what a search might have shown of dormant memories; nothing in mode "off".

        Whatever fails is logged by the name of its class alone and goes no further, so that the
        answer stays what it is.

        Args:
            query: What was asked.
            answered: Keys of the episodes that were returned.
            reranker: Returns the reranker that goes with an embedder.
            settings: The rules.
        """
        if settings.mode == "off":
            return
        try:
            shadow = DormantSearch(query, settings, self._now())
            if shadow.terms:
                self._look(shadow, query, answered, reranker)
            with self._store.writing(wait=_LOCKED):
                shadow.record(self._store)
        except Exception as error:  # noqa: BLE001 - the answer is there, and is not to be lost
            _LOG.warning("a dormant evaluation failed: %s", type(error).__name__)

    def _look(
        self,
        shadow: DormantSearch,
        query: str,
        answered: Collection[int],
        reranker: Callable[[Embedder], Reranker],
    ) -> None:
        with self._searching(query) as found:
            if found is None:
                return
            vector, index = found
            allowed = EpisodeFilter(agent=self._agent, exclude_quarantined=True)
            shadow.gather(self._store, index, vector, allowed, answered)
            model = index.model
        if shadow.texts:
            shadow.judge(reranker(self._the_embedder(model)))
