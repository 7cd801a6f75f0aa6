"""Lines of what a ledger keeps: only what its own calls could have written comes in."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from engram import entries
from engram.errors import InvalidArgument
from engram.storage.observations import Payload
from engram.transfer.strict_json import items, members, parse

if TYPE_CHECKING:
    from engram.storage import Record


def check_observation(record: Record, where: str) -> None:
    """Check the record of a check observation, whose columns have their types.

    Raises:
        InvalidArgument, InvalidType: `Ledger.put_evidence` would not have stored it like this.
    """
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
