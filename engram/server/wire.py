"""The shapes of what the server returns, for type checkers."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Stored(TypedDict):
    """What became of a memory that was to be stored."""

    id: str
    indexed: bool
    deduplicated: bool
    merged_into: NotRequired[str]


class Hit(TypedDict):
    """A memory that a search found; its tags are the text of a JSON array."""

    id: str
    score: float
    memory_type: str
    context: str
    action: str
    result: str
    tags: str | None


class Routing(TypedDict):
    """What the learning router advises for such tasks."""

    mode: str
    search_strategy: str
    llm_selection: str
    contextualization: str
    proactivity: str


class Found(TypedDict):
    """What a search found, best first; `results` and `memories` are the same."""

    results: list[Hit]
    memories: list[Hit]
    count: int
    degraded: bool
    query_id: str
    routing: Routing


class Judgement(TypedDict):
    """How useful a memory was, and why."""

    score: float
    reason: str
    degraded: bool


class Deleted(TypedDict):
    """The id of what is no more."""

    deleted: str


class Status(TypedDict):
    """How much there is, and what should be done."""

    memory_count: int
    indexed_count: int
    pending_judgments: int
    index_size: int
    waiting: int
    episodes: int
    facts: int
    quarantined: int
    hints: list[str]
    training: dict[str, Any] | None


class Record(TypedDict):
    """A memory as exports have it; its tags are the text of a JSON array."""

    id: str
    memory_type: str
    context: str
    action: str
    result: str
    score: float
    tags: str | None
    project: str | None
    parent_id: str | None
    source_ids: str | None
    insight_type: str | None
    created_at: str
    updated_at: str
    used_count: int
    last_used_at: str | None


class Export(TypedDict):
    """Every memory, in the form that an import takes."""

    version: int
    memories: list[Record]
    exported_at: str
    count: int


class Imported(TypedDict):
    """How many memories an import brought in, and how many were there already."""

    imported: int
    skipped: int


class DuplicateGroup(TypedDict):
    """Memories that say the same: the one that would stay, and the others."""

    primary_id: str
    duplicate_ids: list[str]
    similarity: float
    match_type: str


class Preview(TypedDict):
    """What a consolidation would look at; the first three are counts."""

    duplicates: int
    stale: int
    garbage: int
    duplicate_groups: list[DuplicateGroup]
    stale_ids: list[str]
    garbage_ids: list[str]


class Recommendation(TypedDict):
    """What should become of a memory; `action` has a `type` and the ids that it is about."""

    action: dict[str, str]
    confidence: float
    reasoning: str


class Analysis(TypedDict):
    """What should become of each candidate."""

    analyzed_count: int
    recommendations: list[Recommendation]
    errors: list[str]


class Applied(TypedDict):
    """What a consolidation did."""

    merged: int
    deleted: int
    archived: int
    kept: int
    errors: list[str]
    run_id: str | None


class Step(TypedDict):
    """One thing that a consolidation did."""

    id: str
    run_id: str
    action: str
    memory_ids: list[str]
    reason: str
    performed_at: str
    performed_by: str
    undone: bool


class Log(TypedDict):
    """What consolidations did, newest first."""

    log: list[Step]
    count: int


class Undone(TypedDict):
    """How many steps of a run were taken back."""

    run_id: str
    undone: int


class Generated(TypedDict):
    """What came of a run of the trainer."""

    generated: int
    messages_parsed: int


class Insights(TypedDict):
    """The trainer's insights."""

    insights: list[Record]
    count: int


class Reembedded(TypedDict):
    """How many memories have vectors, and of which model."""

    total: int
    succeeded: int
    failed: int
    model: str | None


class Migrated(TypedDict):
    """What was read from the reference server's database, and what became of it."""

    read: int
    matched: int
    migrated: int
    skipped_duplicate: int
    skipped_null_project: int
    skipped_other_project: int
    dry_run: bool
    all: bool
    project_hint: str | None
