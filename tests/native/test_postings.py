"""BM25 over postings against its twin and against a plain reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram._native.postings import bm25, find_terms, row_frequencies
from engram._native.twins.postings import bm25 as twin
from engram._native.twins.postings import find_terms as find_twin
from engram._native.twins.postings import row_frequencies as frequencies_twin

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]
K1, B = 1.2, 0.75
LENGTHS = [0, 1, 7, 255, 256, 90_000]
FREQUENCIES = [1, 1, 2, 4, 5, 254, 255, 256, 70_000]


def part_of(
    lengths: list[int],
    lists: list[list[tuple[int, int]]],
    live: NDArray[np.bool_] | None,
    allowed: NDArray[Any] | None,
) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """A part with the postings of each term, and their ranges; one posting that none uses."""
    pairs = np.array([(0, 255), *(pair for listed in lists for pair in listed)], np.int64)
    ends = 1 + np.cumsum([0, *map(len, lists)])
    rows, frequencies = pairs.T
    large = np.flatnonzero(frequencies >= 255)
    part = (
        np.array(lengths, np.uint32), rows.astype(np.uint32),
        np.minimum(frequencies, 255).astype(np.uint8), large,
        frequencies[large].astype(np.uint32), live, allowed,
    )  # fmt: skip
    return part, np.stack((ends[:-1], ends[1:]), axis=1)


def reference(
    parts: list[tuple[Any, ...]], lists: list[list[list[tuple[int, int]]]], documents: int,
    mean: float, k: int, k1: float, b: float,
) -> list[tuple[tuple[int, int], float]]:  # fmt: skip
    """The formula, one posting after the other."""
    scores: dict[tuple[int, int], float] = {}
    for term in range(len(lists[0]) if lists else 0):
        every = [(p, row, f) for p, terms in enumerate(lists) for row, f in terms[term]]
        hits = sum(parts[p][5] is None or bool(parts[p][5][row]) for p, row, _ in every)
        ratio = (documents - hits + 0.5) / (hits + 0.5)
        idf = max(math.log(ratio) if ratio > 0 else 0.0, 0.0) or 1e-6
        for p, row, f in every:
            lengths, *_, live, allowed = parts[p]
            if (live is None or live[row]) and (
                allowed is None
                or (allowed[row] if allowed.dtype == np.bool_ else row in allowed.tolist())
            ):
                length = 1 - b + b * float(lengths[row]) / mean
                part = idf * (f * (k1 + 1)) / (f + k1 * length)
                scores[p, row] = scores.get((p, row), 0.0) + part
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


@st.composite
def cases(draw: st.DrawFn) -> Any:
    terms = draw(st.integers(0, 5))
    parts, ranges, lists = [], [], []
    for _ in range(draw(st.integers(0, 3))):
        count = draw(st.integers(0, 40))
        some_rows = st.sets(st.integers(0, count - 1)).map(sorted) if count else st.just([])
        listed = [
            [(row, draw(st.sampled_from(FREQUENCIES))) for row in draw(some_rows)]
            for _ in range(terms)
        ]
        live = np.zeros(count, np.bool_)
        live[draw(some_rows)] = True
        mask = np.zeros(count, np.bool_)
        mask[draw(some_rows)] = True
        lengths = [draw(st.sampled_from(LENGTHS)) for _ in range(count)]
        part, part_ranges = part_of(
            lengths, listed, draw(st.sampled_from([None, live])),
            draw(st.sampled_from([None, mask, np.flatnonzero(mask).astype(np.uint32)])),
        )  # fmt: skip
        parts.append(part)
        ranges.append(part_ranges)
        lists.append(listed)
    table = np.array(ranges, np.int64).reshape(len(parts), terms, 2)
    return (
        parts,
        table,
        lists,
        draw(st.integers(1, 300)),
        draw(st.floats(0.5, 500.0)),
        draw(st.integers(1, 50)),
        *draw(st.sampled_from([(K1, B), (0.9, 0.5), (0.0, 0.0), (3.0, 1.0)])),
    )


@given(cases())
def test_the_ranking_is_that_of_the_formula(agree: Agree, case: Any) -> None:
    parts, ranges, lists, documents, mean, k, k1, b = case
    places, rows, scores = agree(bm25, twin, parts, ranges, documents, mean, k, k1, b)
    expected = reference(parts, lists, documents, mean, k, k1, b)
    np.testing.assert_allclose(scores, [score for _, score in expected], rtol=1e-9)
    # The reference multiplies in another order: equal scores may differ in their last bits there.
    assert len(set(zip(places.tolist(), rows.tolist(), strict=True))) == len(rows)
    assert np.lexsort((rows, places, -scores)).tolist() == list(range(len(rows)))


def large_part(
    random: np.random.Generator, count: int, shares: list[float]
) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    lists = []
    for share in shares:
        rows = np.flatnonzero(random.random(count) < share)
        frequencies = random.choice(FREQUENCIES, len(rows), p=[0.6, 0.1, *[0.3 / 7] * 7])
        lists.append(list(zip(rows.tolist(), frequencies.tolist(), strict=True)))
    lengths = random.integers(4, 300, count).tolist()
    return part_of(lengths, lists, None, None)


@pytest.mark.parametrize(
    "shares", [[0.0003, 0.002], [0.1, 0.02, 0.001, 0.3], [0.9, 0.5, 0.00005, 0.2, 0.9, 0.4]]
)
def test_many_blocks_give_the_bits_of_the_twin(agree: Agree, shares: list[float]) -> None:
    random = np.random.default_rng(5)
    sizes = (40_000, 20_001, 8192, 3)
    parts, ranges = zip(*(large_part(random, size, shares) for size in sizes), strict=True)
    table = np.stack(ranges)
    for dead in (None, 0.0, 0.5, 0.9):
        live = [None if dead is None else random.random(size) >= dead for size in sizes]
        for share in (None, 1.0, 0.5, 0.1, 0.01, 0.001, 0.0001):
            masks = [None if share is None else random.random(size) < share for size in sizes]
            rows = [None if m is None else np.flatnonzero(m).astype(np.uint32) for m in masks]
            answers = []
            for allowed in (masks, rows, [*masks[:2], *rows[2:]]):
                case = [(*part[:5], *both)
                        for part, *both in zip(parts, live, allowed, strict=True)]  # fmt: skip
                answers += [
                    agree(bm25, twin, case, table, 68_196, 151.0, k, K1, B) for k in (1, 64, 10**6)
                ]
            for by_mask, by_list in zip(answers[:3], answers[3:6], strict=True):
                for ours, theirs in zip(by_mask, by_list, strict=True):
                    assert ours.tobytes() == theirs.tobytes()


def test_ties_go_by_part_and_row(agree: Agree) -> None:
    part, ranges = part_of([4] * 9, [[(3, 1), (5, 1), (7, 1)]], None, None)
    places, rows, scores = agree(
        bm25, twin, [part, part], np.stack((ranges, ranges)), 99, 4.0, 5, K1, B
    )
    assert list(zip(places.tolist(), rows.tolist(), strict=True)) == [
        (0, 3), (0, 5), (0, 7), (1, 3), (1, 5)
    ]  # fmt: skip
    assert len(set(scores.tolist())) == 1


def test_nothing_gives_nothing(agree: Agree) -> None:
    part, ranges = part_of([4] * 9, [[], []], None, np.empty(0, np.uint32))
    assert len(agree(bm25, twin, [part], ranges[np.newaxis], 9, 4.0, 3, K1, B)[0]) == 0
    assert len(agree(bm25, twin, [part], ranges[np.newaxis, :0], 9, 4.0, 3, K1, B)[0]) == 0
    assert len(agree(bm25, twin, [], np.empty((0, 2, 2), np.int64), 9, 4.0, 3, K1, B)[0]) == 0


PART, RANGES = part_of([4] * 9, [[(0, 1), (2, 300)]], None, None)
FIELDS = ["lengths", "rows", "frequencies", "large", "large_frequencies", "live", "allowed"]
GOOD: dict[str, Any] = dict(zip(FIELDS, PART, strict=True)) | {
    "ranges": RANGES[np.newaxis], "documents": 9, "mean": 4.0, "k": 3, "k1": K1, "b": B,
}  # fmt: skip
LIST = np.array([1, 3], np.uint32)


def call(case: dict[str, Any]) -> list[Any]:
    return [[tuple(case[name] for name in FIELDS)], *(case[name] for name in list(GOOD)[7:])]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("lengths", np.full(9, 4), TypeError),
        ("lengths", np.full((3, 3), 4, np.uint32), ValueError),
        ("rows", PART[1].astype(np.int64), TypeError),
        ("rows", PART[1].tolist(), TypeError),
        ("rows", np.array([0, 0, 9], np.uint32), ValueError),
        ("rows", np.array([0, 2**32 - 1, 2], np.uint32), ValueError),
        ("frequencies", PART[2].astype(np.uint32), TypeError),
        ("frequencies", PART[2][:2].copy(), ValueError),
        ("large", PART[3].astype(np.int32), TypeError),
        ("large_frequencies", PART[4][:1].copy(), ValueError),
        ("live", np.ones(8, np.bool_), ValueError),
        ("live", np.ones(9, np.uint8), TypeError),
        ("allowed", np.ones(10, np.bool_), ValueError),
        ("allowed", [True] * 9, TypeError),
        ("allowed", np.array([0, 9], np.uint32), ValueError),
        ("allowed", np.array([1, 1], np.uint32), ValueError),
        ("allowed", np.array([2, 1], np.uint32), ValueError),
        ("allowed", np.array([[2, 1]], np.uint32), ValueError),
        ("allowed", np.array([2, 1], np.int64), TypeError),
        ("ranges", np.array([[[1, 4]]]), ValueError),
        ("ranges", np.array([[[2, 1]]]), ValueError),
        ("ranges", np.array([[[-1, 1]]]), ValueError),
        ("ranges", np.array([[1, 2]]), ValueError),
        ("ranges", np.array([[[1, 2, 3]]]), ValueError),
        ("ranges", np.array([[[1, 2]], [[1, 2]]]), ValueError),
        ("ranges", np.array([[[1, 2]]], np.int32), TypeError),
        ("documents", 0, ValueError),
        ("documents", 1.0, TypeError),
        ("mean", 0.0, ValueError),
        ("mean", -1.0, ValueError),
        ("mean", math.nan, ValueError),
        ("mean", "4", TypeError),
        ("k", 0, ValueError),
        ("k", None, TypeError),
        ("k1", -0.1, ValueError),
        ("k1", "1", TypeError),
        ("b", -0.1, ValueError),
        ("b", 1.1, ValueError),
        ("b", math.nan, ValueError),
    ],
)
def test_a_wrong_argument_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    kind, message = refuse(bm25, twin, *call(GOOD | {name: value}))
    assert kind is error
    assert name in message.split(" must ")[0]


def test_a_row_out_of_range_is_found_before_it_is_read(refuse: Refuse) -> None:
    for rows in ([0, 0, 9], [0, 2, 2**32 - 1]):
        case = GOOD | {"rows": np.array(rows, np.uint32), "live": np.ones(9, np.bool_)}
        assert refuse(bm25, twin, *call(case))[1].startswith("rows")
    sparse = GOOD | {"lengths": np.full(90, 4, np.uint32), "rows": np.array([0, 1, 90], np.uint32)}
    assert refuse(bm25, twin, *call(sparse))[1].startswith("rows")


def test_a_number_aside_must_be_there(refuse: Refuse) -> None:
    case = GOOD | {"large": PART[3][:1].copy(), "large_frequencies": PART[4][:1].copy()}
    assert refuse(bm25, twin, *call(case))[1].startswith("large")


def test_a_part_has_seven_values(refuse: Refuse) -> None:
    assert "parts" in refuse(bm25, twin, [PART[:6]], RANGES[np.newaxis], 9, 4.0, 3, K1, B)[1]


@given(st.sets(st.binary(max_size=3)), st.lists(st.binary(max_size=4)))
def test_terms_are_found(agree: Agree, known: set[bytes], others: list[bytes]) -> None:
    terms = sorted(known)
    text = np.frombuffer(b"".join(terms), np.uint8) if terms else np.empty(0, np.uint8)
    ends = np.cumsum([len(term) for term in terms], dtype=np.int64)
    wanted = [*terms, *others]
    numbers = agree(find_terms, find_twin, text, ends, wanted)
    assert numbers.tolist() == [terms.index(t) if t in known else -1 for t in wanted]


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ((np.zeros(3, np.int8), np.array([3]), [b"a"]), "term_bytes"),
        ((np.zeros(3, np.uint8), np.array([3], np.uint32), [b"a"]), "term_ends"),
        ((np.zeros(3, np.uint8), np.array([3]), ["a"]), "wanted"),
        ((np.zeros(3, np.uint8), np.array([4]), [b"a"]), "term_ends"),
        ((np.zeros(3, np.uint8), np.array([-1]), [b"a"]), "term_ends"),
        ((np.zeros(3, np.uint8), np.array([3, 2]), [b"a"]), "term_ends"),
    ],
)
def test_a_wrong_vocabulary_is_named(refuse: Refuse, case: Any, name: str) -> None:
    assert refuse(find_terms, find_twin, *case)[1].startswith(name)


@given(
    st.lists(
        st.dictionaries(st.integers(0, 9), st.sampled_from(FREQUENCIES), max_size=6), max_size=4
    ),
    st.lists(st.integers(0, 12), max_size=8),
)
def test_rows_have_terms_as_often_as_their_postings_say(
    agree: Agree, terms: list[dict[int, int]], wanted: list[int]
) -> None:
    part, ranges = part_of([4] * 10, [sorted(one.items()) for one in terms], None, None)
    found = agree(
        row_frequencies, frequencies_twin, *part[1:5], ranges, np.array(wanted, np.uint32)
    )
    assert found.tolist() == [[one.get(row, 0) for one in terms] for row in wanted]


POSTINGS = dict(zip(FIELDS[1:5], PART[1:5], strict=True)) | {
    "ranges": RANGES, "wanted": np.array([2, 0, 8], np.uint32),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("rows", PART[1].astype(np.int64), TypeError),
        ("frequencies", PART[2][:2].copy(), ValueError),
        ("large", PART[3].astype(np.int32), TypeError),
        ("large_frequencies", PART[4][:1].copy(), ValueError),
        ("ranges", np.array([[1, 4]]), ValueError),
        ("ranges", np.array([[2, 1]]), ValueError),
        ("ranges", np.array([[-1, 1]]), ValueError),
        ("ranges", np.array([1, 2]), ValueError),
        ("ranges", np.array([[1, 2, 3]]), ValueError),
        ("ranges", np.array([[1, 2]], np.int32), TypeError),
        ("wanted", np.array([1]), TypeError),
        ("wanted", np.array([[1]], np.uint32), ValueError),
    ],
)
def test_a_wrong_argument_for_rows_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    arguments = (POSTINGS | {name: value}).values()
    kind, message = refuse(row_frequencies, frequencies_twin, *arguments)
    assert kind is error
    assert name in message.split(" must ")[0]


def test_a_number_aside_must_be_there_for_a_row(refuse: Refuse) -> None:
    case = POSTINGS | {"large": PART[3][:1].copy(), "large_frequencies": PART[4][:1].copy()}
    message = refuse(row_frequencies, frequencies_twin, *case.values())[1]
    assert message.startswith("large")
