"""The store that LangGraph keeps an agent's memories in."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from contract.faces.face import Face, Memory

from engram.errors import EngramError, NotFound
from engram.items import ItemMemory

_VALUE = "An item is a value under a key; it has nothing of an episode's."
_NAMESPACE = ("memories",)


class LangGraphFace(Face):
    about = "LangGraph"
    lacks: ClassVar[Mapping[str, str]] = {
        "remember.tags": _VALUE,
        "remember.actors": _VALUE,
        "remember.answers": _VALUE,
        "remember.time": _VALUE,
        "find.words": "It searches by meaning alone.",
        "find.operators": "It searches by meaning alone.",
        "find.project": _VALUE,
        "filter.tags": _VALUE,
        "filter.actors": _VALUE,
        "filter.time": _VALUE,
        "filter.provenance": _VALUE,
        "filter.quarantine": _VALUE,
        "time": "LangGraph's searches have no times.",
        "trust": _VALUE,
        "erase.name": "LangGraph deletes by key.",
        "erase.unknown": "To delete what is not there is no error in LangGraph.",
        "hide": "LangGraph has no word for that.",
        "unicode.words": "It searches by meaning alone.",
        "limits.long": "It searches by meaning alone.",
        "limits.beyond": "Texts have no limit.",
        "limits.count": "None may be asked for, and more than any store has.",
        "pairs.found": "It finds items alone: what others keep has no namespace and no key.",
    }
    child = True
    lenient = ("remember", "erase")
    error = EngramError
    codes: ClassVar[Mapping[str, object]] = {
        "halves": "invalid_argument",
        "type": "invalid_type",
        "missing": "not_found",
    }
    keys: ClassVar[dict[str, str]] = {}

    def __init__(self, place: Any, agent: str | None = None) -> None:
        super().__init__(place, agent)
        # Here, so that the tests of other faces do not wait for LangGraph.
        from engram.adapters.langgraph import EngramStore

        # Who has the items open knows the episodes that they are, by whose ids others find them.
        self.items = ItemMemory(place.store, agent_id=agent)
        self.store = EngramStore(self.items, index={"fields": ["text"]})

    def remember(self, text: str, **members: Any) -> str:
        key = str(uuid.uuid4())
        self.store.put(_NAMESPACE, key, {"text": text, **members})
        uid = self._id(key)
        self.keys[uid] = key
        return uid

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        found = self.store.search(_NAMESPACE, query=query, limit=k, filter=filters)
        return [Memory(self._id(one.key), one.value["text"]) for one in found]

    def get(self, uid: str) -> Memory:
        item = self.store.get(_NAMESPACE, self.keys.get(uid, uid))
        if item is None:
            # As LangGraph says that there is nothing.
            message = "None"
            raise NotFound(message)
        return Memory(uid, item.value["text"])

    def erase(self, uid: str) -> None:
        self.store.delete(_NAMESPACE, self.keys.get(uid, uid))

    def close(self) -> None:
        self.store.close()
        self.items.close()

    def _id(self, key: str) -> str:
        kept = self.items.get(_NAMESPACE, key)
        assert kept is not None
        return kept.id
