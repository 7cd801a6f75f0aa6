"""Consolidation: which experiences are duplicates, stale or garbage, and what to do about them.

Nothing here reads or writes a store, so a language model can be asked for as long as it takes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from engram.cognition.recommendations import Analysis, DuplicateGroup, Preview, Recommendation
from engram.errors import EngramError, LLMCallError, LLMReplyError
from engram.times import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engram.cognition.recommendations import MatchType
    from engram.cognition.similar import Similar
    from engram.storage.consolidations import Candidate

    Question = Callable[[Candidate, Candidate], bool]
    """Says whether a survivor and a member of its group are the same."""

MOST_QUESTIONS: Final = 200
"""What a language model is asked in one run at most."""

BY_RULE: Final = 0.6
MERGE: Final = 0.8
KEEP: Final = 0.7
STALE: Final = 0.9
GARBAGE: Final = 0.95
"""How sure the recommendations are."""

_UNAVAILABLE: Final = "[2002] llm api unavailable"


class Limits(NamedTuple):
    """When an experience is stale: its score is below one, its age above the other; and the time.

    Attributes:
        min_score: Exclusive.
        age: In microseconds, exclusive.
        now: In microseconds.
    """

    min_score: float
    age: int
    now: int

    @classmethod
    def of_days(cls, days: int, min_score: float, now: int) -> Limits:
        """Return the limits for an age in days."""
        return cls(min_score, days * DAY, now)


class Group(NamedTuple):
    """Duplicates, the one that survives first; see `DuplicateGroup`."""

    members: list[Candidate]
    similarity: float
    match_type: MatchType

    def shown(self) -> DuplicateGroup:
        """Return the group as callers see it."""
        ids = [one.id for one in self.members]
        primary = min(ids) if self.match_type == "exact" else ids[0]
        others = tuple(sorted(one for one in ids if one != primary))
        return DuplicateGroup(primary, others, self.similarity, self.match_type)


class Findings(NamedTuple):
    """What there is to consolidate."""

    groups: list[Group]
    stale: list[Candidate]
    garbage: list[Candidate]

    def preview(self) -> Preview:
        """Return the findings as callers see them."""
        return Preview(
            tuple(group.shown() for group in self.groups),
            tuple(one.id for one in self.stale),
            tuple(one.id for one in self.garbage),
        )


class Advice(NamedTuple):
    """What to do to an experience; see `Recommendation`."""

    action: Literal["merge", "keep", "archive", "delete"]
    memory: Candidate
    confidence: float
    reasoning: str
    survivor: Candidate | None = None

    def shown(self) -> Recommendation:
        """Return the advice as callers see it."""
        if self.action == "merge" and self.survivor is not None:
            named = {"source_id": self.survivor.id, "target_id": self.memory.id}
        else:
            named = {"memory_id": self.memory.id}
        return Recommendation({"type": self.action, **named}, self.confidence, self.reasoning)

    def holds(self, now: Mapping[int, Candidate]) -> bool:
        """Say whether the advice is still good, given experiences as they are now, by key.

        It is not where one was judged or used since, which can make another one survive.
        """
        for then in (self.memory, self.survivor):
            if then is not None:
                one = now.get(then.key)
                if one is None or survival(one) != survival(then):
                    return False
        return self.action != "delete" or now[self.memory.key].orphaned


@dataclass
class Advised:
    """What to do, and how that was found out."""

    analyzed: int = 0
    advice: list[Advice] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def shown(self) -> Analysis:
        """Return it as callers see it."""
        given = tuple(one.shown() for one in self.advice)
        return Analysis(self.analyzed, given, tuple(self.errors))


def survival(candidate: Candidate) -> tuple[float, int, int, str]:
    """Return what the better one of two duplicates has less of: it survives.

    It was found more useful, or was used more often, or is older, or has the smaller id.
    """
    return -candidate.score, -candidate.used_count, candidate.created_at, candidate.id


def exact_groups(candidates: Iterable[Candidate]) -> list[Group]:
    """Return those of the same agent, type, project and texts, those begun first in front."""
    same: dict[tuple[int | None, bytes], list[Candidate]] = defaultdict(list)
    for one in candidates:
        same[one.agent, one.digest].append(one)
    return _by_age(
        Group(sorted(members, key=survival), 1.0, "exact")
        for members in same.values()
        if len(members) > 1
    )


def similar_groups(found: Iterable[Similar]) -> list[Group]:
    """Return groups of alike experiences, those begun first in front."""
    return _by_age(
        Group([one.survivor, *sorted(one.others, key=survival)], one.similarity, "similar")
        for one in found
    )


def _by_age(groups: Iterable[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: min((m.created_at, m.id) for m in group.members))


def is_stale(candidate: Candidate, limits: Limits) -> bool:
    """Say whether an experience was found of little use, was never used and is old.

    One that an import dated in no way that can be read is not.
    """
    return (
        candidate.score < limits.min_score
        and candidate.used_count == 0
        and limits.now - candidate.created_at > limits.age
        and _is_dated(candidate.given_created)
    )


def _is_dated(given: str | None) -> bool:
    try:
        return given is None or bool(datetime.fromisoformat(given))
    except ValueError:
        return False


def advise(findings: Findings, same: Question | None) -> Advised:
    """Say what to do about what was found, no experience being named twice.

    Duplicates come first, then garbage that is none of them, then what is stale and neither;
    in the order that is documented, garbage last.

    Args:
        findings: What was found.
        same: Asks a language model; None trusts the findings. It may raise anything.
    """
    advised = Advised()
    for group in findings.groups:
        if same is None:
            _trust(group, advised)
    if same is not None:
        _ask(findings.groups, same, advised)
    taken = {one.key for group in findings.groups for one in group.members}
    garbage = [one for one in findings.garbage if one.key not in taken]
    taken.update(one.key for one in garbage)
    stale = [one for one in findings.stale if one.key not in taken]
    advised.advice += [
        Advice("archive", one, STALE, "stale: low score with no usage") for one in stale
    ]
    advised.advice += [
        Advice("delete", one, GARBAGE, "garbage: broken parent reference") for one in garbage
    ]
    advised.analyzed += len(stale) + len(garbage)
    return advised


def _trust(group: Group, advised: Advised) -> None:
    survivor, *others = group.members
    reasoning = "heuristic: the survivor has the higher score or usage, or came first"
    advised.advice += [Advice("merge", one, BY_RULE, reasoning, survivor) for one in others]
    advised.analyzed += len(group.members)


def _ask(groups: Sequence[Group], same: Question, advised: Advised) -> None:
    left = MOST_QUESTIONS
    unasked = 0
    for group in groups:
        survivor, *others = group.members
        asked, rest = others[:left], others[left:]
        left -= len(asked)
        unasked += len(rest)
        advised.analyzed += bool(asked)
        for one in asked:
            try:
                merge = same(survivor, one)
            except Exception as error:  # noqa: BLE001  # whatever an adapter, or its SDK, may raise
                advised.errors.append(f"analyze {one.id}->{survivor.id}: {_said(error)}")
                continue
            advised.analyzed += 1
            advised.advice.append(
                Advice("merge", one, MERGE, "LLM recommended merge", survivor)
                if merge
                else Advice("keep", one, KEEP, "LLM recommended keeping both")
            )
    if unasked:
        advised.errors.append(
            f"analyze limit: {unasked} more were not asked about, {MOST_QUESTIONS} are in one run"
        )


def _said(error: Exception) -> str:
    """Return what may be repeated of an error: what others than we raise can quote texts.

    One of the language model has the number that the socket interface gives it.
    """
    if not isinstance(error, EngramError):
        return f"{_UNAVAILABLE}: {type(error).__name__}"
    model = isinstance(error, (LLMCallError, LLMReplyError))
    return f"{_UNAVAILABLE}: {error}" if model else str(error)
