"""Memories as other programs hand them over: one JSON document, or JSON Lines of memories.

A document holds `memories` and, beside them, `entities`, `relationships` and `entity_mentions`; in
JSON Lines each line is a memory. Members that are not known here are left out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from engram import arguments
from engram.errors import InvalidArgument
from engram.models import MEMORY_TYPES
from engram.paths import Resolver, ownership
from engram.provenance import DEFAULT_PROVENANCE, TRUSTED_PROVENANCE
from engram.storage.graph import MENTIONS
from engram.transfer.forms import beginning, filled
from engram.transfer.rows import Row
from engram.transfer.strict_json import items, members, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.models import StoredModel
    from engram.storage import Record

    Placed = tuple[str, str, Record]

VERSION: Final = "1.0"
HUMAN: Final = "remember:human"
"""The source type of what a person said: nothing else is trusted as the user's own words."""

_LONGEST = 200
_TYPE_OF_KIND = {"factual": "fact", "procedural": "procedure", "experiential": "narrative"}
_TYPE_OF_LAYER = {"semantic": "fact", "procedural": "procedure"}
_LARGEST_WEIGHT = 1e9


class MemoryFile:
    """A file of memories to be read, as often as needed; every pass checks every value.

    Args:
        file: The file, opened for reading bytes.
        agent: Whose the memories are going to be.
        now: The time, in microseconds.
        model: The model whose vectors the file's are; None leaves them out.

    Raises:
        InvalidArgument: It holds no memories.
    """

    def __init__(
        self, file: IO[bytes], *, agent: str | None, now: int, model: StoredModel | None
    ) -> None:
        self._file = file
        self._agent = agent
        self._now = now
        self._model = model
        # The second pass is inside a write transaction, and has to say what the first one said.
        self._paths = Resolver()
        where, value = beginning(file)
        first = members(value, where or "the document")
        self._document = first if where is None or "memories" in first else None
        if self._document is None and "content" not in first:
            message = f"{where} holds no memories"
            raise InvalidArgument(message, "a document has `memories`, each of which has `content`")
        if self._document is not None and self._document.get("version", VERSION) != VERSION:
            message = f"the document's version must be {VERSION!r}"
            raise InvalidArgument(message)

    @property
    def model(self) -> StoredModel | None:
        """The model of the vectors that the records bring."""
        return self._model

    def count(self) -> int:
        """Return how many records there are at most; lines are counted anew."""
        if self._document is None:
            return sum(1 for _ in self._lines())
        return sum(len(self._table(name)) for name in _TABLES)

    def read(self) -> Iterator[Placed]:
        """Yield each record with its kind and its place.

        Raises:
            InvalidArgument, InvalidType: A value is refused, or two memories have one id.
        """
        places: dict[str, str] = {}
        for where, value in self._memories():
            row = _MemoryRow(members(value, where), where, self._now)
            record = memory_record(row, agent=self._agent, model=self._model, paths=self._paths)
            before = places.setdefault(record["uid"], where)
            if before != where:
                message = f"{where}.id is that of {before}"
                raise InvalidArgument(message)
            yield "episode", where, record
        if self._document is not None:
            yield from self._graph()

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        self._file.seek(0)
        return filled(self._file)

    def _memories(self) -> Iterator[tuple[str, Any]]:
        if self._document is None:
            return ((where, parse(line, where)) for where, line in self._lines())
        return ((f"memories[{at}]", value) for at, value in enumerate(self._table("memories")))

    def _table(self, name: str) -> list[Any]:
        assert self._document is not None  # noqa: S101 - lines have no tables
        return items(self._document.get(name) or [], name)

    def _rows(self, name: str) -> Iterator[_MemoryRow]:
        for at, value in enumerate(self._table(name)):
            where = f"{name}[{at}]"
            yield _MemoryRow(members(value, where), where, self._now)

    def _graph(self) -> Iterator[Placed]:
        """Yield entities and the edges that lead to them.

        Ids of entities are keys of this file alone: in the store an entity is known by its name.
        """
        ids: dict[str, str] = {}
        for row in self._rows("entities"):
            record = _entity(row)
            ids[row.key("id", "name")] = record["uid"]
            yield "entity", row.where, record
        seen: set[tuple[Any, ...]] = set()
        for name, read in (("relationships", _relationship), ("entity_mentions", _mention)):
            for row in self._rows(name):
                edge = read(row, ids)
                if edge is None:
                    continue
                what = edge.get("episode") or edge["entity"], edge["target"], edge["relation"]
                if what not in seen:
                    seen.add(what)
                    yield "edge", row.where, edge | {"agent": self._agent}


