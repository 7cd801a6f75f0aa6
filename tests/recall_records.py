"""Records of judged questions, as the benchmark writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HEADER = {"set": "longmemeval", "data_sha256": "5e7", "model": "m", "settings": {"k": 50}}


def record(
    question: str,
    answers: Iterable[str] | Mapping[str, list[list[Any]]],
    gold: Iterable[str] = (),
    *,
    kind: str = "",
    gold_sessions: Iterable[str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a record whose turns have the ids "<session>#<position>", answered by "hybrid".

    Evidence sessions are those of the evidence turns, where no others are given.
    """
    turns = list(gold)
    if not isinstance(answers, Mapping):
        scored = enumerate(answers)
        answers = {"hybrid": [[turn, _session(turn), 1 / (at + 1), None] for at, turn in scored]}
    return {
        "question": question,
        "kind": kind,
        "abstention": False,
        "turns": 100,
        "sessions": 10,
        "gold_turns": turns,
        "gold_sessions": sorted(
            set(map(_session, turns)) if gold_sessions is None else gold_sessions
        ),
        "answers": answers,
        **fields,
    }


def _session(turn: str) -> str:
    return turn.partition("#")[0]


def write_records(
    file: Path, records: Iterable[Mapping[str, Any]], header: Mapping[str, Any] = HEADER
) -> Path:
    """Write records under a header and return the file."""
    file.write_text("".join(json.dumps(line) + "\n" for line in (header, *records)), "utf-8")
    return file
