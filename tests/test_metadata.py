"""Metadata: a JSON object kept with an episode, refused before anything is written."""

from __future__ import annotations

import math

import pytest

from engram import ObserveInput
from engram.errors import InvalidArgument, InvalidType

NESTED = {"a": [1, 2.5, None, True, {"é": "暗号 \0 \"'"}], "b": {}, "": -(2**60)}


def deep(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def test_it_comes_back_from_every_reader(memory):
    uid = memory.observe("a note", metadata=NESTED)
    assert memory.get(uid).metadata == NESTED
    assert memory.recall("note")[0].episode.metadata == NESTED
    assert memory.episodes().episodes[0].metadata == NESTED
    [other] = memory.observe_many([ObserveInput("b", metadata={"n": 1})])
    assert memory.get(other).metadata == {"n": 1}
    assert memory.check() == []


@pytest.mark.parametrize("empty", [None, {}])
def test_none_is_an_empty_object(memory, empty):
    assert memory.get(memory.observe("a", metadata=empty)).metadata == {}
    [uid] = memory.observe_many([ObserveInput("a", metadata=empty)])
    assert memory.get(uid).metadata == {}


def test_what_json_has_no_form_for_is_refused(memory):
    for bad in ("text", ["a"], 5, {"a": object()}, {1: "a"}, {"a": {None: 1}}, {"a": {2}}):
        with pytest.raises(InvalidType, match="metadata"):
            memory.observe("a", metadata=bad)
    for bad in ({"a": math.nan}, {"a": [math.inf]}, {"\ud800": 1}, {"a": "\ud800"}, deep(101)):
        with pytest.raises(InvalidArgument, match="metadata"):
            memory.observe("a", metadata=bad)
    loop: dict[str, object] = {}
    loop["self"] = loop
    with pytest.raises(InvalidArgument, match="metadata"):
        memory.observe_many([ObserveInput("a"), ObserveInput("b", metadata=loop)])
    assert memory.count() == 0
    memory.observe("a", metadata=deep(100))
