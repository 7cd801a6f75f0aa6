"""A face: one way into a memory, with the verbs that the behaviours are told in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from engram.models import Episode

if TYPE_CHECKING:
    from contract.faces.place import Place


@dataclass(frozen=True)
class Memory:
    """A memory as a face tells it; what it does not tell is None."""

    id: str
    text: str
    tags: list[str] | None = None
    actors: list[str] | None = None
    at: datetime | None = None
    provenance: str | None = None
    quarantined: bool | None = None

    @classmethod
    def of(cls, episode: Episode) -> Memory:
        return cls(
            episode.id,
            episode.content,
            episode.tags,
            episode.actors,
            episode.timestamp,
            episode.provenance,
            episode.quarantined,
        )


class Face:
    """One way into the store of a place, for one agent or for all.

    Attributes:
        about: What it is called on the page.
        lacks: Behaviours and whole topics that it does not have, each with the reason.
        writes: Whether it can remember; what a reader is shown, the library writes.
        child: Whether it lives in this process, so that only one of its own can be killed.
        sessions: Whether what it has read changes what it writes.
        lenient: Verbs whose arguments may be of any type.
        most: How many can be asked for at once.
        longest: Characters that a text may have, where they are limited.
        error: What it raises where something is refused.
        codes: How the error tells what is refused: a value, a choice, a type, half a pair, an id.
    """

    about: ClassVar[str]
    lacks: ClassVar[Mapping[str, str]] = {}
    writes: ClassVar[bool] = True
    child: ClassVar[bool] = False
    sessions: ClassVar[bool] = False
    lenient: ClassVar[tuple[str, ...]] = ()
    most: ClassVar[int]
    longest: ClassVar[int]
    error: ClassVar[type[Exception]]
    codes: ClassVar[Mapping[str, object]]

    def __init__(self, place: Place, agent: str | None = None) -> None:
        self.place = place
        self.agent = agent

    def remember(self, text: str, **details: Any) -> str:
        """Keep a text; details are those that `Memory` has."""
        raise NotImplementedError

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        """Search; filters are `tags`, `actors`, `since`, `until`, `as_of` and so on."""
        raise NotImplementedError

    def get(self, uid: str) -> Memory:
        raise NotImplementedError

    def erase(self, uid: str) -> None:
        raise NotImplementedError

    def erase_named(self, name: str) -> None:
        """Erase all that names somebody."""
        raise NotImplementedError

    def hide(self, uid: str) -> None:
        raise NotImplementedError

    def restore(self, uid: str) -> None:
        raise NotImplementedError

    def listed(self, project: str) -> list[Memory]:
        """Return the newest memories of the project in a folder."""
        raise NotImplementedError

    @classmethod
    def verbs(cls) -> list[str]:
        """Return which of the verbs it has."""
        names = ("remember", "find", "get", "erase")
        return [name for name in names if getattr(cls, name) is not getattr(Face, name)]

    def code(self, error: Any) -> object:
        """Return how an error tells what it is."""
        return error.code

    def kill(self) -> None:
        """Kill the process that holds the store, at once."""
        raise NotImplementedError

    def close(self) -> None:
        """End in good order."""

    @contextmanager
    def refuses(self, what: str) -> Iterator[None]:
        """The documented error comes, and the store is as it was."""
        before = self.place.contents()
        with pytest.raises(self.error) as refused:
            yield
        assert self.code(refused.value) == self.codes[what]
        assert self.place.contents() == before
