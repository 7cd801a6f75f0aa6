"""Check observations: stored, read and listed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from engram import arguments, entries
from engram.arguments import label
from engram.entries import LONGEST_LABEL
from engram.errors import InvalidArgument
from engram.ledger.opening import Opening
from engram.ledger.sources import Sources
from engram.paths import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engram.storage.ledger_store import LedgerStore
    from engram.storage.observations import Payload, StoredObservation

MAX_EVIDENCE: Final = 50


@dataclass(frozen=True, slots=True)
class CheckObservation:
    """What a caller observed, and what it is worth now. Engram did not verify it.

    Attributes:
        id: Its public id.
        project_path: The canonical path of its project.
        evidence_id: The caller's name for it in the project.
        session_id: The session it belongs to.
        assumption_id: What was checked.
        reported_outcome: What the caller reported, one of `entries.OUTCOMES`.
        outcome: What that is worth now: "unknown" once it has expired.
        state: The outcome, or "stale" once it has expired.
        observed_at: When it was observed, Unix seconds.
        expires_at: When it stops being worth anything, Unix seconds.
        stored_at: When it was stored, Unix seconds.
        observation: What was seen.
        provenance: Who says so.
        source_refs: What it cites, sorted.
    """

    id: str
    project_path: str
    evidence_id: str
    session_id: str
    assumption_id: str
    reported_outcome: str
    outcome: str
    state: str
    observed_at: float
    expires_at: float
    stored_at: float
    observation: Mapping[str, Any]
    provenance: Mapping[str, Any]
    source_refs: tuple[str, ...]

    @property
    def eligible(self) -> bool:
        """Whether it may still be used."""
        return self.state != "stale"


@dataclass(frozen=True, slots=True)
class UnknownEvidence:
    """Evidence of which nothing may be said but why.

    Attributes:
        id: Its public id; None where there is none.
        reason: "not_found", "forgotten" or "inactive"; "source_missing", "source_forgotten",
            "source_unavailable", "source_inactive" or "source_stale" where that is what something
            it rests on is.
        evidence_id: The caller's name for it; None unless it is listed. So for the next two.
        session_id: The session it belongs to.
        assumption_id: What was checked.
    """

    id: str | None
    reason: str
    evidence_id: str | None = None
    session_id: str | None = None
    assumption_id: str | None = None

    @property
    def state(self) -> str:
        """Always "unknown"."""
        return "unknown"

    @property
    def outcome(self) -> str:
        """Always "unknown"."""
        return "unknown"

    @property
    def eligible(self) -> bool:
        """Never."""
        return False


@dataclass(frozen=True, slots=True)
class EvidenceReceipt:
    """What storing an observation came to.

    Attributes:
        id: Its public id, to be saved for `get_evidence`.
        evidence_id: The caller's name for it.
        stored_at: When it was first stored, Unix seconds.
        view: What it is worth now.
    """

    id: str
    evidence_id: str
    stored_at: float
    view: CheckObservation | UnknownEvidence


class EvidenceRecords(Opening):
    """The calls about evidence.

    Arguments are checked in the order in which they are listed, all before the store is opened.
    Texts lose the space around them; their lengths count it. They may hold any character but lone
    surrogates, inside of JSON too.
    """

    def put_evidence(
        self,
        project: str,
        *,
        session_id: str,
        assumption_id: str,
        evidence_id: str,
        outcome: str,
        observed_at: float,
        expires_at: float,
        observation: Mapping[str, object],
        provenance: Mapping[str, object],
        source_refs: Iterable[str] | None = (),
    ) -> EvidenceReceipt:
        """Store what a caller observed, once and for ever; the check itself is the caller's.

        The same contents under the same evidence id are a repetition: they change nothing, and
        bring back nothing that was hidden. Contents are the same where their normal forms are:
        texts without the space around them, sources in order and once each, times as numbers,
        members of objects in any order. `1`, `1.0` and `True` inside objects differ.

        Args:
            project: The project's folder, absolute; any spelling of it.
            session_id: The session it belongs to; for this and all below see
                `entries.observation`.
            assumption_id: What was checked.
            evidence_id: The observation's name in its project.
            outcome: What came of it.
            observed_at: When it was observed, Unix seconds.
            expires_at: When it stops being worth anything, Unix seconds; may be past.
            observation: What was seen.
            provenance: Who says so.
            source_refs: What it cites. A text that begins with `memory:` names a memory, a fact or
                other evidence, which need not be there; nothing else is looked up.

        Raises:
            InvalidArgument: An argument is refused, or the evidence id has other contents.
            InvalidType: An argument is of the wrong type.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy, StoreFull: The store cannot be
                written.
        """
        payload = entries.observation(
            canonical(project, "project"),
            session_id=session_id,
            assumption_id=assumption_id,
            evidence_id=evidence_id,
            outcome=outcome,
            observed_at=observed_at,
            expires_at=expires_at,
            observation=observation,
            provenance=provenance,
            source_refs=source_refs,
            stored_at=self._now() / 1e6,
        )
        # A repetition writes nothing, so it need not wait for who does.
        with self._reading() as store:
            found = _found(store, payload, self._now())
        if found is None:
            with self._writing() as store:
                now = self._now()
                store.observations.add(payload, now)
                found = _found(store, payload, now)
        if not isinstance(found, EvidenceReceipt):
            message = "evidence_id names an observation with other contents in this project"
            raise InvalidArgument(message, "observations never change; choose another id")
        return found

    def get_evidence(self, project: str, evidence: str) -> CheckObservation | UnknownEvidence:
        """Return an observation as it is worth now. Changes nothing.

        What is nowhere, of another project or not what was stored is "not_found" all the same.

        Args:
            project: The project's folder, absolute; any spelling of it.
            evidence: The public id.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy: The store cannot be read.
        """
        path = canonical(project, "project")
        identifier = label(evidence, "evidence", LONGEST_LABEL)
        with self._reading() as store:
            stored = store.observations.get(identifier)
            if stored is None or stored.payload.project_path != path or not stored.intact:
                return UnknownEvidence(None, "not_found")
            return _view(stored, Sources(store, self._now()))

    def list_evidence(
        self,
        project: str,
        *,
        session_id: str | None = None,
        assumption_id: str | None = None,
        limit: int = 20,
    ) -> list[CheckObservation | UnknownEvidence]:
        """Return a project's observations, the last stored first, ties by larger id.

        Forgotten and inactive ones, and such as are not what was stored, are left out; expired ones
        and those whose sources are broken are not. Changes nothing.

        Args:
            project: The project's folder, absolute; any spelling of it.
            session_id: Only those of this session.
            assumption_id: Only those about this assumption.
            limit: How many at most, 1 to `MAX_EVIDENCE`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy: The store cannot be read.
        """
        path = canonical(project, "project")
        session = None if session_id is None else label(session_id, "session_id", LONGEST_LABEL)
        assumption = (
            None if assumption_id is None else label(assumption_id, "assumption_id", LONGEST_LABEL)
        )
        count = arguments.integer(limit, "limit", 1, MAX_EVIDENCE)
        with self._reading() as store:
            found = list(islice(_intact(store, path, session, assumption), count))
            sources = Sources(store, self._now())
            return [_view(stored, sources, listed=True) for stored in found]


def _found(
    store: LedgerStore, payload: Payload, now: int
) -> EvidenceReceipt | Literal[False] | None:
    """Return what is stored of a payload: None is nothing, False is other contents."""
    stored = store.observations.get(payload.id)
    if stored is None:
        return None
    if not stored.intact or stored.payload.digest != payload.digest:
        return False
    view = _view(stored, Sources(store, now))
    return EvidenceReceipt(stored.id, payload.evidence_id, stored.stored_at / 1e6, view)


def _intact(
    store: LedgerStore, project: str, session: str | None, assumption: str | None
) -> Iterator[StoredObservation]:
    found = store.observations.newest_first(project, session, assumption)
    return (stored for stored in found if stored.intact)


def _view(
    stored: StoredObservation, sources: Sources, *, listed: bool = False
) -> CheckObservation | UnknownEvidence:
    """Return what an observation is worth; `listed` is that its labels may be told."""
    reason = (
        "forgotten"
        if stored.forgotten
        else "inactive"
        if stored.inactive
        else sources.broken(stored)
    )
    payload = stored.payload
    if reason is not None:
        labels = (payload.evidence_id, payload.session_id, payload.assumption_id)
        return UnknownEvidence(stored.id, reason, *(labels if listed else ()))
    expired = sources.expired(stored)
    return CheckObservation(
        id=stored.id,
        project_path=payload.project_path,
        evidence_id=payload.evidence_id,
        session_id=payload.session_id,
        assumption_id=payload.assumption_id,
        reported_outcome=payload.outcome,
        outcome="unknown" if expired else payload.outcome,
        state="stale" if expired else payload.outcome,
        observed_at=payload.observed_at,
        expires_at=payload.expires_at,
        stored_at=stored.stored_at / 1e6,
        observation=json.loads(payload.observation),
        provenance=json.loads(payload.provenance),
        source_refs=tuple(json.loads(payload.source_refs)),
    )
