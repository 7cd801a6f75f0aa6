"""Storing, exporting, importing and deleting, as a client of a running server sees them."""

from __future__ import annotations

import json
import re
import uuid

import pytest
from engram_server import RefusedError, Server, record, texts

RECORD = {
    "id",
    "memory_type",
    "context",
    "action",
    "result",
    "score",
    "tags",
    "project",
    "parent_id",
    "source_ids",
    "insight_type",
    "created_at",
    "updated_at",
    "used_count",
    "last_used_at",
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def test_what_is_stored_comes_back(server):
    said = server.ask("memory_store", **texts(1), tags=["Rust", " spaced "], project="atlas")
    assert set(said) == {"id", "indexed", "deduplicated"}
    assert (said["indexed"], said["deduplicated"]) == (True, False)
    assert str(uuid.UUID(said["id"])) == said["id"]
    one = server.memories()[said["id"]]
    assert set(one) == RECORD
    assert {name: one[name] for name in texts(1)} == texts(1)
    assert one["memory_type"] == "decision"
    assert one["tags"] == '["Rust"," spaced "]'
    assert (one["score"], one["used_count"], one["project"]) == (0.0, 0, "atlas")
    assert TIME.fullmatch(one["created_at"])
    assert one["created_at"] == one["updated_at"]
    assert one["parent_id"] is one["source_ids"] is one["insight_type"] is None
    assert one["last_used_at"] is None


def test_null_is_as_good_as_left_out(server):
    said = server.ask("memory_store", **texts(1), memory_type=None, tags=None, project=None)
    one = server.memories()[said["id"]]
    assert (one["memory_type"], one["tags"], one["project"]) == ("decision", None, None)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ([], None),
        (["", "  "], None),
        ("", None),
        (",,,", None),
        ("a, b,,c ", '["a","b","c"]'),
        ('["x"," y "]', '["x"," y "]'),
        (["b", "a", "b"], '["b","a","b"]'),
        ("one tag", '["one tag"]'),
        (["ключ"], '["ключ"]'),
    ],
)
def test_tags_in_every_form(shared, given, stored):
    said = shared.ask("memory_store", **texts(0), tags=given, project=json.dumps(given))
    assert shared.memories()[said["id"]]["tags"] == stored


@pytest.mark.parametrize("given", [[1], 5, {"a": 1}, True])
def test_tags_in_no_form_are_refused(shared, given):
    with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: .*tags"):
        shared.ask("memory_store", **texts(0), tags=given)


def test_all_types_and_no_other(server):
    types = ["decision", "pattern", "bugfix", "context", "antipattern", "insight"]
    for number, kind in enumerate(types):
        server.ask("memory_store", **texts(number), memory_type=kind)
    assert [one["memory_type"] for one in server.memories().values()] == types
    with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: .*memory_type") as refusal:
        server.ask("memory_store", **texts(7), memory_type="SECRET")
    assert "SECRET" not in refusal.value.message
    assert len(server.memories()) == len(types)


def test_lengths_are_counted_in_bytes(server):
    assert server.ask("memory_store", context="é" * 5000, action="", result="")["indexed"]
    for name in ("context", "action", "result"):
        long = texts(1) | {name: "é" * 5000 + "x"}
        with pytest.raises(RefusedError) as refusal:
            server.ask("memory_store", **long)
        assert refusal.value.code == 6007
        assert f"{name} exceeds maximum length of 10000 bytes" in refusal.value.message


def test_the_same_again_is_stored_once_and_its_tags_are_kept(server):
    first = server.ask("memory_store", **texts(1), tags=["a"])
    again = server.ask("memory_store", **texts(1), tags=["b"])
    assert again == {
        "id": first["id"],
        "indexed": True,
        "deduplicated": True,
        "merged_into": first["id"],
    }
    one = server.memories()[first["id"]]
    assert one["used_count"] == 1
    assert TIME.fullmatch(one["last_used_at"])
    assert json.loads(one["tags"]) == ["a", "b"]


def test_another_project_or_type_is_another_memory(server):
    ids = {
        server.ask("memory_store", **texts(1), project=project, memory_type=kind)["id"]
        for project in (None, "a", "b")
        for kind in ("decision", "pattern")
    }
    assert len(ids) == 6
    assert ids == set(server.memories())


