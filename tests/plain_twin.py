"""A memory in plain Python: what `Engram` must answer, computed the slow and obvious way."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

import numpy as np
import pytest
from stand_ins import WordEmbedder

from engram import SearchResult
from engram.index.ranking import K1, B


@dataclass(frozen=True)
class Row:
    id: str
    content: str
    agent: str | None
    at: datetime
    tags: tuple[str, ...]
    actors: tuple[str, ...]
    provenance: str = "external"
    quarantined: bool = False

    @property
    def said(self) -> str:
        return headed(self.actors, self.at, self.content)


@dataclass(frozen=True)
class Statement:
    """A fact and where it came from.

    `episode` is the id of an episode that its agent sees, `name` any other source; both are None
    without a source, and when the episode is forgotten.
    """

    id: str
    agent: str | None
    subject: str
    predicate: str
    object: str
    shared: bool
    episode: str | None = None
    name: str | None = None
    provenance: str = "unknown"

    def seen_by(self, agent: str | None) -> bool:
        return agent in (None, self.agent) or self.shared


def one_name(text: str) -> str:
    """What all spellings of a name have in common."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def headed(actors: Sequence[str], at: datetime, content: str) -> str:
    """What is embedded and searched, where actors are few and none is a role."""
    return f"{', '.join(actors)} ({at:%-d %B %Y}): {content}" if actors else content


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def stored(vector: np.ndarray) -> np.ndarray:
    """A vector after its way through float16."""
    rounded = vector.astype(np.float32).astype(np.float16).astype(np.float32)
    return (rounded / np.linalg.norm(rounded)).astype(np.float32)


@lru_cache(maxsize=10_000)
def embedded(text: str) -> np.ndarray:
    return stored(WordEmbedder().vector(text)).astype(np.float64)