_TABLES = ("memories", "entities", "relationships", "entity_mentions")


class _MemoryRow(Row):
    """An object of such a file."""

    def key(self, *names: str) -> str:
        """Return the first of some members that is there: a text, or a whole number, as a key."""
        name = self.first(*names)
        value, where = self._get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return f"#{value}"
        return arguments.label(value, where, _LONGEST)

    def first(self, *names: str) -> str:
        """Return the first name of a member that is there; where none is, the first name."""
        return next((name for name in names if self.has(name)), names[0])

    def label(self, name: str, default: str) -> str:
        """Return a text of at most 200 characters without the space around it."""
        value, where = self._get(name)
        return default if value is None else arguments.label(value, where, _LONGEST)

    def object(self, name: str) -> Mapping[str, Any]:
        """Return an object, an empty one where there is none."""
        value = self._values.get(name)
        return {} if value is None else value

    def memory_id(self, name: str) -> str:
        """Return the id of a memory; it has no white space around it."""
        uid = super().memory_id(name)
        if uid != uid.strip():
            message = f"{self.place(name)} must not begin or end with white space"
            raise InvalidArgument(message)
        return uid


class ArgumentRow(_MemoryRow):
    """A memory that is given as the arguments of a call, and is checked under their names."""

    def place(self, name: str) -> str:
        """Return the name of the argument."""
        return {"id": "memory_id", "source_file": "source_path"}.get(name, name)


def memory_record(
    row: _MemoryRow, *, agent: str | None, model: StoredModel | None, paths: Resolver | None = None
) -> Record:
    """Return the record of a memory, everything checked.

    Whose it is is decided here, against the file system as it is now.

    Args:
        row: The memory.
        agent: Whose it is going to be.
        model: The model that its vector is of; None leaves the vector out.
        paths: Looks paths up; None does so anew.

    Raises:
        InvalidArgument, InvalidType: A value is refused.
    """
    content, source, metadata = row.text("content"), row.optional("source_file"), _metadata(row)
    stored_metadata = arguments.json_object(metadata, row.place("metadata"))
    created = row.moment("created_at")
    recorded = row.now if created is None else created
    happened = _date(row, "fact_date")
    importance = row.number("importance", 0.5, 0.0, 1.0)
    status = row.label("status", "active")
    source_type = row.label("source_type", "") or None
    owner = ownership(metadata, source, paths)
    record: Record = {
        "uid": row.memory_id("id"),
        "agent": agent,
        "content": content,
        "occurred_at": recorded if happened is None else happened,
        "recorded_at": recorded,
        "salience": importance,
        "emotional_valence": row.number("emotional_valence", 0.0, -1.0, 1.0),
        "provenance": TRUSTED_PROVENANCE if source_type == HUMAN else DEFAULT_PROVENANCE,
        "quarantined": 0,
        "layer": row.label("layer", "episodic"),
        "memory_type": _memory_type(row, metadata),
        "status": None if status == "active" else status,
        "forgotten_at": row.now if row.flag("forgotten") else None,
        "invalidated_at": row.now if metadata.get("invalidated") else None,
        "project_path": owner.project,
        "project_conflict": int(owner.conflict),
        "source_path": owner.source,
        "source_raw": source,
        "source_type": source_type,
        "content_hash": base64.b64encode(hashlib.sha256(content.encode()).digest()).decode(),
        "metadata": stored_metadata,
        "strength": _strength(row, importance),
    }
    vector = _vector(row, model)
    return record if vector is None else record | {"vectors": [vector]}


