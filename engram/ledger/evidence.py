"""Check observations: stored, read and listed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from engram import arguments
from engram.arguments import label
from engram.errors import InvalidArgument
from engram.ledger.opening import Opening
from engram.ledger.sources import MEMORY, Sources
from engram.paths import canonical
from engram.storage.observations import Payload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engram.storage.ledger_store import LedgerStore
    from engram.storage.observations import StoredObservation

OUTCOMES: Final = ("unknown", "supported", "contradicted")
LONGEST_LABEL: Final = 200
LONGEST_REFERENCE: Final = 256
MOST_REFERENCES: Final = 8
OBSERVATION_BYTES: Final = 4096
PROVENANCE_BYTES: Final = 2048
AHEAD: Final = 300.0
"""Seconds by which an observation may be ahead of the clock."""
LASTING: Final = 365 * 86_400.0
"""Seconds after which an observation expires at the latest."""
MAX_EVIDENCE: Final = 50

_NAMED = ("producer", "check_type")


@dataclass(frozen=True, slots=True)
class CheckObservation:
    """What a caller observed, and what it is worth now. Engram did not verify it.

    Attributes:
        id: Its public id.
        project_path: The canonical path of its project.
        evidence_id: The caller's name for it in the project.
        session_id: The session it belongs to.
        assumption_id: What was checked.
        reported_outcome: What the caller reported, one of `OUTCOMES`.
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
            session_id: At most `LONGEST_LABEL` characters.
            assumption_id: Likewise.
            evidence_id: Likewise; the observation's name in its project.
            outcome: One of `OUTCOMES`.
            observed_at: Unix seconds, above 0 and at most `AHEAD` after now.
            expires_at: Unix seconds, after that by at most `LASTING`; may be past.
            observation: JSON of at most `OBSERVATION_BYTES`, see `arguments.canonical_json`.
            provenance: JSON of at most `PROVENANCE_BYTES`; its `producer` and `check_type` are
                texts of at most `LONGEST_LABEL` characters.
            source_refs: At most `MOST_REFERENCES` texts of `LONGEST_REFERENCE` characters. One that
                begins with `memory:` names a memory, a fact or other evidence, which need not be
                there; nothing else is looked up. None is no texts.

        Raises:
            InvalidArgument: An argument is refused, or the evidence id has other contents.
            InvalidType: An argument is of the wrong type.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy, StoreFull: The store cannot be
                written.
        """
        path = canonical(project, "project")
        session = label(session_id, "session_id", LONGEST_LABEL)
        assumption = label(assumption_id, "assumption_id", LONGEST_LABEL)
        name = label(evidence_id, "evidence_id", LONGEST_LABEL)
        reported = arguments.text(outcome, "outcome")
        if reported not in OUTCOMES:
            message = f"outcome must be one of {', '.join(OUTCOMES)}"
            raise InvalidArgument(message)
        payload = Payload(
            path,
            name,
            session,
            assumption,
            reported,
            *self._times(observed_at, expires_at),
            arguments.canonical_json(observation, "observation", OBSERVATION_BYTES),
            _provenance(provenance),
            _references(source_refs),
        )
        with self._writing() as store:
            now = self._now()
            store.observations.add(payload, now)
            stored = store.observations.get(payload.id)
            if stored is not None and stored.intact and stored.payload.digest == payload.digest:
                view = _view(stored, Sources(store, now))
                return EvidenceReceipt(stored.id, name, stored.stored_at / 1e6, view)
        message = "evidence_id names an observation with other contents in this project"
        raise InvalidArgument(message, "observations never change; choose another id")

    def _times(self, observed_at: object, expires_at: object) -> tuple[float, float]:
        latest = self._now() / 1e6 + AHEAD
        observed = arguments.number(observed_at, "observed_at")
        if not 0 < observed <= latest:
            message = f"observed_at must be above 0 and at most {AHEAD:g} s after now"
            raise InvalidArgument(message, "times are Unix seconds")
        expires = arguments.number(expires_at, "expires_at")
        if not observed < expires <= observed + LASTING:
            message = f"expires_at must be after observed_at by at most {LASTING:g} s"
            raise InvalidArgument(message)
        return observed, expires

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


def _provenance(value: object) -> str:
    canonical_text = arguments.canonical_json(value, "provenance", PROVENANCE_BYTES)
    given = json.loads(canonical_text)
    for name in _NAMED:
        given[name] = label(given.get(name), f"provenance.{name}", LONGEST_LABEL)
    return arguments.canonical_json(given, "provenance", PROVENANCE_BYTES)


def _references(value: object) -> str:
    given = arguments.names(value, "source_refs")
    if len(given) > MOST_REFERENCES:
        message = f"source_refs must have at most {MOST_REFERENCES} items"
        raise InvalidArgument(message)
    references = {label(one, "each of source_refs", LONGEST_REFERENCE) for one in given}
    if MEMORY in references:
        message = f"each of source_refs that begins with {MEMORY} must name a memory"
        raise InvalidArgument(message)
    return json.dumps(sorted(references), separators=(",", ":"))


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
