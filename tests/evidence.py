"""Check observations that tests put."""

from __future__ import annotations

from stand_ins import Clock

from engram.ledger.evidence import CheckObservation, UnknownEvidence

ATLAS = "/projects/atlas"
NOW = Clock().now.timestamp()
YEAR = 365 * 86_400


def well_formed(**changes: object) -> dict[str, object]:
    return {
        "session_id": "release-check",
        "assumption_id": "artifact-matches",
        "evidence_id": "e1",
        "outcome": "supported",
        "observed_at": NOW,
        "expires_at": NOW + 3600,
        "observation": {"actual": "same hash"},
        "provenance": {"producer": "kiln", "check_type": "artifact-hash"},
    } | changes


def reason(view: CheckObservation | UnknownEvidence) -> str | None:
    return view.reason if isinstance(view, UnknownEvidence) else None
