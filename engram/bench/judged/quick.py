"""The few figures that are printed until the summary is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pathlib import Path


def document(file: Path) -> dict[str, Any]:
    """Return turn and session recall at 5 of a file of records, abstentions and category 5 out."""
    header, *records = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    asked = [one for one in records if not one["abstention"] and one["kind"] != "5"]
    labels = list(asked[0]["answers"]) if asked else []
    return {**header, "variants": {label: _figures(asked, label) for label in labels}}


def _figures(records: list[dict[str, Any]], label: str) -> dict[str, float]:
    figures: dict[str, float] = {}
    for level, column in (("turn", 0), ("session", 1)):
        judged = [one for one in records if one[f"gold_{level}s"]]
        tops = [
            set(list(dict.fromkeys(hit[column] for hit in one["answers"][label]))[:5])
            for one in judged
        ]
        gold = [set(one[f"gold_{level}s"]) for one in judged]
        pairs = list(zip(gold, tops, strict=True))
        figures[f"{level}_n"] = len(judged)
        figures[f"{level}_recall_any@5"] = sum(bool(g & t) for g, t in pairs) / max(1, len(pairs))
        figures[f"{level}_recall_all@5"] = sum(g <= t for g, t in pairs) / max(1, len(pairs))
    return figures
