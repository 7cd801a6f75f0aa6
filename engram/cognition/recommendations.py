"""What consolidation finds and recommends, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MatchType = Literal["exact", "similar"]


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Experiences that say the same.

    Attributes:
        primary_id: Of those that are equal to the byte, the smallest id; of others, the one that
            all are like.
        duplicate_ids: The others, sorted.
        similarity: 1.0 where they are equal; else the least cosine of a part, or, where they have
            no vectors, the least share of common words.
        match_type: "exact" or "similar".
    """

    primary_id: str
    duplicate_ids: tuple[str, ...]
    similarity: float
    match_type: MatchType


@dataclass(frozen=True, slots=True)
class Preview:
    """What there is to consolidate.

    Attributes:
        duplicate_groups: Experiences that say the same; each is in one group at most.
        stale_ids: Those that were found of little use, were never used and are old.
        garbage_ids: Those that name a parent which is not in the store.
    """

    duplicate_groups: tuple[DuplicateGroup, ...]
    stale_ids: tuple[str, ...]
    garbage_ids: tuple[str, ...]

    @property
    def duplicates(self) -> int:
        """How many groups of duplicates there are."""
        return len(self.duplicate_groups)

    @property
    def stale(self) -> int:
        """How many are stale."""
        return len(self.stale_ids)

    @property
    def garbage(self) -> int:
        """How many are garbage."""
        return len(self.garbage_ids)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What should be done to one experience.

    Attributes:
        action: `type` is "merge", "archive", "delete" or "keep". A merge has `source_id`, the one
            that survives, and `target_id`, the one it absorbs; the others have `memory_id`.
        confidence: 0 to 1.
        reasoning: Why.
    """

    action: dict[str, str]
    confidence: float
    reasoning: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """What should be done.

    Attributes:
        analyzed_count: How many experiences were judged.
        recommendations: Duplicates first, then what is stale, then garbage; no experience is to
            be changed by more than one.
        errors: What could not be judged, and why; each begins with "analyze ".
    """

    analyzed_count: int
    recommendations: tuple[Recommendation, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done.

    Attributes:
        merged: Experiences that another one absorbed.
        deleted: Those that were forgotten.
        archived: Those that were put away.
        kept: Duplicates that were judged not to be.
        errors: Those of the analysis, then what changed meanwhile and was left alone; the latter
            begin with "apply ".
        run_id: What `undo` takes; None where nothing was changed.
    """

    merged: int
    deleted: int
    archived: int
    kept: int
    errors: tuple[str, ...]
    run_id: str | None
