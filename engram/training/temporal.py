"""What happens again and again within a week."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engram.training.insights import insight, topic, with_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.training.messages import Insight
    from engram.training.rows import Row

_HOUR: Final = 3_600_000_000
_WINDOW_HOURS: Final = 168
_LEAST: Final = 3


def temporal_patterns(rows: Sequence[Row]) -> list[list[Row]]:
    """Return, for each memory type, what was made within a week of its latest memory.

    Types in the order they are first met, memories in the order of their times. A type with less
    than three is left out, and so is a memory without a time.
    """
    by_type: dict[str, list[tuple[int, Row]]] = {}
    for row in rows:
        if row.created is not None:
            by_type.setdefault(row.memory_type, []).append((row.created, row))
    patterns = []
    for timed in by_type.values():
        earliest = max(created for created, _ in timed) - _WINDOW_HOURS * _HOUR
        recent = sorted((one for one in timed if one[0] >= earliest), key=lambda one: one[0])
        if len(recent) >= _LEAST:
            patterns.append([row for _, row in recent])
    return patterns


def temporal_insight(pattern: Sequence[Row], agent: str | None) -> Insight:
    """Return what a pattern, of an agent or anybody, says.

    Its memories have times, in whose order they are.
    """
    times = [row.created for row in pattern if row.created is not None]
    hours = (times[-1] - times[0]) / (len(times) - 1) / _HOUR
    heading = (
        f"Found a recurring pattern of {len(pattern)} memories of the type"
        f" {pattern[0].memory_type}{topic(pattern)} within {_WINDOW_HOURS} hours"
    )
    latest = pattern[::-1]
    return insight(
        "temporal",
        pattern,
        agent,
        context=with_evidence(heading, (row.context for row in latest)),
        action=f"{len(pattern)} occurrences with ~{hours:.1f}h interval",
        result=with_evidence("What came of the latest", (row.result for row in latest)),
    )
