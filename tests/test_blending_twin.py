"""The default recall against its documented formula in plain Python, from the texts alone."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Clock, WordEmbedder

from engram import Blending, Engram, ObserveInput
from engram.index.ranking import K1, B
from engram.retrieval.near_words import near_words

START = datetime(2025, 5, 8, tzinfo=UTC)
WORDS = ["ferry", "ferries", "bees", "hives", "running", "ran", "jog", "Kos", "kids", "children"]
NAMES = ["Ana", "Ben Kos", "user", "assistant"]

saying = st.tuples(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join),
    st.sampled_from(["", "?"]),
    st.sampled_from([None, *NAMES]),
    st.sampled_from(["monday", "friday"]),
    st.integers(0, 50),
)
shares = st.sampled_from([0.0, 0.3, 1.0])
blendings = st.builds(
    Blending, near_words=shares, conversation=shares, answers=shares, assistant=shares, named=shares
)
weights = st.sampled_from([(0.5, 0.5), (1.0, 3.0), (9.0, 1.0), (0.0, 1.0)])


@dataclass
class Document:
    terms: Counter[str]
    distance: float
    conversation: int
    answers: int
    assistant: bool
    name: frozenset[str]
    key: int


def stems(texts: list[str]) -> list[Counter[str]]:
    """The terms of texts as a full-text table of their own has them."""
    bare = apsw.Connection(":memory:")
    bare.execute(
        "CREATE VIRTUAL TABLE t USING fts5 (body, tokenize ="
        " \"porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\");"
        "CREATE VIRTUAL TABLE v USING fts5vocab (t, 'instance')"
    )
    bare.executemany("INSERT INTO t (rowid, body) VALUES (?, ?)", list(enumerate(texts)))
    found = [Counter[str]() for _ in texts]
    for row, term in bare.execute("SELECT doc, term FROM v"):
        found[row][term] += 1
    return found


def body(text: str, actor: str | None, at: datetime) -> str:
    if actor in (None, "user", "assistant"):
        return text
    return f"{actor} ({at.day} {at:%B} {at.year}): {text}"


def scaled(values: list[float]) -> list[float]:
    best = max(values, default=0.0) or 1.0
    return [value / best for value in values]


class Twin:
    def __init__(self, documents: list[Document], query: Counter[str]) -> None:
        self.documents = documents
        self.average = sum(one.terms.total() for one in documents) / len(documents)
        self.query = query
        self.rarity = {term: self.rare(term) for term in query}
        self.near = {term: self.nearness(term) for term in query}

    def rare(self, term: str) -> float:
        having = sum(term in one.terms for one in self.documents)
        idf = math.log((len(self.documents) - having + 0.5) / (having + 0.5))
        return idf if idf > 0.0 else 1e-6

    def nearness(self, term: str) -> dict[str, float]:
        """What one occurrence of each other term counts for a term, unless the query has both."""
        near = near_words(term)
        others = [next(iter(one)) for one in stems([word for word, _ in near])] if near else []
        return {
            other: share * min(1.0, self.rare(other) / self.rarity[term])
            for other, (_, share) in zip(others, near, strict=True)
            if other not in self.query
        }

    def often(self, one: Document, term: str, near_words: float) -> float:
        if term in one.terms:
            return one.terms[term]
        return near_words * max(
            (near for other, near in self.near[term].items() if other in one.terms), default=0.0
        )

    def bm25(self, one: Document, near_words: float = 0.0) -> float:
        norm = K1 * (1 - B + B * one.terms.total() / self.average)
        return sum(
            rarity * f * (K1 + 1) / (f + norm)
            for term, rarity in self.rarity.items()
            if (f := self.often(one, term, near_words))
        )

    def ranked(
        self, pool: int, sides: tuple[float, float], blending: Blending
    ) -> list[tuple[int, float]]:
        meaning, words = (side / sum(sides) for side in sides)
        documents = self.documents
        nearest = sorted(documents, key=lambda one: (one.distance, one.key))[:pool]
        best = sorted(
            (one for one in documents if self.bm25(one) > 0.0),
            key=lambda one: (-self.bm25(one), one.key),
        )[:pool]
        keys = {one.key for one in (nearest if meaning else []) + best}
        found = [one for one in documents if one.key in keys]
        by_key = {one.key: one for one in documents}
        asked = {one.answers for one in found if one.answers}
        near = blending.near_words
        most = max((self.bm25(by_key[key], near) for key in keys | asked), default=0.0) or 1.0
        cosines = scaled([max(1.0 - one.distance**2 / 2.0, 0.0) for one in found])
        told = {one.conversation: 0.0 for one in found if one.conversation}
        for conversation in told:
            for term, rarity in self.rarity.items():
                f = sum(
                    self.often(one, term, near) for one in found if one.conversation == conversation
                )
                told[conversation] += rarity * f * (K1 + 1) / (f + K1)
        loudest = max(told.values(), default=0.0) or 1.0
        strength = min(1.0, 2.0 * words)
        scores = []
        for cosine, one in zip(cosines, found, strict=True):
            own = self.bm25(one, near) / most
            if one.answers:
                own += blending.answers * self.bm25(by_key[one.answers], near) / most
            if one.conversation:
                whole = told[one.conversation] / loudest
                own = (1 - blending.conversation) * own + blending.conversation * whole
            score = meaning * cosine + words * own
            if one.assistant:
                score *= 1 - strength * (1 - blending.assistant)
            if one.name:
                named = len(one.name & self.query.keys()) / len(one.name)
                score *= 1 + strength * blending.named * named
            scores.append(score)
        ranked = zip((one.key for one in found), scaled(scores), strict=True)
        return sorted(ranked, key=lambda item: (-item[1], item[0]))


@settings(max_examples=60)
@given(
    st.lists(saying, min_size=1, max_size=30),
    st.lists(st.sampled_from([*WORDS, "Ana", "Ben"]), min_size=1, max_size=4, unique=True),
    st.sampled_from([1, 3, 64]),
    weights,
    blendings,
)
def test_a_recall_is_what_the_formula_says(made, asked, pool, sides, blending):
    made = [
        (text + mark, actor, tag, START + timedelta(minutes=number, seconds=later))
        for number, (text, mark, actor, tag, later) in enumerate(made)
    ]
    query = " ".join(asked)
    with Engram(embedder=WordEmbedder(), clock=Clock(START + timedelta(days=1))) as memory:
        ids = memory.observe_many(
            ObserveInput(text, actors=[actor] if actor else [], tags=[tag], timestamp=at)
            for text, actor, tag, at in made
        )
        far = {
            hit.episode.id: hit.distance for hit in memory.recall(query, len(ids), mode="cosine")
        }
        store = memory._store
        with store.reading():
            keys = np.array([store.episodes.key(uid, None) for uid in ids], dtype=np.int64)
            turns = store.turns.of(keys)
        terms = stems([query, *(body(text, actor, at) for text, actor, _, at in made)])
        names = {None: frozenset[str](), "user": frozenset(), "assistant": frozenset()}
        names |= {name: frozenset(stems([name])[0]) for name in NAMES[:2]}
        documents = [
            Document(found, far[uid], *of)
            for found, uid, *of in zip(
                terms[1:],
                ids,
                turns.conversation.tolist(),
                turns.answers.tolist(),
                turns.assistant.tolist(),
                [names[actor] for _, actor, _, _ in made],
                keys.tolist(),
                strict=True,
            )
        ]
        twin = Twin(documents, terms[0])
        expected = twin.ranked(pool, sides, blending)[:pool]
        hits = memory.recall(
            query,
            pool,
            candidate_limit=pool,
            vector_weight=sides[0],
            fts_weight=sides[1],
            blending=blending,
        )
        scores = [score for _, score in expected]
        assert [hit.score for hit in hits] == pytest.approx(scores, abs=1e-9)
        # What differs by rounding alone may trade places.
        told = dict(zip(keys.tolist(), ids, strict=True))
        for hit, (key, score) in zip(hits, expected, strict=True):
            if sum(abs(score - other) < 1e-9 for other in scores) == 1 and score > scores[-1]:
                assert hit.episode.id == told[key]
