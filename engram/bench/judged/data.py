"""A data set with judgements: what is remembered and asked, and apart from it what is right."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from engram.bench.judged.asking import Turn

if TYPE_CHECKING:
    from datetime import datetime

    from engram.bench.judged.asking import Question

__all__ = ["DataSet", "Haystack", "Labels", "Said", "Session", "sampled", "turns_of"]

_USER = "user"


@dataclass(frozen=True)
class Said:
    """A turn of a session: its id, who said it ("" for a document), and the text."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Session:
    """Turns of one conversation, in order; several sessions may go by one id."""

    id: str
    at: datetime | None
    turns: list[Said]


@dataclass(frozen=True)
class Haystack:
    """Sessions that are remembered together, in the order they took place, and what is asked."""

    sessions: list[Session]
    questions: list[Question]


@dataclass(frozen=True)
class Labels:
    """What is right for a question; only what scores reads it.

    Attributes:
        kind: The question's type or category.
        turns: Ids of the turns that hold evidence.
        sessions: Ids of the sessions that do.
        abstention: Nothing answers the question.
        grades: How relevant each judged document is; None where no documents are judged.
    """

    kind: str
    turns: list[str]
    sessions: list[str]
    abstention: bool = False
    grades: dict[str, int] | None = None


@dataclass(frozen=True)
class DataSet:
    """Haystacks in the data's order, and the labels of every question by its id."""

    haystacks: list[Haystack]
    labels: dict[str, Labels]


def turns_of(
    haystack: Haystack, *, whole_sessions: bool, user_only: bool, without_speakers: bool = False
) -> list[Turn]:
    """Return what of a haystack is remembered; texts that are empty are not.

    Turns of a session lie a second apart.

    Args:
        haystack: The haystack.
        whole_sessions: One text for each session instead of one for each turn.
        user_only: Leave out what others than the user said.
        without_speakers: Nobody is said to have said a turn.
    """
    turns: dict[str, Turn] = {}
    for session in haystack.sessions:
        said = [
            (at, turn)
            for at, turn in enumerate(session.turns)
            if turn.text.strip() and not (user_only and turn.speaker != _USER)
        ]
        if whole_sessions and said:
            text = "\n".join(f"{turn.speaker}: {turn.text}" for _, turn in said)
            turns.setdefault(session.id, Turn(session.id, session.id, "", text, session.at))
        elif not whole_sessions:
            for at, turn in said:
                when = None if session.at is None else session.at + timedelta(seconds=at)
                speaker = "" if without_speakers else turn.speaker
                turns[turn.id] = Turn(turn.id, session.id, speaker, turn.text, when)
    return list(turns.values())


def sampled(data: DataSet, count: int | None, seed: int, limit: int | None) -> DataSet:
    """Return a data set with fewer questions, in their old order.

    Args:
        data: The whole.
        count: About how many to draw, each kind by its share and at least once; None is all.
        seed: Which are drawn.
        limit: Only the first so many of those; None is all.
    """
    ids = [question.id for haystack in data.haystacks for question in haystack.questions]
    drawn = set(ids) if count is None else _drawn(data, ids, count, seed)
    kept = set([one for one in ids if one in drawn][:limit])
    haystacks = [
        Haystack(haystack.sessions, [one for one in haystack.questions if one.id in kept])
        for haystack in data.haystacks
    ]
    return DataSet([one for one in haystacks if one.questions], data.labels)


def _drawn(data: DataSet, ids: list[str], count: int, seed: int) -> set[str]:
    by_kind: defaultdict[str, list[str]] = defaultdict(list)
    for one in ids:
        by_kind[data.labels[one].kind].append(one)
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    return {
        one
        for kind in sorted(by_kind)
        for one in chance.sample(
            by_kind[kind],
            min(len(by_kind[kind]), max(1, round(count * len(by_kind[kind]) / len(ids)))),
        )
    }
