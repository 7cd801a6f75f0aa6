"""Segments, tails and their ranking give FTS5's answers, whatever was merged, erased or allowed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage.test_text import FOUND

from engram.index.ranking import Part, rank, weigh
from engram.index.words import ARRAYS, WordSegment, WordTail, build, merge
from engram.storage.full_text import _TOKENIZER, _cut
from engram.storage.functions import terms as _terms
from engram.storage.segment import searchable

WORDS = [
    "piano", "pianos", "budget", "budgeting", "Café", "cafe", "naïve", "the", "the", "the", "of",
    "on-call", "don't", "東京タワー", "ёлка", "week", "weeks", "weekly", "relational", "x", "🙂",
    "e\u0301te\u0301", "nul\0nul", "हिन्दी", "ไทย",
]  # fmt: skip
LONG = ["z" * 32_767, "z" * 32_768, "z" * 40_000, "z" * 32_767 + "é", "z" * 32_766 + "é"]

pytestmark = pytest.mark.usefixtures("fts5_constants")

texts = st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=7).map(" ".join)


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    return apsw.Connection(":memory:")


@pytest.fixture(scope="module")
def tokenize(connection: apsw.Connection) -> Callable[[bytes], list[str]]:
    terms = partial(_terms, connection.fts5_tokenizer(*_TOKENIZER))
    return lambda body: [_cut(term) for term in terms(body)]


class Fts5:
    """The live rows of some parts in a full-text table, numbered through."""

    def __init__(
        self, connection: apsw.Connection, parts: Sequence[Sequence[bytes]],
        live: Sequence[Any],
    ) -> None:  # fmt: skip
        self._connection = connection
        self._keys: list[tuple[int, int]] = []
        name, arguments = _TOKENIZER
        options = " ".join(f"'{a}'" if " " in a else a for a in arguments)
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(
            f'CREATE VIRTUAL TABLE t USING fts5(body, tokenize = "{name} {options}")'
        )
        rows = []
        for number, bodies in enumerate(parts):
            for row, body in enumerate(bodies):
                if live[number] is None or live[number][row]:
                    rows.append((len(self._keys), body.decode()))
                    self._keys.append((number, row))
        connection.executemany("INSERT INTO t (rowid, body) VALUES (?, ?)", rows)

    def stems(self, term: str) -> list[str]:
        found = _terms(self._connection.fts5_tokenizer(*_TOKENIZER), term.encode())
        return [_cut(stem) for stem in found]

    def rank(
        self, terms: Sequence[str], allowed: Sequence[Any], k: int
    ) -> tuple[list[tuple[int, int]], list[float]]:
        if not terms:
            return [], []
        expression = " OR ".join(f'"{term}"' for term in terms)
        rows = self._connection.execute(
            "SELECT rowid, -bm25(t) FROM t WHERE t MATCH ? ORDER BY bm25(t), rowid", (expression,)
        ).fetchall()
        found = [(self._keys[key], score) for key, score in rows]
        found = [
            ((part, row), score)
            for (part, row), score in found
            if allowed[part] is None or allowed[part][row]
        ][:k]
        return [key for key, _ in found], [score for _, score in found]


def part(words: WordSegment | WordTail, live: Any = None, allowed: Any = None) -> Part:
    kept = words.lengths if live is None else words.lengths[live]
    return Part(words, len(kept), int(kept.sum()), live, allowed)


def compare(fts5: Fts5, parts: list[Part], terms: list[str], k: int) -> int:
    """Rank by mask and by list as FTS5 does; return how many rows were found."""
    masks = [each.allowed for each in parts]
    expected, scores = fts5.rank(terms, masks, k)
    lists = [
        Part(each.words, each.documents, each.tokens, each.live,
             None if each.allowed is None else np.flatnonzero(each.allowed).astype(np.uint32))
        for each in parts
    ]  # fmt: skip
    stems = [stem for term in terms for stem in fts5.stems(term)]
    for asked in (parts, lists):
        places, rows, ours = rank(asked, stems, k)
        assert list(zip(places.tolist(), rows.tolist(), strict=True)) == expected
        np.testing.assert_allclose(ours, scores, rtol=1e-9, atol=0.0)
        again = weigh(asked, stems, places, rows.astype(np.uint32))
        assert again.scores().tobytes() == ours.tobytes()
        assert (places.dtype, rows.dtype, ours.dtype) == (np.int64, np.int64, np.float64)
    return len(expected)


def same(one: WordSegment, two: WordSegment) -> None:
    for name in ARRAYS:
        assert one.arrays[name].dtype == two.arrays[name].dtype
        assert one.arrays[name].tobytes() == two.arrays[name].tobytes()


def tail_of(bodies: Sequence[bytes], tokenize: Callable[[bytes], list[str]]) -> WordTail:
    tail = WordTail()
    for first in range(0, len(bodies), 3):
        tail.append(bodies[first : first + 3], tokenize)
    return tail


def sentences(count: int, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    words = [*WORDS, *(f"w{n}" for n in range(400))]
    return [
        searchable(" ".join(chance.choices(words, k=chance.randrange(12)))).encode()
        for _ in range(count)
    ]


bodies = st.lists(texts.map(lambda text: searchable(text).encode()), max_size=8)


@settings(max_examples=150)
@given(bodies, bodies, bodies, texts, st.randoms(use_true_random=False))
def test_any_parts_rank_as_fts5_ranks(
    connection: apsw.Connection, tokenize: Any, one: Any, two: Any, three: Any, query: str,
    chance: Any,
) -> None:  # fmt: skip
    lists = [one, two, three]
    surface = partial(_terms, connection.fts5_tokenizer(_TOKENIZER[1][0], _TOKENIZER[1][1:]))

    def mask(bodies: list[bytes]) -> Any:
        share = chance.choice([None, 0.0, 0.5, 1.0])
        drawn = [share is not None and chance.random() < share for _ in bodies]
        return None if share is None else np.array(drawn, np.bool_)

    live = [mask(bodies) for bodies in lists]
    words = [build(one, tokenize), build(two, tokenize), tail_of(three, tokenize)]
    parts = [
        part(each, each_live, mask(each_bodies))
        for each, each_live, each_bodies in zip(words, live, lists, strict=True)
    ]
    # As queries are read: what has no letter and no digit is no term.
    said = dict.fromkeys(surface(searchable(query).encode()))
    terms = [term for term in said if any(character.isalnum() for character in term)]
    compare(Fts5(connection, lists, live), parts, terms, chance.randrange(1, 9))


@settings(max_examples=60)
@given(bodies, bodies, st.randoms(use_true_random=False))
def test_a_merge_is_the_build_of_what_lives(
    tokenize: Any, one: list[bytes], two: list[bytes], chance: Any
) -> None:
    live = [None, np.array([chance.random() < 0.6 for _ in two], np.bool_)]
    merged = merge([build(one, tokenize), build(two, tokenize)], live)
    kept = one + [body for body, lives in zip(two, live[1], strict=True) if lives]
    same(merged, build(kept, tokenize))


@pytest.mark.parametrize("dead", [0.0, 0.5, 0.9])
def test_many_rows_rank_as_fts5_ranks(
    connection: apsw.Connection, tokenize: Any, dead: float
) -> None:
    random_ = np.random.default_rng(3)
    lists = [sentences(9000, 1), sentences(500, 2), sentences(1500, 3)]
    live = [None if dead == 0.0 else random_.random(len(bodies)) >= dead for bodies in lists]
    words = [*(build(bodies, tokenize) for bodies in lists[:2]), tail_of(lists[2], tokenize)]
    fts5 = Fts5(connection, lists, live)
    for terms in (["the", "of", "piano", "w3"], ["w1"], ["the"], ["w5", "unheard", "w70", "東京"]):
        for share in (None, 1.0, 0.5, 0.1, 0.01, 0.001, 0.0001):
            masks = [share and random_.random(len(bodies)) < share for bodies in lists]
            parts = list(map(part, words, live, masks))
            for k in (1, 40, 10_000):
                found = compare(fts5, parts, terms, k)
                assert found > 0 or (share or 1.0) < 0.1 or dead == 0.9


@pytest.mark.parametrize(("text", "query"), [(t, q) for t, queries in FOUND for q in queries])
def test_every_script_is_found(
    connection: apsw.Connection, tokenize: Any, text: str, query: str
) -> None:
    lists = [[searchable(t).encode() for t in (text, "an unrelated remark 12 другое", text)]] * 2
    surface = partial(_terms, connection.fts5_tokenizer(_TOKENIZER[1][0], _TOKENIZER[1][1:]))
    terms = list(dict.fromkeys(surface(searchable(query).encode())))
    parts = [part(build(lists[0], tokenize)), part(tail_of(lists[1], tokenize))]
    assert compare(Fts5(connection, lists, [None, None]), parts, terms, 9) > 0


@pytest.mark.parametrize("count", [254, 255, 256, 70_000])
def test_a_word_said_very_often(connection: apsw.Connection, tokenize: Any, count: int) -> None:
    lists = [[b"moin moin other", b"moin " * count + b"x", b"y"], [b"y moin " * count, b"moin y"]]
    segment, tail = build(lists[0], tokenize), tail_of(lists[1], tokenize)
    fts5 = Fts5(connection, lists, [None, None])
    assert compare(fts5, [part(segment), part(tail)], ["moin", "y"], 9) == 5
    merged = merge([segment, build(lists[1], tokenize)], [None, None])
    assert (
        compare(Fts5(connection, [lists[0] + lists[1]], [None]), [part(merged)], ["moin"], 9) == 4
    )


def test_terms_longer_than_fts5_keeps(connection: apsw.Connection, tokenize: Any) -> None:
    every = [text.encode() for text in LONG] + [b"other"] * 9
    segment, tail = build(every, tokenize), tail_of(every, tokenize)
    fts5 = Fts5(connection, [every, every], [None, None])
    for text in LONG:
        (term,) = tokenize(text.encode())
        places, rows, _ = rank([part(segment), part(tail)], [term], 99)
        expected, _ = fts5.rank([text], [None, None], 99)
        assert list(zip(places.tolist(), rows.tolist(), strict=True)) == expected
    same(segment, merge([segment], [None]))


def test_a_tail_has_the_postings_of_a_segment(tokenize: Any) -> None:
    every = sentences(300, 7)
    segment, tail = build(every, tokenize), tail_of(every, tokenize)
    assert len(segment) == len(tail) == 300
    assert segment.lengths.tolist() == tail.lengths.tolist()
    asked = ["the", "unheard", "w9"]
    for one, two in zip(segment.postings(asked), tail.postings(asked), strict=True):
        assert one.dtype == two.dtype
    for term in tokenize(b" ".join(every)):
        listed = []
        for words in (segment, tail):
            found = words.postings([term])
            ((first, end),) = found.ranges.tolist()
            listed.append((found.rows[first:end].tolist(), found.frequencies[first:end].tolist()))
        assert listed[0] == listed[1]


def test_a_tail_is_as_it_was_when_a_text_fails(tokenize: Any) -> None:
    def fails(body: bytes) -> list[str]:
        if body == b"bad":
            raise KeyboardInterrupt
        return tokenize(body)

    tail = tail_of([b"one two"], tokenize)
    with pytest.raises(KeyboardInterrupt):
        tail.append([b"three", b"bad"], fails)
    assert len(tail) == 1
    assert tail.postings(["three"]).ranges.tolist() == [[0, 0]]


def test_what_only_the_erased_had_is_gone(tokenize: Any) -> None:
    segment = build([b"secret word", b"word"], tokenize)
    assert b"secret" in segment.arrays["term_bytes"].tobytes()
    merged = merge([segment], [np.array([False, True])])
    assert merged.arrays["term_bytes"].tobytes() == b"word"
    assert merged.arrays["rows"].tolist() == [0]
    assert len(merge([segment], [np.zeros(2, np.bool_)])) == 0


def test_arrays_come_back_from_a_file(tokenize: Any, tmp_path: Any) -> None:
    every = sentences(200, 5)
    segment = build(every, tokenize)
    np.savez(tmp_path / "s.npz", **segment.arrays)
    with np.load(tmp_path / "s.npz") as stored:
        again = WordSegment(stored)
    same(segment, again)
    assert list(again.arrays) == list(ARRAYS)
    terms = ["the", "piano", "w3"]
    answers = [rank([part(words)], terms, 9) for words in (segment, again)]
    for one, two in zip(*answers, strict=True):
        assert one.tobytes() == two.tobytes()


def test_elements_are_checked_before_they_are_read(tokenize: Any) -> None:
    calls: list[tuple[str, int, int]] = []
    plain = build([*sentences(50, 5), b"moin " * 300], tokenize)
    segment = WordSegment(plain.arrays, lambda *call: calls.append(call))
    assert calls == []
    found = segment.postings(["the", "unheard", "piano"])
    whole = {name: (0, len(plain.arrays[name]) - 1) for name in ARRAYS}
    expected = [(n, *whole[n]) for n in ARRAYS if n not in ("rows", "frequencies")]
    for first, end in found.ranges.tolist():
        expected += [(n, first, end - 1) for n in ("rows", "frequencies") if first < end]
    assert sorted(calls) == sorted(expected)
    calls.clear()
    merge([segment], [None])
    assert calls == [(n, *whole[n]) for n in ARRAYS]


def test_what_a_check_raises_comes_through(tokenize: Any) -> None:
    def refuse(name: str, first: int, last: int) -> None:
        raise KeyError(name)

    segment = WordSegment(build([b"a word"], tokenize).arrays, refuse)
    asked = Part(segment, 1, 2)
    with pytest.raises(KeyError):
        rank([asked], ["word"], 1)
    with pytest.raises(KeyError):
        merge([segment], [None])
    with pytest.raises(KeyError):
        _ = segment.lengths


def test_nothing_is_found_in_nothing(tokenize: Any) -> None:
    empty = build([], tokenize)
    for parts in ([], [part(empty)], [part(WordTail())], [part(build([b"", b"?"], tokenize))]):
        assert [len(values) for values in rank(parts, ["word"], 3)] == [0, 0, 0]
    assert [len(v) for v in rank([part(build([b"word"], tokenize))], [], 3)] == [0, 0, 0]
