"""Observations that a number decides: whoever knows it can store the same again."""

from __future__ import annotations

from stand_ins import Clock

from engram.ledger import Ledger

PROJECT = "/projects/atlas"


def put(ledger: Ledger, number: int) -> str:
    at = Clock().now.timestamp()
    return ledger.put_evidence(
        PROJECT,
        session_id=f"s{number % 3}",
        assumption_id=f"a{number % 5}",
        evidence_id=f"e{number}",
        outcome=("supported", "unknown", "contradicted")[number % 3],
        observed_at=at,
        expires_at=at + 60,
        observation={"number": number, "text": "é" * (number % 300)},
        provenance={"producer": "writer", "check_type": "c"},
    ).id
