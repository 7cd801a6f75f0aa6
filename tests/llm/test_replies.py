"""Nothing a model says is believed: replies are checked, cleaned and capped."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import LLMReplyError
from engram.llm import MAX_EXTRACTED_CONFIDENCE, confidence
from engram.llm.replies import MAX_TERM_LENGTH, parse_facts, token_count

FACT = {"subject": "Ada", "predicate": "lives in", "object": "Paris"}


def parsed(*items: object, first: int = 0, count: int = 3) -> list[dict[str, object]]:
    return parse_facts(json.dumps(items), first, count)


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (0.3, 0.3), (0, 0.0), (1, 0.95), (1e9, 0.95), (-2, 0.0), ("0.4", 0.4),
        (math.nan, 0.5), (math.inf, 0.5), (-math.inf, 0.5), ("NaN", 0.5), ("high", 0.5),
        (None, 0.5), (True, 0.5), ([0.9], 0.5), ({}, 0.5), (10**400, 0.5),
    ],
)  # fmt: skip
def test_confidence_is_a_number_that_can_be_stored(said, taken):
    """Weak spot 22: NaN raised IntegrityError and blocked the window for ever."""
    assert confidence(said) == taken
    assert parsed({**FACT, "confidence": said})[0]["confidence"] == taken
    assert parsed(FACT)[0]["confidence"] == 0.5
    assert MAX_EXTRACTED_CONFIDENCE == 0.95


@pytest.mark.parametrize(
    "text",
    ['[{"subject": "Ada", "predicate": "lives in", "object": "Paris"}]',
     '{"facts": [{"subject": "Ada", "predicate": "lives in", "object": "Paris"}]}',
     '```json\n[{"subject": "Ada", "predicate": "lives in", "object": "Paris"}]\n```',
     '\n ```\n[{"subject": "Ada", "predicate": "lives in", "object": "Paris"}]``` \n',
     '[{"subject": "Ada", "predicate": "lives in", "object": "Paris", "confidence": NaN}]'],
)  # fmt: skip
def test_forms_of_an_answer(text):
    assert parse_facts(text, 0, 1) == [{**FACT, "confidence": 0.5, "sources": [1]}]


def test_items_that_are_no_facts_are_left_out():
    assert [fact["subject"] for fact in parsed({"subject": "a"}, 1, None, [], FACT)] == ["Ada"]


def test_a_fact_with_an_empty_term_says_nothing():
    assert parsed({**FACT, "object": " \n"}) == []


@pytest.mark.parametrize("name", ["subject", "predicate", "object"])
def test_a_term_is_one_line_of_text_that_can_be_stored(name):
    def term(value: object) -> object:
        return parsed({**FACT, name: value})[0][name]

    assert term("a\x00b\x1b\x7f") == "a\ufffdb\ufffd\ufffd"
    assert term("\ud800") == "\ufffd"
    assert term("  two\r\nlines ") == "two lines"
    assert term("AT&amp;T&apos;s &lt;b&gt;") == "AT&T's <b>"
    assert term(42) == "42"
    assert term(1.5) == "1.5"
    assert len(term("x" * MAX_TERM_LENGTH)) == MAX_TERM_LENGTH
    for value in ("x" * 1_000_000, None, ["a"], {"a": 1}):
        with pytest.raises(LLMReplyError):
            term(value)


@pytest.mark.parametrize(
    ("said", "taken"),
    [([2], [12]), ([3, 1, 1], [11, 13]), ([0, 2, 4, -1], [12]), ([], []), ([9], []), (None, []),
     ("2", []), ([True, "1", 2.0, None], []), ([10**30], [])],
)  # fmt: skip
def test_sources_are_observations_of_the_call(said, taken):
    [fact] = parsed({**FACT, "sources": said}, first=10)
    assert fact["sources"] == taken
    [fact] = parsed({**FACT, "sources": said}, first=10, count=1)
    assert fact["sources"] == [11]


@pytest.mark.parametrize(
    ("said", "counted"),
    [(12, 12), (-1, 0), (10**30, 2**53 - 1), (None, 0), ("12", 0), (1.5, 0), (True, 0)],
)
def test_a_count_of_tokens_is_one_that_can_be_summed(said, counted):
    assert token_count(said) == counted


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["subject", "predicate", "object", "confidence", "sources", "facts"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.text() | anything.map(json.dumps))
def test_any_reply_is_facts_that_can_be_stored_or_an_error(text):
    try:
        facts = parse_facts(text, 0, 2)
    except LLMReplyError:
        return
    for fact in facts:
        assert set(fact) == {"subject", "predicate", "object", "confidence", "sources"}
        for term in ("subject", "predicate", "object"):
            assert fact[term].encode()
            assert "\0" not in fact[term]
        assert 0 <= fact["confidence"] <= MAX_EXTRACTED_CONFIDENCE
        assert set(fact["sources"]) <= {1, 2}
