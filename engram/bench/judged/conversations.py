"""The files of LongMemEval and of LoCoMo."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from engram.bench.judged.asking import Question
from engram.bench.judged.data import DataSet, Haystack, Labels, Said, Session
from engram.bench.judged.groups import GROUPS
from engram.bench.judged.reading import Content, moment, refused, unique

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["locomo", "longmemeval"]

_LONGMEMEVAL = "LongMemEval file"
_LOCOMO = "LoCoMo file"
_ABSTENTION = "_abs"
_WEEKDAY = re.compile(r"\s*\([^)]*\)\s*")
_SESSION = re.compile(r"session_(0|[1-9][0-9]{,8})")
_EVIDENCE = re.compile(r"[;\s]+")
_DIALOG = re.compile(r"D0*([0-9]{1,9}):0*([0-9]{1,9})")
_SESSION_DATE = "%I:%M %p on %d %B, %Y"


class _Message(msgspec.Struct):
    role: str
    content: str
    has_answer: bool | None = None


class _Asked(msgspec.Struct):
    question_id: str
    question_type: str
    question: str
    question_date: str
    answer_session_ids: list[str]


class _Instance(_Asked):
    haystack_dates: list[str]
    haystack_session_ids: list[str]
    haystack_sessions: list[list[_Message]]


class _Listed(msgspec.Struct):
    session_id: str
    date: str
    turns: list[_Message]


class _Composed(msgspec.Struct):
    sessions: list[_Listed]
    questions: list[_Asked]


class _Line(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _Judged(msgspec.Struct):
    question: str
    category: int
    evidence: list[str] = []


class _Conversation(msgspec.Struct):
    sample_id: str
    conversation: dict[str, msgspec.Raw]
    qa: list[_Judged]


def longmemeval(content: Content) -> DataSet:
    """Return the questions of a LongMemEval file.

    A list of instances, as the authors publish it, has a haystack for each question; an object of
    sessions and questions has one for all.

    Raises:
        BadFileError: It is neither.
    """
    if content.is_list:
        instances = content.decoded(list[_Instance], _LONGMEMEVAL)
        unique((one.question_id for one in instances), content.name, _LONGMEMEVAL, "questions")
        pairs: list[tuple[list[_Listed], Sequence[_Asked]]] = [
            (_listed(one, content), [one]) for one in instances
        ]
    else:
        composed = content.decoded(_Composed, _LONGMEMEVAL)
        unique(
            (one.question_id for one in composed.questions),
            content.name,
            _LONGMEMEVAL,
            "questions",
        )
        pairs = [(composed.sessions, composed.questions)]
    haystacks: list[Haystack] = []
    labels: dict[str, Labels] = {}
    for listed, questions in pairs:
        sessions, flagged = _sessions(listed, content)
        haystacks.append(Haystack(sessions, [_question(one, content) for one in questions]))
        if any(one.question_type in GROUPS for one in questions):
            reason = "a type of question has the name of a group"
            raise refused(content.name, _LONGMEMEVAL, reason)
        labels |= {one.question_id: _labels(one, sessions, flagged) for one in questions}
    return DataSet(haystacks, labels)


def _listed(instance: _Instance, content: Content) -> list[_Listed]:
    parts = (
        instance.haystack_session_ids,
        instance.haystack_dates,
        instance.haystack_sessions,
    )
    if len({len(part) for part in parts}) != 1:
        reason = "a question has not as many session ids and dates as sessions"
        raise refused(content.name, _LONGMEMEVAL, reason)
    return [_Listed(*one) for one in zip(*parts, strict=True)]


def _sessions(listed: list[_Listed], content: Content) -> tuple[list[Session], set[str]]:
    """Return sessions in the order of their dates, and the ids of the turns that are flagged."""
    sessions: list[Session] = []
    flagged: set[str] = set()
    seen: Counter[str] = Counter()
    dates: list[datetime] = []
    for one in listed:
        seen[one.session_id] += 1
        again = f"~{seen[one.session_id]}" if seen[one.session_id] > 1 else ""
        said: list[Said] = []
        for position, message in enumerate(one.turns, 1):
            said.append(Said(f"{one.session_id}{again}#{position}", message.role, message.content))
            if message.has_answer:
                flagged.add(said[-1].id)
        dates.append(moment(one.date, _day_and_time, content.name, _LONGMEMEVAL, "a session"))
        sessions.append(Session(one.session_id, dates[-1], said))
    _check_turns(sessions, content, _LONGMEMEVAL)
    return [sessions[at] for at in sorted(range(len(dates)), key=dates.__getitem__)], flagged


def _question(asked: _Asked, content: Content) -> Question:
    at = moment(asked.question_date, _day_and_time, content.name, _LONGMEMEVAL, "a question")
    return Question(asked.question_id, asked.question, at)


def _labels(asked: _Asked, sessions: list[Session], flagged: set[str]) -> Labels:
    gold = set(asked.answer_session_ids)
    there = [session for session in sessions if session.id in gold]
    return Labels(
        asked.question_type,
        [turn.id for session in there for turn in session.turns if turn.id in flagged],
        list(dict.fromkeys(session.id for session in there)),
        abstention=asked.question_id.endswith(_ABSTENTION),
    )


def _day_and_time(text: str) -> datetime:
    bare = _WEEKDAY.sub(" ", text).strip()
    form = "%Y/%m/%d %H:%M" if ":" in bare else "%Y/%m/%d"
    return datetime.strptime(bare, form).replace(tzinfo=UTC)


def locomo(content: Content) -> DataSet:
    """Return the questions of a LoCoMo file: each conversation is a haystack.

    The caption of a shared picture follows the text. Evidence is read as far as it names turns of
    the conversation; ids may be joined by semicolons or blanks and have zeros before their numbers.

    Raises:
        BadFileError: It is no list of such conversations.
    """
    conversations = content.decoded(list[_Conversation], _LOCOMO)
    unique((one.sample_id for one in conversations), content.name, _LOCOMO, "conversations")
    haystacks: list[Haystack] = []
    labels: dict[str, Labels] = {}
    for one in conversations:
        sessions, places = _talks(one, content)
        ids = [f"{one.sample_id}:{number}" for number in range(1, len(one.qa) + 1)]
        haystacks.append(
            Haystack(
                sessions,
                [Question(uid, qa.question, None) for uid, qa in zip(ids, one.qa, strict=True)],
            )
        )
        labels |= {uid: _evidence(qa, places) for uid, qa in zip(ids, one.qa, strict=True)}
    return DataSet(haystacks, labels)


def _talks(
    conversation: _Conversation, content: Content
) -> tuple[list[Session], dict[tuple[int, int], tuple[str, str]]]:
    """Return the sessions, and the turn and the session that each number of evidence means."""
    parts = conversation.conversation
    numbers = sorted(int(found[1]) for key in parts if (found := _SESSION.fullmatch(key)))
    sessions: list[Session] = []
    places: dict[tuple[int, int], tuple[str, str]] = {}
    for number in numbers:
        name = f"session_{number}"
        lines = content.decoded(list[_Line], _LOCOMO, parts[name])
        if not lines:
            continue
        date = content.decoded(str, _LOCOMO, parts.get(f"{name}_date_time", msgspec.Raw(b'""')))
        at = moment(date, _spoken_date, content.name, _LOCOMO, "a session")
        said: list[Said] = []
        for position, line in enumerate(lines, 1):
            caption = f" [shares {line.blip_caption}]" if line.blip_caption else ""
            said.append(Said(f"D{number}#{position}", line.speaker, line.text + caption))
            if found := _DIALOG.fullmatch(line.dia_id):
                place = int(found[1]), int(found[2])
                if place in places:
                    raise refused(content.name, _LOCOMO, "two turns have the same id")
                places[place] = said[-1].id, f"D{number}"
        sessions.append(Session(f"D{number}", at, said))
    _check_turns(sessions, content, _LOCOMO)
    return sessions, places


def _check_turns(sessions: list[Session], content: Content, what: str) -> None:
    """Refuse what holds no turn, or two of one id.

    Raises:
        BadFileError: It does.
    """
    ids = [turn.id for session in sessions for turn in session.turns]
    if not ids:
        raise refused(content.name, what, "a question has no turns to find")
    unique(ids, content.name, what, "turns")


def _spoken_date(text: str) -> datetime:
    return datetime.strptime(text, _SESSION_DATE).replace(tzinfo=UTC)


def _evidence(qa: _Judged, places: dict[tuple[int, int], tuple[str, str]]) -> Labels:
    named = [_DIALOG.fullmatch(part) for each in qa.evidence for part in _EVIDENCE.split(each)]
    keys = dict.fromkeys((int(found[1]), int(found[2])) for found in named if found)
    there = [places[key] for key in keys if key in places]
    return Labels(
        str(qa.category),
        [turn for turn, _ in there],
        list(dict.fromkeys(session for _, session in there)),
    )
