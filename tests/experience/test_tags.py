"""Tags come in many forms and are kept in one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import InvalidArgument, InvalidType
from engram.experience.tags import read_tags

FORMS = [
    (None, ()),
    ([], ()),
    ("", ()),
    ("  \t", ()),
    (",,,", ()),
    (["", "  "], ()),
    (["rust", "bugfix"], ("rust", "bugfix")),
    (("b", "a", "b", "B"), ("b", "a", "b", "B")),
    ([" kept ", "", "a,b"], (" kept ", "a,b")),
    ('["rust", " as is "]', ("rust", " as is ")),
    (' ["rust", ""] ', ("rust",)),
    ("[]", ()),
    ("perf,cache", ("perf", "cache")),
    (" perf , ,cache,", ("perf", "cache")),
    ("  one ", ("one",)),
    ("one two", ("one two",)),
    ("[1, 2]", ("[1", "2]")),
    ('["a", 2]', ('["a"', "2]")),
    ("[unclosed", ("[unclosed",)),
    ('{"a": 1}', ('{"a": 1}',)),
    ("[" * 100_000, ("[" * 100_000,)),
]


@pytest.mark.parametrize(("given", "read"), FORMS)
def test_every_form_is_read(given, read):
    assert read_tags(given) == read


@pytest.mark.parametrize("value", [1, 1.5, True, {"a": 1}, b"tag", [1], ["a", None], [["a"]]])
def test_other_types_are_refused(value):
    with pytest.raises(InvalidType, match="tags"):
        read_tags(value)


@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], r'["\ud800"]'])
def test_what_is_no_text_is_refused(value):
    with pytest.raises(InvalidArgument, match="tags"):
        read_tags(value)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8)))
def test_a_list_and_its_json_are_the_same(tags):
    kept = tuple(tag for tag in tags if tag.strip())
    assert read_tags(tags) == read_tags(json.dumps(tags)) == read_tags(list(kept)) == kept
