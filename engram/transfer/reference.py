"""The documented exchange format, version 1: one JSON document.

Values are what the reference library's columns hold: lists as JSON texts, flags as 0, 1 or null,
times as ISO 8601. What is null or missing is read as the least trusted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engram.errors import InvalidArgument
from engram.provenance import UNKNOWN_PROVENANCE, check_provenance
from engram.times import from_micros
from engram.transfer.rows import Row
from engram.transfer.strict_json import items, members

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.storage import Record, RecordReader

VERSION = 1

Document = dict[str, Any]
Placed = tuple[str, str, dict[str, Any]]
"""A record with its kind and its place in the import."""


_STANDING = frozenset({"forgotten_at", "invalidated_at", "status"})


def to_document(reader: RecordReader, now: int) -> Document:
    """Return the document of what a reader sees.

    Args:
        reader: Reads inside the caller's transaction.
        now: The time, in microseconds.
    """
    # The format has no word for a memory that is there and not to be found.
    textless = {one["episode"] for one in reader.read("item") if "parts" not in one}
    available = (
        one
        for one in reader.read("episode")
        if _STANDING.isdisjoint(one) and one["uid"] not in textless
    )
    episodes = sorted(available, key=lambda record: record["occurred_at"])
    runs = [run["uid"] for run in reader.read("reflection")]
    facts = sorted(reader.read("fact"), key=lambda record: record["valid_from"])
    successors = {one["fact"]: one["superseded_by"] for one in reader.read("succession")}
    entities = sorted(reader.read("entity"), key=lambda record: record["name"])
    edges = sorted(reader.read("edge"), key=lambda record: record["created_at"])
    tables = {
        "episodes": [_episode_row(record) for record in episodes],
        "facts": [_fact_row(record, runs, successors) for record in facts],
        "entities": [_entity_row(record) for record in entities],
        "edges": [_edge_row(record) for record in edges],
    }
    return {
        "engram_export_version": VERSION,
        "exported_at": _iso(now),
        "counts": {name: len(rows) for name, rows in tables.items()},
        **tables,
    }


def _iso(micros: int | None) -> str | None:
    return None if micros is None else from_micros(micros).isoformat()


def _episode_row(record: Record) -> dict[str, Any]:
    provenance = record["provenance"]
    return {
        "id": record["uid"],
        "content": record["content"],
        "timestamp": _iso(record["occurred_at"]),
        "actors": json.dumps(record.get("actors", [])),
        "tags": json.dumps(record.get("tags", [])),
        "salience": record["salience"],
        "emotional_valence": record["emotional_valence"],
        "summary_of": json.dumps(record.get("summary_of", [])),
        "importance_score": record.get("strength", {}).get("importance", 1.0),
        "agent_id": record.get("agent"),
        "provenance": None if provenance == UNKNOWN_PROVENANCE else provenance,
        "quarantined": record["quarantined"],
    }


def _fact_row(record: Record, runs: list[str], successors: dict[str, str]) -> dict[str, Any]:
    # A source that can no longer be named is an id that no episode has: it still lowers the trust.
    sources = [
        source.get("episode", source.get("source", "")) for source in record.get("sources", ())
    ]
    return {
        "id": record["uid"],
        "subject": record["subject"],
        "predicate": record["predicate"],
        "object": record["object"],
        "valid_from": _iso(record["valid_from"]),
        "valid_to": _iso(record.get("valid_to")),
        "recorded_at": _iso(record["recorded_at"]),
        "superseded_at": _iso(record.get("superseded_at")),
        "superseded_by": successors.get(record["uid"]),
        "confidence": record["confidence"],
        "derived_from": json.dumps(sources),
        "extracted_by": runs[record["reflection"]] if "reflection" in record else None,
        "agent_id": record.get("agent"),
        "shared": record["shared"],
        "quarantined": record["quarantined"],
    }


def _entity_row(record: Record) -> dict[str, Any]:
    return {
        "id": record["uid"],
        "name": record["name"],
        "type": record["type"],
        "aliases": json.dumps(record.get("aliases", [])),
        "first_seen": _iso(record.get("first_seen")),
        "last_seen": _iso(record.get("last_seen")),
    }


def _edge_row(record: Record) -> dict[str, Any]:
    return {
        "src_id": record.get("episode", record.get("entity")),
        "dst_id": record["target"],
        "relation": record["relation"],
        "weight": record["weight"],
        "created_at": _iso(record["created_at"]),
        "agent_id": record.get("agent"),
    }


def from_document(document: object, now: int) -> list[Placed]:
    """Return the records of a document, everything checked, in the document's order.

    Args:
        document: What `export_json` writes; a document made from an old store may hold
            `reflections` and `access_log` beside.
        now: When it is imported, in microseconds.

    Raises:
        InvalidArgument, InvalidType: The version is another one, or a value is refused; the
            message names its place.
    """
    tables = members(document, "the document")
    version = tables.get("engram_export_version")
    if type(version) is not int or version != VERSION:
        message = f"engram_export_version must be {VERSION}"
        raise InvalidArgument(message, "this is no export, or one of a newer version")
    placed: list[Placed] = []
    for name, kind, read in _TABLES:
        for at, value in enumerate(items(tables.get(name, []), name)):
            row = Row(members(value, f"{name}[{at}]"), f"{name}[{at}]", now)
            placed.append((kind, row.where, read(row)))
    facts = [one for one in placed if one[0] == "fact"]
    successions = [
        ("succession", where, {"fact": fact["uid"], "superseded_by": fact["superseded_by"]})
        for _, where, fact in facts
        if fact["superseded_by"] is not None
    ]
    return placed + successions


def _episode(row: Row) -> Record:
    quarantined = row.flag("quarantined")
    declared = row.optional("provenance")
    if declared is not None:
        try:
            check_provenance(declared)
        except InvalidArgument as refused:
            message = f"{row.where}.{refused.message}"
            raise InvalidArgument(message) from None
    # Without a mark the row is from before origins were recorded, whatever it says.
    known = declared if quarantined is not None else None
    return {
        "uid": row.memory_id("id"),
        "agent": row.optional("agent_id"),
        "content": row.text("content"),
        "occurred_at": row.time("timestamp"),
        "recorded_at": row.now,
        "salience": row.number("salience", 0.5, 0.0, 1.0),
        "emotional_valence": row.number("emotional_valence", 0.0, -1.0, 1.0),
        "provenance": known or UNKNOWN_PROVENANCE,
        "quarantined": 1 if quarantined is None else quarantined,
        "actors": row.names("actors"),
        "tags": row.names("tags"),
        "summary_of": row.names("summary_of"),
        "strength": _strength(row.number("importance_score", 1.0, 0.0, 1e9)),
    }


def _strength(importance: float) -> Record | None:
    return None if importance == 1.0 else {"importance": importance}


def _fact(row: Row) -> Record:
    shared, quarantined = row.flag("shared"), row.flag("quarantined")
    begins, ends = row.time("valid_from"), row.optional_time("valid_to")
    return {
        "uid": row.id("id"),
        "agent": row.optional("agent_id"),
        "subject": row.text("subject"),
        "predicate": row.text("predicate"),
        "object": row.text("object"),
        "valid_from": begins,
        # One that was superseded before it began never holds.
        "valid_to": ends if ends is None else max(begins, ends),
        "recorded_at": row.time("recorded_at"),
        "superseded_at": row.optional_time("superseded_at"),
        "superseded_by": row.optional("superseded_by"),
        "confidence": row.number("confidence", 1.0, 0.0, 1.0),
        "sources": [
            {"source": source} if source else {"provenance": UNKNOWN_PROVENANCE}
            for source in row.names("derived_from")
        ],
        "run": row.optional("extracted_by"),
        "shared": 1 if shared is None else shared,
        "quarantined": 1 if quarantined is None else quarantined,
    }


def _entity(row: Row) -> Record:
    return {
        "uid": row.id("id"),
        "name": row.text("name"),
        "type": row.text("type"),
        "aliases": row.names("aliases"),
        "first_seen": row.optional_time("first_seen"),
        "last_seen": row.optional_time("last_seen"),
    }


def _edge(row: Row) -> Record:
    return {
        "source": row.id("src_id"),
        "target": row.id("dst_id"),
        "relation": row.text("relation"),
        "weight": row.number("weight", 1.0, 0.0, 1e9),
        "created_at": row.time("created_at"),
        "agent": row.optional("agent_id"),
    }


def _reflection(row: Row) -> Record:
    return {
        "uid": row.id("id"),
        "agent": row.optional("agent_id"),
        "started_at": row.time("started_at"),
        "finished_at": row.optional_time("finished_at"),
        "episodes_processed": row.count("episodes_processed"),
        "facts_extracted": row.count("facts_extracted"),
        "contradictions_resolved": row.count("contradictions_resolved"),
        "model_used": row.optional("model_used"),
        "cost_tokens": row.count("cost_tokens"),
    }


def _access(row: Row) -> Record:
    return {
        "agent": row.optional("agent_id"),
        "query": row.optional("query"),
        "at": row.time("accessed_at"),
        "results": [{"episode": row.id("memory_id"), "rank": row.count("rank")}],
    }


_TABLES: tuple[tuple[str, str, Callable[[Row], Record]], ...] = (
    ("episodes", "episode", _episode),
    ("reflections", "reflection", _reflection),
    ("entities", "entity", _entity),
    ("facts", "fact", _fact),
    ("edges", "edge", _edge),
    ("access_log", "recall_log", _access),
)
