"""Experiences: context, action and result; kept, found, judged, consolidated and learned from."""

from __future__ import annotations

from engram.cognition.recommendations import (
    Analysis,
    Applied,
    DuplicateGroup,
    Preview,
    Recommendation,
)
from engram.engine.reembedding import Reembedding
from engram.experience.consolidating import Consolidating
from engram.experience.exchange import Exchange
from engram.experience.generating import Generating
from engram.experience.judging import Judgement, Judging
from engram.experience.operations import OPERATIONS
from engram.experience.results import (
    ExperienceStatus,
    Generated,
    Imported,
    ImportedExperience,
    Stored,
    TrainingRun,
)
from engram.experience.searching import Found, Hit, Searching
from engram.storage.consolidations import ConsolidationStep
from engram.storage.triplets import Experience
from engram.tracing import traced

__all__ = [
    "Analysis",
    "Applied",
    "ConsolidationStep",
    "DuplicateGroup",
    "Experience",
    "ExperienceMemory",
    "ExperienceStatus",
    "Found",
    "Generated",
    "Hit",
    "Imported",
    "ImportedExperience",
    "Judgement",
    "Preview",
    "Recommendation",
    "Stored",
    "TrainingRun",
]


@traced(OPERATIONS, "experience.")
class ExperienceMemory(Exchange, Searching, Judging, Consolidating, Generating, Reembedding):
    """Experiences in a store: what was done, in what situation, and what came of it.

    An experience is an episode, so `Engram` recalls and erases it; what `Engram` keeps is in the
    same store. Arguments are those of `Engram`. One instance may be used from many threads.
    """
