"""Experiences: context, action and result; kept, found, judged, consolidated and learned from."""

from __future__ import annotations

from engram.engine.reembedding import Reembedding
from engram.experience.exchange import Exchange
from engram.experience.judging import Judgement, Judging
from engram.experience.results import ExperienceStatus, Imported, ImportedExperience, Stored
from engram.experience.searching import Found, Hit, Searching

__all__ = [
    "ExperienceMemory",
    "ExperienceStatus",
    "Found",
    "Hit",
    "Imported",
    "ImportedExperience",
    "Judgement",
    "Stored",
]


class ExperienceMemory(Exchange, Searching, Judging, Reembedding):
    """Experiences in a store: what was done, in what situation, and what came of it.

    An experience is an episode, so `Engram` recalls and erases it; what `Engram` keeps is in the
    same store. Arguments are those of `Engram`. One instance may be used from many threads.
    """
