"""Remembering for a project: whose a memory is, and that every face finds it."""

from __future__ import annotations

import json
import tempfile
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput
from engram.errors import InvalidArgument, InvalidType
from engram.ledger import Ledger

Recent = Callable[..., list[str]]


@pytest.fixture
def recent(path: Path) -> Recent:
    """The ids of a project's newest memories."""

    def ids(project: object, limit: int = 20) -> list[str]:
        with Ledger(path) as ledger:
            return [found.id for found in ledger.recent(str(project), limit=limit)]

    return ids


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A canonical folder."""
    return tmp_path.resolve()


def test_a_memory_is_found_by_every_face(memory, recent, clock):
    uid = memory.remember(
        "The ferry leaves at noon",
        project="/p/atlas",
        source_path="/p/atlas/notes/ferry.md",
        source_type="remember:human",
        layer="semantic",
        importance=0.75,
        metadata={"z": [1, None], "a": {"é": 1.5}},
        created_at=datetime(2025, 3, 1, tzinfo=UTC),
    )
    assert recent("/p/atlas") == [uid]
    assert memory.recall("ferry noon", k=1)[0].episode.id == uid
    episode = memory.get(uid)
    assert episode.content == "The ferry leaves at noon"
    assert (episode.salience, episode.importance_score) == (0.75, 0.75)
    assert episode.timestamp == datetime(2025, 3, 1, tzinfo=UTC)
    assert episode.provenance == "user"
    assert not episode.quarantined
    assert episode.metadata == {"z": [1, None], "a": {"é": 1.5}, "project_path": "/p/atlas"}
    with Ledger(memory._store._connection.path) as ledger:
        [found] = ledger.recent("/p/atlas")
        assert (found.layer, found.memory_type) == ("semantic", "fact")
        assert found.created_at == episode.timestamp.timestamp()
        assert ledger.totals().layers == {"semantic": 1}
    assert memory.check() == []


def test_what_is_not_said_has_a_default(memory, clock):
    uid = memory.remember("note")
    episode = memory.get(uid)
    assert (episode.salience, episode.importance_score) == (0.5, 0.5)
    assert (episode.timestamp, episode.provenance) == (clock.now, "external")
    assert episode.metadata == {}
    assert memory.recall("note", k=1)[0].episode.id == uid


def test_a_scoped_instance_remembers_for_its_agent(open_memory):
    uid = open_memory("ann").remember("tea", project="/p")
    assert open_memory("ann").get(uid).agent_id == "ann"
    assert open_memory("bob").recall("tea") == []


def test_an_id_is_given_once(memory):
    assert memory.remember("one", memory_id="the note") == "the note"
    with pytest.raises(InvalidArgument, match="memory_id"):
        memory.remember("two", memory_id="the note")
    assert memory.get("the note").content == "one"


@pytest.mark.parametrize(
    ("kind", "layer", "expected"),
    [
        ("factual", "episodic", "fact"),
        ("procedural", "semantic", "procedure"),
        ("experiential", "semantic", "narrative"),
        ("other", "semantic", "fact"),
        (["factual"], "procedural", "procedure"),
        (None, "working", "narrative"),
    ],
)
def test_a_type_that_is_not_said_is_that_of_the_metadata_or_the_layer(
    memory, path, kind, layer, expected
):
    memory.remember("tea", project="/p", layer=layer, metadata={"type": kind})
    memory.remember("tea", project="/q", layer=layer, metadata={"type": kind}, memory_type="fact")
    with Ledger(path) as ledger:
        assert ledger.recent("/p")[0].memory_type == expected
        assert ledger.recent("/q")[0].memory_type == "fact"


BAD = {
    "content": [3, None, "\ud800"],
    "project": ["", "p", "./p", "file:///p", "/p\0", "~nobody-of-that-name/p", 3, b"/p"],
    "source_path": ["", "/a\0", 3],
    "source_type": ["", " ", "x" * 201, 3],
    "layer": ["", "  ", "x" * 201, 3],
    "memory_type": ["", "Fact", "story", 3],
    "importance": [-0.1, 1.1, float("nan"), "0.5", True],
    "metadata": [[], "{}", {"a": float("inf")}, {"a": {1}}, {1: 2}, {"a": "\ud800"}],
    "memory_id": ["", " ", " x", "x ", "x" * 201, "evidence-1", "fact:1", 3],
    "created_at": ["", "tomorrow", 1e12, float("nan"), float("inf"), -1e12, True, []],
    "status": ["", " ", "x" * 201, 3],
}


@pytest.mark.parametrize(
    ("argument", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_what_is_refused_is_named_and_not_written(memory, argument, value):
    arguments = {"content": "canary text", "project": "/p"} | {argument: value}
    with pytest.raises((InvalidArgument, InvalidType)) as refused:
        memory.remember(**arguments)
    assert argument in refused.value.message
    assert "canary" not in str(refused.value)
    assert memory.count() == 0


def test_an_owner_is_given_once(memory):
    with pytest.raises(InvalidArgument, match="project"):
        memory.remember("tea", project="/p", metadata={"project_root": "/p"})
    assert memory.count() == 0


@pytest.mark.parametrize(
    "given", [1735689600, 1735689600.0, "2025-01-01", "2025-01-01T01:00+01:00",
              datetime(2025, 1, 1, tzinfo=UTC)],
)  # fmt: skip
def test_the_time_is_seconds_a_date_or_a_datetime(memory, path, given):
    memory.remember("tea", project="/p", created_at=given)
    with Ledger(path) as ledger:
        assert ledger.recent("/p")[0].created_at == 1735689600.0


# Whose a memory is.


def owners(here: Path) -> dict[str, tuple[dict[str, object], object, set[str], set[str]]]:
    """Cases: metadata, source, the projects that own it and others that must not."""
    p, sub, near = f"{here}/p", f"{here}/p/sub", f"{here}/p2"
    good = f"{p}/file.md"
    return {
        "explicit": ({"project_path": p}, None, {p}, {sub, str(here), "/"}),
        "root key": ({"project_root": p}, None, {p}, {sub, "/"}),
        "both": ({"project_path": p, "project_root": f"{p}/."}, None, {p}, {"/"}),
        "conflict": ({"project_path": p, "project_root": sub}, good, set(), {p, sub, "/"}),
        "one bad of two": ({"project_path": p, "project_root": ""}, good, set(), {p, "/"}),
        "null": ({"project_path": None}, good, set(), {p, "/"}),
        "empty": ({"project_path": ""}, good, set(), {p, "/"}),
        "relative": ({"project_path": "p"}, good, set(), {p, "/"}),
        "number": ({"project_path": 3}, good, set(), {p, "/"}),
        "explicit beats source": ({"project_path": near}, good, {near}, {p, "/"}),
        "explicit sub-project": ({"project_path": sub}, None, {sub}, {p, "/"}),
        "source": ({}, good, {p, str(here), "/", good}, {sub, near, f"{p}/file"}),
        "source in sub-project": ({}, f"{sub}/x", {sub, p, "/"}, {near, f"{p}/su"}),
        "sibling prefix": ({}, f"{near}/x", {near, "/"}, {p}),
        "dots out": ({}, f"{p}/../p2/x", {near}, {p}),
        "dots in": ({}, f"{near}/../p/x", {p}, {near}),
        "relative source": ({}, "p/file.md", set(), {p, "/"}),
        "no source": ({}, None, set(), {p, "/"}),
        "root": ({"project_path": "/"}, None, {"/"}, {p}),
        "trailing slash": ({"project_path": f"{p}//"}, None, {p}, {"/"}),
        "case": ({"project_path": f"{here}/P"}, None, {f"{here}/P"}, {p}),
        "only mentioned": ({"project": p, "note": p}, None, set(), {p, "/"}),
        "composed": (
            {"project_path": unicodedata.normalize("NFC", f"{here}/café")},
            None,
            {unicodedata.normalize("NFC", f"{here}/café")},
            {unicodedata.normalize("NFD", f"{here}/café")},
        ),
    }


@pytest.mark.parametrize("case", owners(Path("/x")))
@pytest.mark.parametrize("door", ["remember", "import", "observe"])
def test_whose_a_memory_is(memory, recent, here, file, case, door):
    metadata, source, mine, others = owners(here)[case]
    if door == "remember":
        memory.remember("tea", metadata=metadata, source_path=source)
    elif door == "observe":
        memory.observe_many([ObserveInput("tea", metadata=metadata, source_path=source)])
    else:
        write(file, {"id": "m", "content": "tea", "metadata": metadata, "source_file": source})
        memory.import_memories(file)
    assert {project for project in mine | others if recent(project)} == mine
    assert memory.check() == []


def write(file: Path, *memories: dict[str, object]) -> None:
    file.write_text(json.dumps({"version": "1.0", "memories": memories}))


def test_a_link_is_the_folder_it_leads_to(memory, recent, here):
    (here / "real").mkdir()
    (here / "link").symlink_to("real")
    named = memory.remember("tea", project=here / "link", memory_id="a")
    placed = memory.remember("tea", source_path=here / "link" / "x.md", memory_id="b")
    assert recent(here / "real") == recent(here / "link") == [named, placed]
    # It was decided when it was written.
    (here / "link").unlink()
    (here / "link").symlink_to("elsewhere")
    assert recent(here / "link") == []
    assert recent(here / "real") == [named, placed]


def test_links_that_lead_round_are_refused_or_own_nothing(memory, recent, here):
    (here / "round").symlink_to("round")
    with pytest.raises(InvalidArgument, match="project"):
        memory.remember("tea", project=here / "round")
    memory.remember("tea", metadata={"project_path": str(here / "round")})
    memory.remember("tea", source_path=here / "round" / "x")
    assert recent("/") == []


def test_home_is_somebodys_folder(memory, recent, monkeypatch, here):
    monkeypatch.setenv("HOME", str(here))
    uid = memory.remember("tea", project="~/p")
    assert recent(here / "p") == recent("~/p") == [uid]


def test_observing_with_an_owner_lists_the_episode(memory, recent):
    uid = memory.observe("tea", metadata={"project_path": "/p"})
    memory.observe("tea", metadata={"other": "/p"})
    memory.observe("tea")
    assert recent("/p") == [uid]
    memory.forget(uid)
    assert memory.check() == []


def test_quarantined_episodes_are_not_listed(memory, recent):
    memory.observe("tea", metadata={"project_path": "/p"}, quarantined=True)
    assert recent("/p") == []


# In which order, and how much of it.


@settings(max_examples=15)
@given(st.permutations(["b", "a", "Z", "é", "0f000000-0000-4000-8000-000000000000",
                        "ff000000-0000-4000-8000-000000000000", "0", "\U0001f600"]))  # fmt: skip
def test_ties_are_in_the_order_of_ids(ids):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "m.engram"
        with Engram(place, embedder=WordEmbedder()) as memory:
            for uid in ids:
                memory.remember(uid, project="/p", memory_id=uid, created_at=1e9)
            memory.remember("new", project="/p", memory_id="zz", created_at=1e9 + 1)
        with Ledger(place) as ledger:
            assert [m.id for m in ledger.recent("/p", limit=20)] == ["zz", *sorted(ids)]
            assert [m.id for m in ledger.recent("/p", limit=3)] == ["zz", *sorted(ids)][:3]


@pytest.mark.parametrize(("length", "cut"), [(1999, False), (2000, False), (2001, True)])
def test_a_context_shows_2000_characters(memory, path, length, cut):
    content = ("é\U0001f600x" * length)[:length]
    memory.remember(content, project="/p")
    with Ledger(path) as ledger:
        [found] = ledger.recent("/p")
    assert (found.content, found.truncated) == (content[:2000], cut)


def test_what_is_not_active_is_not_found(memory, recent):
    memory.remember("old tea", project="/p", status="superseded")
    memory.remember("false tea", project="/p", metadata={"invalidated": "no"})
    kept = memory.remember("tea", project="/p", status="active", metadata={"invalidated": False})
    assert recent("/p") == [kept]
