"""The making of inverted indexes against its twin, a plain reference and FTS5's own tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engram._native.tokens import invert, merge
from engram._native.twins.tokens import invert as invert_twin
from engram._native.twins.tokens import merge as merge_twin
from engram.storage.full_text import _TOKENIZER
from engram.storage.functions import terms as _terms

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]
Index = tuple[np.ndarray, ...]
UNSTEMMED = (_TOKENIZER[1][0], _TOKENIZER[1][1:])

WORDS = [b"a", b"b", b"Ab", b"abc", b"abcdefgh", b"abcdefghi", b"abcdefgh12345678x", b"0"]
bodies = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=6).map(b" ".join)
    | st.lists(st.sampled_from([*WORDS, b"", b"\xc3\xa9", b"\xc3"]), max_size=6)
    | st.binary(max_size=12),
    max_size=12,
)


def same(words: list[bytes]) -> list[bytes]:
    return words


@pytest.fixture(scope="module")
def fts5() -> Callable[[bytes], list[str]]:
    return partial(_terms, apsw.Connection(":memory:").fts5_tokenizer(*UNSTEMMED))


def readable(index: Index) -> dict[bytes, list[tuple[int, int]]]:
    """Each term with its rows and true frequencies."""
    _, term_bytes, ends, starts, rows, frequencies, large, large_frequencies = index
    true = frequencies.astype(np.int64)
    assert np.flatnonzero(true == 255).tolist() == large.tolist()
    true[large] = large_frequencies
    pairs = list(zip(rows.tolist(), true.tolist(), strict=True))
    text = term_bytes.tobytes()
    firsts = [0, *ends.tolist()][:-1]
    return {
        text[first:end]: pairs[starts[number] : starts[number + 1]]
        for number, (first, end) in enumerate(zip(firsts, ends.tolist(), strict=True))
    }


def reference(terms: list[list[bytes]]) -> dict[bytes, list[tuple[int, int]]]:
    return {
        term: [(row, listed.count(term)) for row, listed in enumerate(terms) if term in listed]
        for term in sorted({term for listed in terms for term in listed})
    }


@given(bodies)
def test_an_index_has_each_term_with_its_rows(agree: Agree, texts: Any) -> None:
    index = agree(invert, invert_twin, texts, same)
    found = readable(index)
    assert list(found) == sorted(found)
    terms = [
        text
        if isinstance(text, list)
        else bytes(c if c < 128 and chr(c).isalnum() else 32 for c in text.lower()).split()
        for text in texts
    ]
    assert found == reference(terms)
    assert index[0].tolist() == [len(listed) for listed in terms]


@given(bodies, bodies, bodies, st.randoms(use_true_random=False))
def test_a_merge_is_the_index_of_what_lives(
    agree: Agree, one: Any, two: Any, three: Any, chance: Any
) -> None:
    lists = [one, two, three]
    live = [
        chance.choice([None, np.array([chance.random() < 0.5 for _ in texts], np.bool_)])
        for texts in lists
    ]
    merged = agree(merge, merge_twin, [invert(texts, same) for texts in lists], live)
    kept = [
        text
        for texts, mask in zip(lists, live, strict=True)
        for row, text in enumerate(texts)
        if mask is None or mask[row]
    ]
    for ours, whole in zip(merged, invert(kept, same), strict=True):
        assert ours.dtype == whole.dtype
        assert ours.tolist() == whole.tolist()


def test_every_ascii_character_is_taken_as_fts5_takes_it(
    fts5: Callable[[bytes], list[str]],
) -> None:
    for code in range(128):
        for text in (b"%c", b"%ca", b"a%c", b"a%cb", b"a%c%cB", b" %c "):
            body = text.replace(b"%c", bytes([code]))
            terms = [term.encode() for term in fts5(body)]
            index = invert([body], same)
            assert readable(index) == reference([terms])
            assert index[0].tolist() == [len(terms)]


@given(st.lists(st.text(st.characters(max_codepoint=127), max_size=40), max_size=5))
def test_ascii_texts_have_the_terms_of_fts5(
    fts5: Callable[[bytes], list[str]], texts: list[str]
) -> None:
    terms = [[term.encode() for term in fts5(text.encode())] for text in texts]
    assert readable(invert([text.encode() for text in texts], same)) == reference(terms)


@given(st.lists(st.text(max_size=40), max_size=5))
@example(["accent \u0301 alone", "\u0327"])
def test_listed_terms_come_back(fts5: Callable[[bytes], list[str]], texts: list[str]) -> None:
    terms = [[term.encode() for term in fts5(text.encode())] for text in texts]
    assert readable(invert(terms, same)) == reference(terms)


@pytest.mark.parametrize("count", [1, 254, 255, 256, 257, 70_000])
def test_large_frequencies_are_exact(agree: Agree, count: int) -> None:
    texts = [b"x y", b"x " * count + b"y", b"x", b"y " * count]
    index = agree(invert, invert_twin, texts, same)
    assert readable(index) == {
        b"x": [(0, 1), (1, count), (2, 1)],
        b"y": [(0, 1), (1, 1), (3, count)],
    }
    live = np.array([False, True, True, True])
    merged = agree(merge, merge_twin, [index, index], [live, None])
    assert readable(merged)[b"x"] == [(0, count), (1, 1), (3, 1), (4, count), (5, 1)]


def test_terms_are_cut_where_fts5_cuts_them(agree: Agree) -> None:
    texts = [b"Z" * size for size in (32_767, 32_768, 32_769, 100_000)]
    found = readable(agree(invert, invert_twin, texts, same))
    assert found == {b"z" * 32_767: [(0, 1)], b"z" * 32_768: [(1, 1), (2, 1), (3, 1)]}


@given(bodies, st.integers(0, 4))
def test_words_of_one_stem_are_one_term(agree: Agree, texts: Any, kept: int) -> None:
    asked: list[bytes] = []

    def shortened(words: list[bytes]) -> list[bytes]:
        asked.extend(words)
        return [word[:kept] for word in words]

    found = readable(agree(invert, invert_twin, texts, shortened))
    assert len(set(asked[: len(asked) // 2])) * 2 == len(asked)  # each word once, by both
    listed = [
        text
        if isinstance(text, list)
        else [word[:kept] for word in
              bytes(c if c < 128 and chr(c).isalnum() else 32 for c in text.lower()).split()]
        for text in texts
    ]  # fmt: skip
    assert found == reference(listed)


@pytest.mark.parametrize(
    ("returned", "error"),
    [(None, TypeError), ((b"a",), TypeError), (["a"], TypeError), ([], ValueError),
     ([b"a", b"b"], ValueError)],
)  # fmt: skip
def test_each_word_needs_a_stem(refuse: Refuse, returned: object, error: type[Exception]) -> None:
    kind, message = refuse(invert, invert_twin, [b"a A"], lambda _: returned)
    assert kind is error
    assert message.startswith("stems")


def test_what_asking_for_stems_raises_comes_through() -> None:
    def fails(words: list[bytes]) -> list[bytes]:
        raise KeyError(len(words))

    for one in (invert, invert_twin):
        with pytest.raises(KeyError):
            one([b"a b"], fails)


def test_many_terms(agree: Agree) -> None:
    texts = [b" ".join(b"w%d" % (n * 7919 % 20_000) for n in range(row, row + 40))
             for row in range(0, 20_000, 20)]  # fmt: skip
    index = agree(invert, invert_twin, texts, same)
    live = np.arange(len(texts)) % 10 == 0
    assert len(index[2]) > 19_000
    agree(merge, merge_twin, [index, index, invert([], same)], [live, None, None])


def test_nothing(agree: Agree) -> None:
    assert [len(a) for a in agree(invert, invert_twin, [], same)] == [0, 0, 0, 1, 0, 0, 0, 0]
    assert [len(a) for a in agree(invert, invert_twin, [b""], same)] == [1, 0, 0, 1, 0, 0, 0, 0]
    assert [len(a) for a in agree(merge, merge_twin, [], [])] == [0, 0, 0, 1, 0, 0, 0, 0]
    dead = agree(merge, merge_twin, [invert([b"secret"], same)], [np.zeros(1, np.bool_)])
    assert [len(a) for a in dead] == [0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("body", ["text", bytearray(b"text"), None, ["text"], [b"nul\0"]])
def test_a_body_that_is_not_bytes_is_refused(refuse: Refuse, body: object) -> None:
    kind, message = refuse(invert, invert_twin, [b"a", body], same)
    assert kind is (ValueError if body == [b"nul\0"] else TypeError)
    assert message.startswith("bodies")


GOOD = invert([b"x " * 300 + b"y", b"y z"], same)
NAMES = [
    "lengths", "term_bytes", "term_ends", "starts", "rows", "frequencies", "large",
    "large_frequencies",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        *(
            (name, array.astype(np.float32), TypeError)
            for name, array in zip(NAMES, GOOD, strict=True)
        ),
        *(
            (name, array.reshape(1, -1), ValueError)
            for name, array in zip(NAMES, GOOD, strict=True)
        ),
        ("starts", GOOD[3][:-1].copy(), ValueError),
        ("starts", np.array([0, 2, 1, 4]), ValueError),
        ("starts", np.array([0, 1, 3, 5]), ValueError),
        ("starts", np.array([-1, 1, 3, 4]), ValueError),
        ("term_ends", np.array([1, 0, 3]), ValueError),
        ("term_ends", np.array([1, 2, 4]), ValueError),
        ("term_ends", np.array([-1, 2, 3]), ValueError),
        ("rows", np.array([0, 0, 1, 2], np.uint32), ValueError),
        ("frequencies", GOOD[5][:-1].copy(), ValueError),
        ("large", np.array([1]), ValueError),
        ("large", np.array([0, 1]), ValueError),
    ],
)
def test_a_damaged_part_is_named(
    refuse: Refuse, name: str, value: np.ndarray, error: type[Exception]
) -> None:
    part = [value if known == name else array for known, array in zip(NAMES, GOOD, strict=True)]
    kind, message = refuse(merge, merge_twin, [GOOD, part], [None, None])
    assert kind is error
    assert message.startswith(name) or (name == "large" and message.startswith("large_freq"))


@pytest.mark.parametrize(
    ("parts", "live", "error"),
    [
        ([GOOD], [], ValueError),
        ([GOOD], [np.ones(3, np.bool_)], ValueError),
        ([GOOD], [np.ones(2, np.uint8)], TypeError),
        ([GOOD[:7]], [None], ValueError),
    ],
)
def test_each_part_needs_its_arrays_and_mask(
    refuse: Refuse, parts: list[Index], live: list[Any], error: type[Exception]
) -> None:
    assert refuse(merge, merge_twin, parts, live)[0] is error
