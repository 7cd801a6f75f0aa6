"""Searches: the one part of the service that loads a model, and only when it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from engram.errors import InvalidArgument, ModelMissing

if TYPE_CHECKING:
    from engram.api.operations import Search
    from engram.config import Settings

_MAX_RESULTS = 20


class Searching:
    """The searches of a service.

    Args:
        settings: The settings in force.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def search(self, arguments: Search) -> list[dict[str, object]]:
        """Return what answers a query, the best first.

        Raises:
            InvalidArgument: More results are asked for, by the settings, than a client may.
            EngramError: The store or a model cannot be used.
        """
        self._fail(self._count(arguments))

    def explain(self, arguments: Search) -> dict[str, object]:
        """Return what answers a query, and a report on how it was found.

        Raises:
            InvalidArgument, EngramError: As for `search`.
        """
        self._fail(self._count(arguments))

    def close(self) -> None:
        """Close the store; the models stay loaded."""

    def _count(self, arguments: Search) -> int:
        count = self._settings.retrieval.top_k if arguments.top_k is None else arguments.top_k
        if count > _MAX_RESULTS:
            message = f"retrieval.top_k is more than {_MAX_RESULTS}, and top_k was left out"
            raise InvalidArgument(message)
        return count

    def _fail(self, count: int) -> NoReturn:
        message = f"no search for {count} memories yet"
        raise ModelMissing(message)
