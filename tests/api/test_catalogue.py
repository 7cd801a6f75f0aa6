"""What the catalogue publishes, and that it is what is checked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonl_page import BEGIN, END, PAGE, sections

from engram.api.operations import CATALOGUE, input_schema, nullable
from engram.api.requests import RequestError, read_call

PROJECT = {"type": "string", "minLength": 1, "maxLength": 4096}
NAME = {"type": "string", "minLength": 1, "maxLength": 200}
UP_TO_20 = {"type": "integer", "minimum": 1, "maximum": 20}
LIMIT = {**UP_TO_20, "default": 8}
QUERY = {"type": "string", "minLength": 1, "maxLength": 4000}
ITEMS = {
    "type": "array",
    "maxItems": 8,
    "items": {"type": "string", "minLength": 1, "maxLength": 500},
}
SEARCH = (["query"], {"query": QUERY, "top_k": UP_TO_20})
RESUME = (["project_id"], {"project_id": PROJECT, "task": NAME, "limit": LIMIT})
CHECKPOINT = (
    ["project_id", "task"],
    {
        "project_id": PROJECT,
        "task": NAME,
        "summary": {"type": "string", "maxLength": 4000},
        "action": {"type": "string", "enum": ["save", "clear"], "default": "save"},
        "decisions": ITEMS,
        "next_steps": ITEMS,
        "blockers": ITEMS,
    },
)
EVIDENCE = {
    "project_id": PROJECT,
    "session_id": NAME,
    "assumption_id": NAME,
    "evidence_id": NAME,
    "outcome": {"type": "string", "enum": ["unknown", "supported", "contradicted"]},
    "observed_at": {"type": "number"},
    "expires_at": {"type": "number"},
    "observation": {"type": "object"},
    "provenance": {"type": "object"},
}
SOURCES = {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 256}}
CATEGORY = {"type": "string", "enum": ["useful", "irrelevant", "dismissed"]}

# In the order of the list: whether it writes, what is required, and the properties.
PUBLISHED: dict[str, tuple[bool, list[str], dict[str, Any]]] = {
    "operations": (False, [], {}),
    "status": (False, [], {}),
    "config_show": (False, [], {}),
    "recall": (False, ["project_id"], {"project_id": PROJECT, "limit": LIMIT}),
    "search": (True, *SEARCH),
    "search_explain": (False, *SEARCH),
    "dormant_review": (
        False, [], {"limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}}
    ),
    "dormant_inspect": (True, ["event_id"], {"event_id": NAME}),
    "dormant_feedback": (
        True, ["event_id", "category"], {"event_id": NAME, "category": CATEGORY}
    ),
    "session_resume": (False, *RESUME),
    "session_checkpoint": (True, *CHECKPOINT),
    "checkpoint": (True, *CHECKPOINT),
    "resume": (False, *RESUME),
    "evidence_put": (True, list(EVIDENCE), {**EVIDENCE, "source_refs": SOURCES}),
    "evidence_get": (False, ["project_id", "id"], {"project_id": PROJECT, "id": NAME}),
    "evidence_list": (
        False,
        ["project_id"],
        {
            "project_id": PROJECT,
            "session_id": NAME,
            "assumption_id": NAME,
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 20},
        },
    ),
}  # fmt: skip
ALIASES = {"checkpoint": "session_checkpoint", "resume": "session_resume"}
NULLABLE = {
    "search": ["top_k"],
    "search_explain": ["top_k"],
    "session_resume": ["task"],
    "resume": ["task"],
    "session_checkpoint": ["decisions", "next_steps", "blockers"],
    "checkpoint": ["decisions", "next_steps", "blockers"],
    "evidence_put": ["source_refs"],
    "evidence_list": ["session_id", "assumption_id"],
}


def test_the_list_is_the_contracts(start):
    told = start().result("operations")
    entries = told.pop("operations")
    assert set(told) == {"protocol", "version", "engram_version", "max_request_bytes"}
    assert (told["protocol"], told["version"]) == ("engram-jsonl", 1)
    assert told["max_request_bytes"] == 65_536
    assert [entry["name"] for entry in entries] == list(PUBLISHED)
    for entry in entries:
        name = entry.pop("name")
        writes, required, properties = PUBLISHED[name]
        assert entry.pop("description")
        assert entry.pop("alias_for", None) == ALIASES.get(name)
        assert entry == {
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            "writes": writes,
        }


def test_null_is_as_good_as_nothing_where_the_description_says_so():
    found = {name: nullable(operation.arguments) for name, operation in CATALOGUE.items()}
    assert {name: names for name, names in found.items() if names} == NULLABLE


TYPES = {
    "string": str, "array": list, "object": dict, "integer": int, "number": (int, float)
}  # fmt: skip


def valid(schema: dict[str, Any], value: object) -> bool:
    """Whether a value is what a schema of the few words of ours says."""
    if not isinstance(value, TYPES[schema["type"]]) or isinstance(value, bool):
        return False
    if isinstance(value, str):
        size = schema.get("minLength", 0), schema.get("maxLength", len(value))
        return size[0] <= len(value) <= size[1] and value in schema.get("enum", [value])
    if isinstance(value, list):
        return len(value) <= schema["maxItems"] and all(valid(schema["items"], i) for i in value)
    if isinstance(value, dict):
        return valid_members(schema, value)
    return schema.get("minimum", value) <= value <= schema.get("maximum", value)


def valid_members(schema: dict[str, Any], members: dict[str, Any]) -> bool:
    if "properties" not in schema:
        return True
    known = schema["properties"]
    return set(schema["required"]) <= set(members) <= set(known) and all(
        valid(known[name], value) for name, value in members.items()
    )


def blank(schema: dict[str, Any], value: object) -> bool:
    """Whether a text that must have a character has only such as show nothing."""
    if schema["type"] == "array":
        return any(blank(schema["items"], item) for item in value)
    return "minLength" in schema and not value.strip()


def near(schema: dict[str, Any]) -> st.SearchStrategy[object]:
    """Values at the edges of a schema, on both sides."""
    if "enum" in schema:
        return st.sampled_from([*schema["enum"], schema["enum"][0].upper(), ""])
    kind = schema["type"]
    if kind == "string":
        longest = schema["maxLength"]
        return st.sampled_from(
            [
                "",
                " ",
                "\u00a0",
                "x",
                "é",
                "x" * longest,
                "𝕏" * longest,
                "x" * (longest + 1),
                "\ud800",
            ]
        )
    if kind == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return st.sampled_from([low - 1, low, high, high + 1, -1, 10**30, float(low), str(low)])
    if kind == "number":
        return st.sampled_from([0, 1, -1, 1.5, 10**20, 10**400, -(10**400), "1"])
    if kind == "object":
        return st.sampled_from([{}, {"a": 1}, [], "x"])
    items = near(schema["items"])
    return st.lists(items, max_size=9)


OTHERS = st.sampled_from([None, True, False, 1, 1.0, "x", "\ud800", [], {}, [None], [1]])


@st.composite
def asked(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    name = draw(st.sampled_from(list(CATALOGUE)))
    schema = input_schema(CATALOGUE[name].arguments)
    members = {}
    for key, part in schema["properties"].items():
        if draw(st.sampled_from([True, True, key in schema["required"]])):
            members[key] = draw(st.one_of(near(part), near(part), OTHERS))
    if draw(st.integers(0, 9)) == 0:
        members[draw(st.sampled_from(["x", "Limit", "", "\ud800"]))] = 1
    return name, members


@given(asked())
def test_what_is_published_is_what_is_checked(request_):
    name, members = request_
    schema = input_schema(CATALOGUE[name].arguments)
    given_ = {
        key: value
        for key, value in members.items()
        if not (value is None and key in NULLABLE.get(name, []))
    }
    expected = valid_members(schema, given_) and not any(
        blank(schema["properties"][key], value) for key, value in given_.items()
    )
    # What no float can hold is refused too: a number has to be one to be compared with the clock.
    expected = expected and not any(
        schema["properties"][key]["type"] == "number" and abs(value) > 1e308
        for key, value in given_.items()
        if valid_members(schema, given_)
    )
    assert accepted({"id": 1, "operation": name, "params": members}) == expected


def accepted(request: dict[str, Any]) -> bool:
    try:
        read_call(request)
    except RequestError as refused:
        return refused.failure.code != "invalid_params"
    return True


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_operation_refuses_what_it_does_not_know(start, name):
    assert start().code(name, surprise=1) == "invalid_params"


def test_the_reference_is_up_to_date():
    text = PAGE.read_text(encoding="utf-8")
    assert f"{BEGIN}{sections()}\n{END}" in text, "run python tests/jsonl_page.py"