class PlainMemory:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.facts: list[Statement] = []
        # Every entity as the set of its names, exactly as they were declared.
        self.entities: list[set[str]] = []
        # Recalls of episodes: by whom, which, when.
        self.accesses: list[tuple[str | None, str, datetime]] = []
        self.importance: dict[str, float] = {}

    def matching(
        self,
        agent: str | None = None,
        *,
        tags: tuple[str, ...] = (),
        actors: tuple[str, ...] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        provenance: str | None = None,
        exclude_quarantined: bool = False,
    ) -> list[Row]:
        return [
            row
            for row in self.rows
            if (agent is None or row.agent == agent)
            and set(tags) <= set(row.tags)
            and set(actors) <= set(row.actors)
            and (since is None or row.at >= since)
            and (until is None or row.at <= until)
            and (provenance is None or row.provenance == provenance)
            and not (exclude_quarantined and row.quarantined)
        ]

    def distance(self, query: str, row: Row) -> float:
        q, v = embedded(query), embedded(row.said)
        return float(np.sqrt(np.dot(v - q, v - q)))

    def cosine(self, query: str, k: int, rows: list[Row]) -> list[tuple[str, float]]:
        ranked = sorted((self.distance(query, row), self.rows.index(row), row) for row in rows)
        return [(row.id, 1 / (1 + distance)) for distance, _, row in ranked[:k]]

    def bm25(self, query: str, row: Row) -> float:
        """BM25 with the constants of the library, over all rows, agents and filters aside."""
        documents = [Counter(words_of(other.said)) for other in self.rows]
        words = Counter(words_of(row.said))
        average = sum(d.total() for d in documents) / len(documents)
        score = 0.0
        for term in dict.fromkeys(query.lower().split()):
            frequency = sum(term in d for d in documents)
            idf = math.log((len(documents) - frequency + 0.5) / (frequency + 0.5))
            idf = idf if idf > 0 else 1e-6
            tf = words[term]
            score += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * words.total() / average))
        return score

    def hybrid(
        self, query: str, k: int, rows: list[Row], weights: tuple[float, float] = (0.5, 0.5)
    ) -> list[tuple[str, float]]:
        pool = 4 * k
        vector = dict(self.cosine(query, pool, rows))
        scored = [(-self.bm25(query, row), self.rows.index(row), row) for row in rows]
        text = {row.id: -score for score, _, row in sorted(scored)[:pool] if score < 0}
        sides = [self._scaled(vector), self._scaled(text)]
        order = {row.id: at for at, row in enumerate(self.rows)}
        blended = {
            uid: sum(w * side.get(uid, 0.0) for w, side in zip(weights, sides, strict=True))
            / sum(weights)
            for uid in vector.keys() | text.keys()
        }
        return sorted(blended.items(), key=lambda item: (-item[1], order[item[0]]))[:k]

    def known_as(self, name: str) -> set[str]:
        """All names of an entity, itself under exactly this name included."""
        return next((names for names in self.entities if name in names), {name})

    def declare(self, name: str, alias: str) -> None:
        both = self.known_as(name) | self.known_as(alias)
        self.entities = [names for names in self.entities if not names & both] + [both]

    def about(self, subject: str, agent: str | None) -> list[Statement]:
        names = self.known_as(subject)
        return [fact for fact in self.facts if fact.subject in names and fact.seen_by(agent)]

    def contradictions(self, agent: str | None) -> set[frozenset[str]]:
        facts = [fact for fact in self.facts if fact.seen_by(agent)]
        return {
            frozenset((one.id, other.id))
            for one in facts
            for other in facts
            if other.subject in self.known_as(one.subject)
            and (one.predicate, one.object < other.object) == (other.predicate, True)
        }

    def forget(self, uid: str) -> None:
        """The episode goes; facts that came from it keep their provenance and lose its id."""
        self.rows = [row for row in self.rows if row.id != uid]
        self.accesses = [access for access in self.accesses if access[1] != uid]
        self.facts = [
            replace(fact, episode=None) if fact.episode == uid else fact for fact in self.facts
        ]

    def forget_entity(self, name: str, *, sweep: bool) -> tuple[list[str], list[str]]:
        """As docs/how-to/erase.md says; returns the ids of the episodes and the facts that go."""
        names, before = {one_name(name)}, set[str]()
        while names != before:
            before = names
            for others in self.entities:
                folded = {one_name(other) for other in others}
                names = names | folded if names & folded else names

        def named(text: str) -> bool:
            return one_name(text) in names

        def mentioned(text: str) -> bool:
            return sweep and not names.isdisjoint(one_name(text).split())

        rows = [row for row in self.rows if any(map(named, row.actors)) or mentioned(row.content)]
        gone = {row.id for row in rows}
        facts = [
            fact
            for fact in self.facts
            if any(named(part) or mentioned(part) for part in (fact.subject, fact.object))
            or fact.episode in gone
            or (fact.name is not None and named(fact.name))
        ]
        self.facts = [fact for fact in self.facts if fact not in facts]
        for uid in gone:
            self.forget(uid)
        self.entities = [others for others in self.entities if not any(map(named, others))]
        return [row.id for row in rows], [fact.id for fact in facts]

    def decay(self, agent: str | None, now: datetime) -> int:
        """The documented formula at its default weights, salience 0.5 and valence 0."""
        rows = self.matching(agent)
        for row in rows:
            recalled = [
                at for who, uid, at in self.accesses if uid == row.id and agent in (None, who)
            ]
            days = max(0.0, (now - max(recalled, default=row.at)).total_seconds() / 86400)
            self.importance[row.id] = 0.5 * math.exp(-0.1 * days) + 0.2 * math.log1p(len(recalled))
        return len(rows)

    @staticmethod
    def _scaled(pool: dict[str, float]) -> dict[str, float]:
        if not pool:
            return {}
        low, high = min(pool.values()), max(pool.values())
        return {
            uid: (score - low) / (high - low) if high > low else 1.0 for uid, score in pool.items()
        }


def same_ranking(found: list[SearchResult], expected: list[tuple[str, float]]) -> bool:
    """Same scores, same episodes; those whose scores differ by mere rounding may trade places."""
    rounding = 1e-6
    scores = [score for _, score in expected]
    cut = scores[-1] + rounding if scores else 0.0
    return [r.score for r in found] == pytest.approx(scores, abs=rounding) and {
        r.episode.id for r in found if r.score > cut
    } == {uid for uid, score in expected if score > cut}
