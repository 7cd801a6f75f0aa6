"""What the calls about experiences take and return."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedExperience:
    """An experience as an export spells it; see `Experience`.

    Attributes:
        id: Its public id, 1 to 100 bytes.
        memory_type: One of the types.
        context: The situation.
        action: What was done.
        result: What came of it.
        score: How useful it was found; 0 where it was not judged.
        tags: Labels, in order.
        project: Whose it is.
        parent_id: The id of what it follows from, which may be missing.
        source_ids: Of an insight: ids of what it rests on, separated by commas.
        insight_type: Of an insight: "cluster", "temporal" or "causal".
        created_at: ISO 8601, or any other text, which is kept and says no time.
        updated_at: Likewise.
        used_count: How often it was stored again.
        last_used_at: When it was last, likewise; None: never.
    """

    id: str
    memory_type: str
    context: str
    action: str
    result: str
    score: float
    created_at: str
    updated_at: str
    used_count: int
    tags: tuple[str, ...] = ()
    project: str | None = None
    parent_id: str | None = None
    source_ids: str | None = None
    insight_type: str | None = None
    last_used_at: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did.

    Attributes:
        imported: How many experiences were written.
        skipped: How many were not, for their ids were taken.
        refused: How many were not, for they cannot be kept.
    """

    imported: int
    skipped: int
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Embedded:
    """How many experiences searches find by meaning, of those that lists show.

    Attributes:
        total: How many there are.
        waiting: How many of them wait to be embedded.
    """

    total: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ExperienceStatus:
    """How much there is, of what this instance sees.

    Attributes:
        memory_count: Experiences, insights and merged ones among them; neither those that
            consolidation deleted nor quarantined ones.
        indexed_count: Those of them that searches find by meaning.
        pending_judgments: Episodes that searches returned and nobody judged.
        index_size: Episodes, experiences or not, that searches by meaning go through.
        waiting: Episodes whose texts wait to be embedded.
        episodes: Episodes, experiences or not, hidden ones among them.
        facts: Facts of the whole file.
        quarantined: Episodes that are quarantined.
    """

    memory_count: int
    indexed_count: int
    pending_judgments: int
    index_size: int
    waiting: int
    episodes: int
    facts: int
    quarantined: int


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
        failure: What ended it: the code of an error, or the name of its class where that is none of
            engram's; None when it ended well.
        messages: Messages it printed.
        insights: Insights among them, without those drawn from what was erased meanwhile.
        duration_secs: Seconds it says it took.
        recommendation_count: How many recommendations of it are kept, those of episodes that are
            there, 10,000 at most.
        recommendations: The first of them: the id of an episode, what to do with it, and why.
        metrics: Names and values.
        artifacts: Paths of files, sizes in bytes, and SHA-256 digests in hexadecimal, None of what
            could not be read or has more than 16 MiB.
    """

    id: str
    started_at: str
    finished_at: str
    failure: str | None
    messages: int
    insights: int
    duration_secs: float | None
    recommendation_count: int
    recommendations: list[tuple[str, str, str]]
    metrics: list[tuple[str, float]]
    artifacts: list[tuple[str, int, str | None]]
