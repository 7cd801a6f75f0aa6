"""What a project's context shows: its newest memories, by one range of an index."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from damage import ROW, damage

from engram import StubLLMAdapter
from engram.ledger import Ledger
from engram.storage.projects import containing, digest


@pytest.fixture
def ledger(path, clock):
    with Ledger(path, clock=clock) as ledger:
        yield ledger


def remember(memory, text, project):
    return memory.observe(text, metadata={"project_path": project})


def shown(ledger, project):
    return [(one.id, one.content) for one in ledger.recent(project)]


def test_a_fact_belongs_where_all_its_episodes_do(memory, ledger):
    a, b = remember(memory, "tea", "/p/a"), remember(memory, "coffee", "/p/b")
    nobodys = memory.observe("water")
    fact = memory.assert_fact("Ann", "drinks", "tea", source=a)
    memory.assert_fact("Bob", "drinks", "water", source=nobodys)
    assert shown(ledger, "/p/a") == [(a, "tea"), (f"fact:{fact}", "Ann drinks tea")]
    assert shown(ledger, "/p/b") == [(b, "coffee")]
    [_, context] = ledger.recent("/p/a")
    assert (context.layer, context.memory_type, context.truncated) == ("semantic", "fact", False)


def test_a_fact_of_two_projects_belongs_to_neither(open_memory, ledger, clock):
    facts = [{"subject": "Ann", "predicate": "likes", "object": "tea", "confidence": 0.9}]
    memory = open_memory(llm=StubLLMAdapter(facts=facts))
    remember(memory, "tea", "/p/a")
    remember(memory, "more tea", "/p/b")
    memory.reflect()
    assert [one.memory_type for one in ledger.recent("/p/a")] == ["narrative"]
    clock.advance(seconds=1)
    remember(memory, "tea once more", "/p/a")
    memory.reflect()
    [newest, *_] = ledger.recent("/p/a")
    assert newest.content in {"Ann likes tea", "tea once more"}
    assert sorted(one.memory_type for one in ledger.recent("/p/a")) == [
        "fact",
        "narrative",
        "narrative",
    ]


def test_a_fact_that_ended_is_not_shown_and_comes_back(memory, ledger):
    # As a reflection leaves them: the second takes the first one's place, in one store.
    episode = remember(memory, "she moved", "/p/a")
    rome = memory.assert_fact("Ann", "lives in", "Rome", source=episode)
    oslo = memory.assert_fact("Ann", "lives in", "Oslo", source=episode)
    facts = memory._store.facts
    with memory._store.writing():
        old, new = (facts.get(uid, None)[0] for uid in (rome, oslo))
        facts.supersede(old, new, 0)
    assert {uid for uid, _ in shown(ledger, "/p/a")} == {episode, f"fact:{oslo}"}
    memory.forget_fact(oslo)
    assert {uid for uid, _ in shown(ledger, "/p/a")} == {episode, f"fact:{rome}"}
    assert memory.check() == []


def test_a_context_takes_one_range_of_an_index(memory, ledger):
    remember(memory, "tea", "/p/a")
    ledger.recent("/p/a")
    with ledger._reading() as store:
        plan = store._connection.execute(
            "EXPLAIN QUERY PLAN SELECT recorded_at, uid, memory FROM project_memory"
            " WHERE project = ? AND kind = ? ORDER BY recorded_at DESC, uid",
            (b"\0" * 16, 0),
        ).fetchall()
    assert [row[3] for row in plan] == [
        "SEARCH project_memory USING PRIMARY KEY (project=? AND kind=?)"
    ]


def test_totals_count_facts_as_memories_and_whom_they_are_about(memory, ledger):
    memory.observe("tea")
    memory.assert_fact("Alice", "knows", "Bob")
    memory.assert_fact("Bob", "knows", "Carol")
    memory.assert_fact("Bob", "likes", "tea")
    memory.assert_fact("Carol", "knows", "Alice")
    totals = ledger.totals()
    assert totals.layers == {"episodic": 1, "semantic": 4}
    assert (totals.entities, totals.relationships) == (3, 3)


@pytest.mark.parametrize("path", ["/", "/a", "/a/b.md", "/ä/b c/漢", "/x" * 2048])
def test_a_file_is_in_every_folder_above_it(path):
    parents = [path, *map(str, PurePosixPath(path).parents)]
    assert sorted(containing(path)) == sorted({digest(parent) for parent in parents})


def test_a_path_that_leads_to_one_too_long_is_nobodys(memory, ledger, tmp_path):
    """What `remember` takes has to come back from an export."""
    deep = tmp_path.joinpath(*["x" * 200] * 18)
    (tmp_path / "link").symlink_to(deep)
    uid = memory.remember("far away", source_path=f"{tmp_path}/link/{'y' * 250}/{'z' * 250}")
    assert ledger.recent(str(tmp_path)) == []
    assert memory.get(uid).content == "far away"
    assert memory.check() == []


@pytest.mark.parametrize(
    ("text", "shown_text", "truncated"),
    [
        ("a\0b", "a\0b", False),
        ("\0" + "b" * 1999, "\0" + "b" * 1999, False),
        ("\0" + "b" * 2000, "\0" + "b" * 1999, True),
        ("漢" * 2000, "漢" * 2000, False),
        ("🎉" * 2001, "🎉" * 2000, True),
        ("", "", False),
    ],
    ids=["nul", "nul, 2000", "nul, 2001", "three bytes", "four bytes", "empty"],
)
def test_an_excerpt_is_cut_by_characters_whatever_they_are(
    memory, ledger, text, shown_text, truncated
):
    remember(memory, text, "/p/a")
    [one] = ledger.recent("/p/a")
    assert (one.content, one.truncated) == (shown_text, truncated)


@pytest.mark.parametrize("wrong", [name for name in ROW if "provenance" not in name])
def test_a_damaged_memory_costs_a_project_no_other(memory, ledger, wrong):
    kept = remember(memory, "tea", "/p/a")
    remember(memory, "coffee", "/p/a")
    damage(memory, ROW[wrong])
    assert shown(ledger, "/p/a") == [(kept, "tea")]
    assert sum(ledger.totals().layers.values()) == 2
