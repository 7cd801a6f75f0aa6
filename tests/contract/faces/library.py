"""The Python library, and its twin for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, TypeVar

from contract.faces.face import Face, Memory

from engram import AsyncEngram, Engram
from engram.errors import EngramError
from engram.ledger import Ledger

R = TypeVar("R")

_NO_CEILING = "The program is trusted: what it declares is stored as it is."
_NO_LIMIT = "Texts have no limit."
_NO_SESSION = "It watches no session: the program says whether it had read untrusted words."
_NO_LEDGER = "The ledger has no twin for asyncio."


class PythonFace(Face):
    about = "Python"
    lacks: ClassVar[Mapping[str, str]] = {
        "filter.value": "What is kept with a text is not searched.",
        "trust.lowered": _NO_CEILING,
        "trust.clean": _NO_SESSION,
        "trust.session": _NO_SESSION,
        "limits.beyond": _NO_LIMIT,
    }
    child = True
    most = 4096
    error = EngramError
    codes: ClassVar[Mapping[str, object]] = {
        "value": "invalid_argument",
        "choice": "invalid_argument",
        "halves": "invalid_argument",
        "type": "invalid_type",
        "missing": "not_found",
    }

    def __init__(self, place: Any, agent: str | None = None) -> None:
        super().__init__(place, agent)
        self.memory = Engram(place.store, agent_id=agent)
        self.ledger = Ledger(place.store)

    def remember(self, text: str, **details: Any) -> str:
        return self.memory.observe(text, **_arguments(details))

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        return [Memory.of(hit.episode) for hit in self.memory.recall(query, k, **filters)]

    def get(self, uid: str) -> Memory:
        return Memory.of(self.memory.get(uid))

    def erase(self, uid: str) -> None:
        self.memory.forget(uid)

    def erase_named(self, name: str) -> None:
        self.memory.forget_entity(name, content_sweep=True)

    def hide(self, uid: str) -> None:
        self.ledger.hide(uid)

    def restore(self, uid: str) -> None:
        self.ledger.restore(uid)

    def listed(self, project: str) -> list[Memory]:
        return [Memory(one.id, one.content) for one in self.ledger.recent(project)]

    def close(self) -> None:
        self.ledger.close()
        self.memory.close()


class Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AsyncFace(Face):
    about = "async"
    lacks: ClassVar[Mapping[str, str]] = {
        **PythonFace.lacks,
        "find.project": _NO_LEDGER,
        "hide": _NO_LEDGER,
    }
    child = True
    most = PythonFace.most
    error = PythonFace.error
    codes = PythonFace.codes

    def __init__(self, place: Any, agent: str | None = None) -> None:
        super().__init__(place, agent)
        self.loop = Loop()
        self.memory = AsyncEngram(place.store, agent_id=agent)

    def remember(self, text: str, **details: Any) -> str:
        return self.loop.run(self.memory.observe(text, **_arguments(details)))

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        hits = self.loop.run(self.memory.recall(query, k, **filters))
        return [Memory.of(hit.episode) for hit in hits]

    def get(self, uid: str) -> Memory:
        return Memory.of(self.loop.run(self.memory.get(uid)))

    def erase(self, uid: str) -> None:
        self.loop.run(self.memory.forget(uid))

    def erase_named(self, name: str) -> None:
        self.loop.run(self.memory.forget_entity(name, content_sweep=True))

    def close(self) -> None:
        self.loop.run(self.memory.close())
        self.loop.close()


def _arguments(details: dict[str, Any]) -> dict[str, Any]:
    return {("timestamp" if name == "at" else name): value for name, value in details.items()}
