"""The lines the trainer says."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.training.messages import (
    Artifact,
    Complete,
    Error,
    Insight,
    Metric,
    Progress,
    Recommendation,
    decode,
    encode,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
COUNT = st.integers(0, 2**63 - 1)
MESSAGES = st.one_of(
    st.builds(Progress, TEXT, NUMBER),
    st.builds(Insight, TEXT, TEXT, TEXT, TEXT, TEXT, st.none() | TEXT, st.none() | TEXT),
    st.builds(Recommendation, TEXT, TEXT, TEXT),
    st.builds(Metric, TEXT, NUMBER),
    st.builds(Artifact, TEXT, COUNT),
    st.builds(Complete, COUNT, NUMBER),
    st.builds(Error, TEXT),
)


@given(message=MESSAGES)
def test_a_message_comes_back_as_it_was_said(message):
    line = encode(message)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["type"] == type(message).__name__.lower()
    assert decode(line) == message


def test_percents_are_floats():
    assert encode(Progress("clustering", 20.0)) == (
        b'{"type":"progress","stage":"clustering","percent":20.0}\n'
    )


def test_what_an_insight_lacks_is_null():
    line = encode(Insight("i", "c", "a", "r", "cluster"))
    assert json.loads(line) == {
        "type": "insight", "id": "i", "context": "c", "action": "a", "result": "r",
        "insight_type": "cluster", "tags": None, "source_ids": None,
    }  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [Metric, Progress])
def test_no_number_is_said_that_json_does_not_have(kind, value):
    with pytest.raises(ValueError, match="not finite"):
        encode(kind("n", value))


def test_members_that_nobody_knows_are_ignored_and_optional_ones_may_be_missing():
    line = b'{"later":[{}],"type":"insight","id":"i","context":"","action":"","result":"",'
    assert decode(line + b'"insight_type":"x"}') == Insight("i", "", "", "", "x")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"percent":1,"stage":"secret"}',
        b'{"type":"secret"}',
        b'{"type":"progress","stage":"secret"}',
        b'{"type":"metric","name":"secret","value":null}',
        b'{"type":"metric","name":"secret","value":NaN}',
        b'{"type":"metric","name":"secret","value":1e999}',
        b'{"type":"metric","name":"secret","value":"1"}',
        b'{"type":"metric","name":"secret","value":1,"more":"\xff"}',
        b'{"type":"artifact","path":"secret","size_bytes":-1}',
        b'{"type":"artifact","path":"secret","size_bytes":1.5}',
        b'{"type":"artifact","path":"secret","size_bytes":9223372036854775808}',
        b'{"type":"complete","insights_generated":1%s,"duration_secs":1}' % (b"0" * 30),
        b'{"type":"complete","insights_generated":1}',
        b'{"type":"metric","name":"secret","value":1} {}',
        b'{"type":"metric","name":"secret","value":1,"more":' + b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_message_is_refused_without_being_quoted(line):
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the text is compared below
        decode(line)
    assert str(refused.value) in {
        "not UTF-8", "not JSON", "not one of the trainer's messages"
    }  # fmt: skip
