"""Check observations: what callers say they observed."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.storage.lifecycle import EVIDENCE
from engram.storage.standing import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.storage.connection import Connection


class Payload(NamedTuple):
    """What a caller observed, normalised; JSON in its canonical form, times in Unix seconds."""

    project_path: str
    evidence_id: str
    session_id: str
    assumption_id: str
    outcome: str
    observed_at: float
    expires_at: float
    observation: str
    provenance: str
    source_refs: str

    @property
    def id(self) -> str:
        """The public id: a project has one observation for each evidence id."""
        pair = json.dumps([self.project_path, self.evidence_id], separators=(",", ":"))
        return EVIDENCE + hashlib.sha256(pair.encode()).hexdigest()

    @property
    def digest(self) -> bytes:
        """SHA-256 of all of it: two are equal where their digests are."""
        return hashlib.sha256(json.dumps(self, separators=(",", ":")).encode()).digest()


class StoredObservation(NamedTuple):
    """A check observation as its row has it; times in microseconds.

    Attributes:
        id: Its public id.
        payload: What was observed.
        digest: SHA-256 of the payload when it was stored.
        stored_at: When that was.
        forgotten: Whether it is hidden.
        inactive: Whether it has a status, or was invalidated, that keeps it from being found.
    """

    id: str
    payload: Payload
    digest: bytes
    stored_at: int
    forgotten: bool
    inactive: bool

    @property
    def intact(self) -> bool:
        """Whether the payload is the one that was stored under this id, and could have been."""
        return (
            self.digest == self.payload.digest
            and self.id == self.payload.id
            and math.isfinite(self.payload.observed_at)
            and math.isfinite(self.payload.expires_at)
        )


_PAYLOAD = ", ".join(Payload._fields)
_NUMBERS = ("observed_at", "expires_at")
# Texts as bytes, for what is no UTF-8 would take the rows after it along.
_READ = ", ".join(name if name in _NUMBERS else f"CAST({name} AS BLOB)" for name in Payload._fields)
_SELECT = (
    f"SELECT CAST(id AS BLOB), payload_sha256, stored_at, forgotten_at IS NOT NULL,"  # noqa: S608
    f" {UNAVAILABLE.format('o')} IS NOT NULL, {_READ} FROM check_observation AS o"
)


class Observations:
    """The check observations of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, payload: Payload, at: int) -> None:
        """Store what was observed, unless its project has an observation of this evidence id.

        Args:
            payload: What was observed.
            at: The time, in microseconds.
        """
        self._connection.execute(
            f"INSERT INTO check_observation (id, {_PAYLOAD}, payload_sha256, stored_at)"  # noqa: S608
            f" VALUES (?{', ?' * (len(payload) + 2)}) ON CONFLICT DO NOTHING",
            (payload.id, *payload, payload.digest, at),
        )

    def remove(self, observation: str) -> bool:
        """Erase the observation with a public id and its history; return whether it was there."""
        self._connection.execute("DELETE FROM check_observation WHERE id = ?", (observation,))
        if not self._connection.changed:
            return False
        self._connection.execute("DELETE FROM lifecycle_change WHERE memory = ?", (observation,))
        return True

    def get(self, observation: str) -> StoredObservation | None:
        """Return the observation with a public id, hidden or not."""
        return next(self._read("WHERE id = ?", (observation,)), None)

    def newest_first(
        self, project: str, session: str | None, assumption: str | None
    ) -> Iterator[StoredObservation]:
        """Yield the active observations of a project as they are asked for, ties by larger id.

        Args:
            project: Its canonical path.
            session: Only those of this session.
            assumption: Only those about this assumption.
        """
        conditions, bindings = ["project_path = ?"], [project]
        for column, value in (("session_id", session), ("assumption_id", assumption)):
            if value is not None:
                conditions.append(f"{column} = ?")
                bindings.append(value)
        return self._read(
            f"WHERE {' AND '.join(conditions)} AND {UNAVAILABLE.format('o')} IS NULL"
            " ORDER BY stored_at DESC, id DESC",
            tuple(bindings),
        )

    def altered(self) -> int:
        """Count the observations that are not what was stored; reads all of them."""
        return sum(not stored.intact for stored in self._read("", ()))

    def _read(self, which: str, bindings: tuple[str, ...]) -> Iterator[StoredObservation]:
        rows = self._connection.execute(f"{_SELECT} {which}", bindings)
        return (
            StoredObservation(
                _decoded(identifier),
                Payload(*map(_decoded, payload)),
                digest,
                stored_at,
                bool(forgotten),
                bool(inactive),
            )
            for identifier, digest, stored_at, forgotten, inactive, *payload in rows
        )


def _decoded(value: Any) -> Any:
    """Return the text of bytes, and a number as it is.

    What is no UTF-8 becomes lone surrogates: nothing that holds one was ever stored, so the
    observation is not intact.
    """
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
