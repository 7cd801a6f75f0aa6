"""What the calls about experiences return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of an experience that was to be stored.

    Attributes:
        id: Its id, or that of the one which says the same.
        indexed: Searches find it by meaning; False: its text waits to be embedded.
        deduplicated: Nothing was written but that the other one was used again.
    """

    id: str
    indexed: bool
    deduplicated: bool = False


@dataclass(frozen=True, slots=True)
class Generated:
    """What a run of the trainer brought.

    Attributes:
        generated: Insights that stand now because of it; 0 leaves the earlier ones standing.
        messages_parsed: Messages it printed, of all kinds.
    """

    generated: int
    messages_parsed: int


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A run of the trainer, and what it said beside its insights.

    Attributes:
        id: Its id.
        started_at: ISO 8601, in UTC, whole seconds.
        finished_at: Likewise.
        failure: What ended it: the code of an error, None when it ended well.
        messages: Messages it printed.
        insights: Insights among them.
        duration_secs: Seconds it says it took.
        recommendations: The id of an episode, what to do with it, and why.
        metrics: Names and values.
        artifacts: Paths of files, sizes in bytes, and SHA-256 digests in hexadecimal.
    """

    id: str
    started_at: str
    finished_at: str
    failure: str | None
    messages: int
    insights: int
    duration_secs: float | None
    recommendations: list[tuple[str, str, str]]
    metrics: list[tuple[str, float]]
    artifacts: list[tuple[str, int, str | None]]
