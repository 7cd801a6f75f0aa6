"""Lines of memories and of what a ledger keeps: what no call could have written stays out."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from engram import arguments, entries
from engram.errors import InvalidArgument
from engram.storage.items import namespace_text
from engram.storage.lifecycle import FORGET, INVALIDATE, RESTORE, STATUS
from engram.storage.merged_tags import ADDED
from engram.storage.observations import Payload
from engram.transfer.rows import memory_id
from engram.transfer.strict_json import items, members, parse

if TYPE_CHECKING:
    from engram.storage import Record


_ACTIONS = (FORGET, INVALIDATE, RESTORE)
_GIVEN = ("created_at", "updated_at", "last_used_at")
_LATEST = 2**62


def check_episode(record: Record, where: str) -> None:
    """Check the id and the status of an episode, whose columns have their types.

    Raises:
        InvalidArgument: No store could hold it.
    """
    memory_id(record["uid"], f"{where}.uid")
    _check_status(record, where)


def _check_status(record: Record, where: str) -> None:
    if "status" in record:
        entries.status(record["status"], f"{where}.status")


def check_experience(record: Record, where: str) -> None:
    """Check what a record says of an experience, whose columns have their types.

    Raises:
        InvalidArgument: No store could hold it.
    """
    if "given_times" not in record:
        return
    place = f"{where}.given_times"
    given = members(parse(record["given_times"], place), place)
    if not given.keys() <= set(_GIVEN):
        message = f"{place} must have no other members than {', '.join(_GIVEN)}"
        raise InvalidArgument(message)
    for name, text in given.items():
        arguments.text(text, f"{place}.{name}")


def check_item(record: Record, where: str) -> None:
    """Check what a record says of an item, whose columns have their types, and write it as a put.

    Raises:
        InvalidArgument, InvalidType: No store could hold it.
    """
    place = f"{where}.namespace"
    labels = arguments.names(items(parse(record["namespace"], place), place), place)
    if namespace_text(labels) != record["namespace"]:
        message = f"{place} must be written without spaces, and nothing escaped without need"
        raise InvalidArgument(message)
    place = f"{where}.value"
    value = members(parse(record["value"], place), place)
    record["value"] = arguments.json_object(value, place) or "{}"
    if "parts" in record:
        place = f"{where}.parts"
        sizes = items(parse(record["parts"], place), place)
        for size in sizes:
            arguments.integer(size, place, 0, _LATEST)
        if not sizes:
            message = f"{place} must not be empty"
            raise InvalidArgument(message)


def check_step(record: Record, where: str) -> None:
    """Check the record of a step of a consolidation, whose columns have their types.

    Raises:
        InvalidArgument, InvalidType: No store could hold it.
    """
    place = f"{where}.memories"
    named = arguments.names(items(parse(record["memories"], place), place), place)
    merge = record["action"] == "merge"
    if len(named) != 1 + merge:
        message = f"{place} must name {'two memories' if merge else 'one memory'}"
        raise InvalidArgument(message)
    place = f"{where}.before"
    before = members(parse(record["before"], place), place)
    if not before.keys() <= {ADDED}:
        message = f"{place} must have no other member than {ADDED}"
        raise InvalidArgument(message)
    for name, tags in before.items():
        arguments.names(items(tags, f"{place}.{name}"), f"{place}.{name}")


def check_change(record: Record, where: str) -> None:
    """Check the record of what was done to a memory, whose columns have their types.

    Raises:
        InvalidArgument: No call of a `Ledger` does that.
    """
    place, action = f"{where}.action", record["action"]
    arguments.label(record["memory"], f"{where}.memory", entries.LONGEST_LABEL)
    if action.startswith(STATUS):
        entries.status(action.removeprefix(STATUS), place)
    elif action not in _ACTIONS:
        message = f"{place} must be one of {', '.join(_ACTIONS)}, or {STATUS!r} and one"
        raise InvalidArgument(message)
    entries.reason(record.get("reason"), f"{where}.reason")
    _check_clock(record, "at", where)


def _check_clock(record: Record, name: str, where: str) -> None:
    """Check a time that comes from a clock: those are of 1970 or later."""
    arguments.integer(record[name], f"{where}.{name}", 0, _LATEST)


def check_observation(record: Record, where: str) -> None:
    """Check the record of a check observation, whose columns have their types.

    Raises:
        InvalidArgument, InvalidType: `Ledger.put_evidence` would not have stored it like this.
    """
    _check_status(record, where)
    given = Payload(**{name: record[name] for name in Payload._fields})
    documents = {
        name: shape(parse(record[name], f"{where}.{name}"), f"{where}.{name}")
        for name, shape in (
            ("observation", members),
            ("provenance", members),
            ("source_refs", items),
        )
    }
    payload = entries.observation(
        given.project_path,
        session_id=given.session_id,
        assumption_id=given.assumption_id,
        evidence_id=given.evidence_id,
        outcome=given.outcome,
        observed_at=given.observed_at,
        expires_at=given.expires_at,
        **documents,
        stored_at=record["stored_at"] / 1e6,
        place=f"{where}.",
    )
    digest = base64.b64decode(record["payload_sha256"])
    if (given, record["id"], digest) != (payload, payload.id, payload.digest):
        message = f"{where} is not the observation that its id and its checksum stand for"
        raise InvalidArgument(message, "it was edited, or damaged before it was exported")


def check_checkpoint(record: Record, where: str) -> None:
    """Check the record of a session checkpoint, whose columns have their types.

    Raises:
        InvalidArgument, InvalidType: `Ledger.save_checkpoint` would not have saved it like this.
    """
    _check_clock(record, "created_at", where)
    given = (
        record["task"],
        record["summary"],
        *(
            tuple(items(parse(record[name], f"{where}.{name}"), f"{where}.{name}"))
            for name in ("decisions", "next_steps", "blockers")
        ),
    )
    if given != entries.checkpoint(*given, place=f"{where}."):
        message = f"{where} has a text with space around it"
        raise InvalidArgument(message)