def _metadata(row: _MemoryRow) -> Mapping[str, Any]:
    """Return a memory's metadata, still unchecked, with the dates that have no other place."""
    given: Mapping[str, Any] = row.object("metadata")
    lost = [name for name in ("fact_date", "fact_date_end") if row.has(name)]
    if _date(row, "fact_date") is not None:
        lost.remove("fact_date")
    if lost and isinstance(given, Mapping):
        return {name: row.text(name) for name in lost} | dict(given)
    return given


def _date(row: _MemoryRow, name: str) -> int | None:
    """Return the microseconds of a date, None where there is none or the text is no exact one."""
    row.optional(name)
    try:
        return row.optional_time(name)
    except InvalidArgument:
        return None


def _memory_type(row: _MemoryRow, metadata: Mapping[str, Any]) -> str:
    given = row.optional("memory_type")
    if given is None:
        kind = metadata.get("type")
        layer = _TYPE_OF_LAYER.get(row.label("layer", ""), "narrative")
        return _TYPE_OF_KIND.get(kind, layer) if isinstance(kind, str) else layer
    if given not in MEMORY_TYPES:
        message = f"{row.place('memory_type')} must be one of {', '.join(MEMORY_TYPES)}"
        raise InvalidArgument(message)
    return given


def _strength(row: _MemoryRow, importance: float) -> Record:
    accesses, latest = row.count("access_count"), row.moment("last_accessed")
    if not accesses and latest is None:
        return {"importance": importance}
    return {"importance": importance, "access_count": accesses, "last_accessed_at": latest}


def _vector(row: _MemoryRow, model: StoredModel | None) -> bytes | None:
    """Return a memory's vector as it is stored, having checked it; None where it is not usable.

    Raises:
        InvalidArgument: It is not base64 of float32 numbers, of the model's dimension if there is
            one, all finite.
    """
    name = "embedding_b64"
    text, where = row.optional(name), row.place(name)
    if text is None:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        message = f"{where} must be base64"
        raise InvalidArgument(message) from None
    if not raw or len(raw) % 4:
        message = f"{where} must be float32 numbers"
        raise InvalidArgument(message)
    numbers = np.frombuffer(raw, "<f4").astype(np.float64)
    if model is not None and len(numbers) != model.dim:
        message = f"{where} must be {model.dim} numbers, not {len(numbers)}"
        raise InvalidArgument(message)
    if not np.isfinite(numbers).all():
        message = f"{where} must be finite numbers"
        raise InvalidArgument(message)
    if model is None:
        return None
    length = np.linalg.norm(numbers)
    # A vector of zeros is what a text without meaning has.
    return (numbers / (length or 1.0)).astype("<f2").tobytes()


def _entity(row: _MemoryRow) -> Record:
    return {
        "uid": str(uuid.uuid4()),
        "name": row.id("name"),
        "type": row.label(row.first("entity_type", "type"), "unknown"),
        "aliases": row.names("aliases"),
        "first_seen": row.moment("first_seen"),
        "last_seen": row.moment("last_seen"),
    }


def _relationship(row: _MemoryRow, ids: Mapping[str, str]) -> Record | None:
    source = ids.get(row.key("source_entity_id", "source_id", "source"))
    target = ids.get(row.key("target_entity_id", "target_id", "target"))
    if source is None or target is None:
        return None
    relation = row.label(row.first("relation_type", "relation", "type"), "related")
    return {"entity": source} | _edge(row, target, relation)


def _mention(row: _MemoryRow, ids: Mapping[str, str]) -> Record | None:
    target = ids.get(row.key("entity_id"))
    memory = row.text("memory_id")
    return None if target is None else {"episode": memory} | _edge(row, target, MENTIONS)


def _edge(row: _MemoryRow, target: str, relation: str) -> Record:
    created = row.moment("created_at")
    return {
        "target": target,
        "relation": relation,
        "weight": row.number(row.first("strength", "weight"), 1.0, 0.0, _LARGEST_WEIGHT),
        "created_at": row.now if created is None else created,
    }
