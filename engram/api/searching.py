"""Searches: the one part of the service that loads a model, and only when it is asked."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from engram import arguments
from engram.arguments import MAX_RESULTS
from engram.errors import Busy, InvalidArgument, InvalidSettings, InvalidType, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from engram.api.operations import Search
    from engram.config import Settings
    from engram.engine import Engram
    from engram.ledger import Ledger
    from engram.retrieval.search import SearchHit


class Searching:
    """The searches of a service.

    Args:
        settings: The settings in force.
        ledger: The books of the same store, which know whether its file is still the same.
        key: Passphrase of an encrypted store.
        clock: Where "now" comes from.
    """

    def __init__(
        self, settings: Settings, ledger: Ledger, key: str | None, clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._key = key
        self._clock = clock
        self._memory: Engram | None = None
        self._identity: tuple[int, int] | None = None

    def search(self, asked: Search) -> list[dict[str, object]]:
        """Return what answers a query, the best first.

        Raises:
            InvalidArgument: The query is refused, or the settings ask for more than `MAX_RESULTS`.
            EngramError: The store or a model cannot be used.
        """
        query, options = self._checked(asked)
        with self._opened() as memory:
            hits = memory.search(query, dormant=self._settings.dormant_recall, **options)
        return [_row(hit) for hit in hits]

    def explain(self, asked: Search) -> dict[str, object]:
        """Return what answers a query, and a report on how it was found.

        Raises:
            InvalidArgument, EngramError: As for `search`.
        """
        query, options = self._checked(asked)
        with self._opened() as memory:
            hits, explanation = memory.search_explained(query, **options)
        return {"results": [_row(hit) for hit in hits], "explanation": explanation}

    def close(self) -> None:
        """Close the store, if it is open; the next search opens it again."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def _checked(self, asked: Search) -> tuple[str, dict[str, Any]]:
        query = arguments.text(asked.query, "query")
        count = self._settings.retrieval.top_k if asked.top_k is None else asked.top_k
        if count > MAX_RESULTS:
            message = f"top_k is missing, and retrieval.top_k is more than {MAX_RESULTS}"
            raise InvalidArgument(message)
        return query, {
            "k": count,
            "settings": self._settings.retrieval,
            "cross_encoder": self._settings.cross_encoder_model,
            "half_life_days": float(self._settings.lifecycle.forgetting_half_life_days),
        }

    @contextmanager
    def _opened(self) -> Iterator[Engram]:
        """Lend the store, whose file the ledger has looked at.

        Raises:
            InvalidSettings: Something is refused; the request was checked before, so it is what
                the environment or the settings say.
        """
        try:
            identity = self._ledger.present()
            if self._memory is None or self._identity != identity:
                self.close()
                from engram.engine import Engram  # noqa: PLC0415 - NumPy, for searches only

                self._memory = Engram(
                    self._ledger.path, key=self._key, clock=self._clock, create=False
                )
                self._identity = identity
            yield self._memory
        except (InvalidArgument, InvalidType, NotFound) as error:
            raise InvalidSettings(error.message, error.hint) from error
        except sqlite3.Error as error:
            # A store that failed once is opened anew, unless it was only busy.
            if not isinstance(error, Busy):
                self.close()
            raise


def _row(hit: SearchHit) -> dict[str, object]:
    return {
        "id": hit.id,
        "content": hit.content,
        "score": hit.score,
        "layer": hit.layer,
        "memory_type": hit.memory_type,
        "importance": hit.importance,
    }
