"""The processes that other programs ask: `engram api` over pipes, `engram server` over a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from contract.faces.face import Face, Memory
from engram_server import Server
from workers import Worker

from engram.errors import RequestFailed
from engram.server.client import SocketClient

_WHOLE = "It serves the whole file as one tenant."
_ONE_TEXT = "Its searches take a question and a number."
HALVES = "What is no Unicode text is refused, questions too."
_NO_VERB = "It has no operation for that."


# Texts that are nearly the same are memories of their own, and a word finds what has it.
SETTINGS = """
[deduplication]
threshold = 1.0
[search]
vector_weight = 0.5
sparse_weight = 0.5
"""


class JsonlFace(Face):
    about = "JSONL"
    lacks: ClassVar[Mapping[str, str]] = {
        "remember": "It has no operation that stores a memory; hosts store with the library.",
        "get": _NO_VERB,
        "filter": _ONE_TEXT,
        "filter.quarantine": "Quarantined memories are always left out.",
        "time": _ONE_TEXT,
        "scope": _WHOLE,
        "trust": "It tells neither source nor quarantine; quarantined memories are left out.",
        "erase.name": "It erases nothing.",
        "erase.bytes": "It erases nothing.",
        "erase.unknown": "It erases nothing.",
        "hide": _NO_VERB,
        "unicode.halves": "It stores no memory.",
        "unicode.question": HALVES,
        "limits.empty": "It stores no memory.",
        "limits.beyond": "It stores no memory.",
        "limits.blank": "A blank question is refused.",
        "pairs.written": "It stores no memory.",
        "many.killed": "It stores no memory; checkpoints and observations are tested with its own.",
    }
    writes = False
    most = 20
    error = RequestFailed
    codes: ClassVar[Mapping[str, object]] = {"value": "invalid_params", "type": "invalid_params"}

    def __init__(self, place: Any, agent: str | None = None) -> None:
        super().__init__(place, agent)
        self.worker = Worker(place.config)

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        answer = self.worker.ask("search", query=query, top_k=k, **filters)
        if "error" in answer:
            raise RequestFailed(answer["error"]["code"], answer["error"]["message"])
        return [Memory(row["id"], row["content"]) for row in answer["result"]]

    def listed(self, project: str) -> list[Memory]:
        rows = self.worker.result("recall", project_id=project)["memories"]
        return [Memory(row["id"], row["content"]) for row in rows]

    def kill(self) -> None:
        self.worker.process.kill()

    def close(self) -> None:
        self.worker.__exit__()


class SocketFace(Face):
    about = "socket"
    lacks: ClassVar[Mapping[str, str]] = {
        "remember.actors": "The protocol has no actors.",
        "remember.answers": "The protocol has no actors.",
        "remember.time": "The protocol has no time of an event: a memory is of when it is stored.",
        "remember.twice": "The same memory again is used once more, as the protocol says.",
        "find.project": "It has no method for that; a search can be within a project.",
        "erase.name": "It has no method for that.",
        "hide": "It has no method for that; a consolidation hides what is stale.",
        "get": "It has no method for one memory; an export has its own.",
        "filter.actors": "The protocol has no actors.",
        "filter.time": "Its searches have no times.",
        "filter.provenance": "The protocol has no sources.",
        "filter.quarantine": "Quarantined memories are always left out.",
        "filter.value": "What is kept with a text is not searched.",
        "time": "Its searches have no times.",
        "scope": _WHOLE,
        "trust": "The protocol has neither sources nor quarantine; all it stores is external.",
        "limits.count": "None may be asked for, and any number.",
        "unicode.question": HALVES,
    }
    longest = 10_000
    error = RequestFailed
    codes: ClassVar[Mapping[str, object]] = {
        "value": 6007,
        "type": 6007,
        "halves": 4000,
        "missing": 1002,
    }

    def __init__(self, place: Any, agent: str | None = None) -> None:
        super().__init__(place, agent)
        self.server = Server(place.folder, SETTINGS).__enter__()
        self.client = SocketClient(self.server.socket)

    def remember(self, text: str, *, tags: Any = None) -> str:
        stored = self.ask("memory_store", context=text, action="", result="", tags=tags)
        return str(stored["id"])

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        found = self.ask("memory_search", query=query, limit=k, **filters)
        return [Memory(hit["id"], hit["context"], _tags(hit["tags"])) for hit in found["results"]]

    def erase(self, uid: str) -> None:
        self.ask("memory_delete", id=uid)

    def ask(self, method: str, **params: Any) -> Any:
        """Return what a method of the protocol returns."""
        return self.client.call(method, **params)

    def code(self, error: Any) -> object:
        return error.number

    def kill(self) -> None:
        self.server.process.kill()
        self.server.process.communicate()

    def close(self) -> None:
        self.client.close()
        if self.server.process.poll() is None:
            self.server.__exit__()
        self.server.peer.close()


def _tags(text: str | None) -> list[str]:
    return [] if text is None else json.loads(text)