def test_the_threshold_is_a_setting(start):
    strict = start('[embedding]\nprovider = "deterministic"\n[deduplication]\nthreshold = 1.0\n')
    near = texts(1) | {"result": texts(1)["result"].replace("r", "s")}
    first = strict.ask("memory_store", **texts(1))
    assert strict.ask("memory_store", **near)["deduplicated"] is False
    assert strict.ask("memory_store", **texts(1))["id"] == first["id"]


def test_an_export_can_be_imported_elsewhere(start):
    here, there = start(), start()
    for number in range(4):
        here.ask("memory_store", **texts(number), tags=[f"t{number}"], project="p")
    exported = here.ask("memory_export")
    assert exported["version"] == 1
    assert exported["count"] == len(exported["memories"]) == 4
    assert TIME.fullmatch(exported["exported_at"])
    assert there.ask("memory_import", **exported) == {"imported": 4, "skipped": 0}
    assert there.ask("memory_export")["memories"] == exported["memories"]
    assert there.ask("memory_import", **exported) == {"imported": 0, "skipped": 4}
    found = there.ask("memory_search", query="c3", limit=1)["results"]
    assert found[0]["context"] == texts(3)["context"]


def test_an_export_has_what_an_import_brought(server):
    given = record(
        "imported-001",
        memory_type="insight",
        score=0.75,
        tags='["a"]',
        project="p",
        parent_id="nobody",
        source_ids="x,y",
        insight_type="cluster",
        created_at="2024-05-06T07:08:09+02:00",
        updated_at="some day",
        used_count=3,
        last_used_at="2024-06-01T00:00:00Z",
    )
    assert server.ask("memory_import", version=1, memories=[given])["imported"] == 1
    assert server.memories() == {"imported-001": given}


def test_children_may_come_before_their_parents(server):
    child = record("child", 1, parent_id="parent")
    assert server.ask("memory_import", version=1, memories=[child, record("parent", 2)]) == {
        "imported": 2,
        "skipped": 0,
    }
    assert server.memories()["child"]["parent_id"] == "parent"


def test_an_import_is_whole_or_nothing(server):
    good = record("good")
    for bad in ({"memory_type": "SECRET"}, {"insight_type": "SECRET"}, {"context": "x" * 10_001}):
        with pytest.raises(RefusedError, match=r"^\[6011\] import failed: ") as refusal:
            server.ask("memory_import", version=1, memories=[good, record("bad", 1, **bad)])
        assert "SECRET" not in refusal.value.message
    for bad in ({"score": "SECRET"}, {"id": 1}, {"used_count": -1}, {"created_at": None}):
        with pytest.raises(
            RefusedError, match=r"^\[6007\] dispatch error: .*memories\[1\]"
        ) as refusal:
            server.ask("memory_import", version=1, memories=[good, record("bad", 1) | bad])
        assert next(iter(bad)) in refusal.value.message
        assert "SECRET" not in refusal.value.message
    assert server.memories() == {}


def test_another_version_is_refused_whatever_its_memories_are(shared):
    with pytest.raises(RefusedError) as refusal:
        shared.ask("memory_import", version=2, memories="of another form")
    assert refusal.value.message == "[6010] import version mismatch: expected 1, got 2"


def test_a_deleted_memory_is_gone(server):
    first = server.ask("memory_store", **texts(1))["id"]
    second = server.ask("memory_store", **texts(2))["id"]
    server.ask("memory_search", query="c1")
    assert server.ask("memory_delete", id=first) == {"deleted": first}
    assert set(server.memories()) == {second}
    assert first not in {one["id"] for one in server.ask("memory_search", query="c1")["results"]}
    with pytest.raises(RefusedError) as refusal:
        server.ask("memory_delete", id=first)
    assert refusal.value.message == f"[1002] not found: memory {first}"


def test_a_parent_can_be_deleted(server):
    child = record("child", 1, parent_id="parent")
    server.ask("memory_import", version=1, memories=[record("parent", 2), child])
    server.ask("memory_delete", id="parent")
    assert set(server.memories()) == {"child"}


def test_a_restart_keeps_everything(start):
    server = start()
    stored = server.ask("memory_store", **texts(1))["id"]
    exported = server.memories()
    server.__exit__()
    with Server(server.root.parent) as again:
        assert again.memories() == exported
        hits = again.ask("memory_search", query="c1")["results"]
        assert [one["id"] for one in hits] == [stored]
