"""What is exported can be imported: all of it or nothing, in any order, and byte for byte."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields, replace

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import InvalidArgument, InvalidType, ModelMismatch, ModelMissing
from engram.experience import ExperienceMemory, Imported, ImportedExperience

PLAIN = ImportedExperience(
    id="imported-001",
    memory_type="decision",
    context="the login failed",
    action="renew the token",
    result="users stay signed in",
    score=0.0,
    created_at="2025-03-01T10:00:00Z",
    updated_at="2025-03-01T10:00:00Z",
    used_count=0,
)
NAMES = [field.name for field in fields(ImportedExperience)]


def wire(experience) -> ImportedExperience:
    """An experience as a client would send it back."""
    return ImportedExperience(**{name: getattr(experience, name) for name in NAMES})


def test_a_record_comes_back_as_it_was(experiences):
    record = replace(
        PLAIN,
        score=0.25,
        tags=("a", "a", " b "),
        project="/srv/atlas",
        parent_id="gone",
        source_ids="x, y",
        insight_type="causal",
        memory_type="insight",
        created_at="2025-03-01 10:00:00.5+02:00",
        updated_at="yesterday",
        used_count=7,
        last_used_at="20250302T000000Z",
    )
    assert experiences.import_experiences([record]) == Imported(1, 0)
    [found] = experiences.export()
    assert wire(found) == record
    assert found.indexed
    assert experiences.check() == []


def test_times_are_read_and_unreadable_ones_are_now(experiences):
    spelled = {
        "2025-03-01T10:00:00Z": 1740823200000000,
        "2025-03-01T12:00:00+02:00": 1740823200000000,
        "2025-03-01T10:00:00.250": 1740823200250000,
        "2025-03-01": 1740787200000000,
        "0001-01-01T00:00:00+05:00": 1767225600000000,
        "": 1767225600000000,
        "last week \0": 1767225600000000,
    }
    experiences.import_experiences(
        [replace(PLAIN, id=f"i{n}", created_at=text) for n, text in enumerate(spelled)]
    )
    assert [one.created_at for one in experiences.export()] == list(spelled)
    rows = experiences._store._connection.execute(
        "SELECT e.occurred_at, x.given_times IS NULL FROM experience AS x"
        " JOIN episode AS e ON e.id = x.episode ORDER BY x.episode"
    ).fetchall()
    assert [at for at, _ in rows] == list(spelled.values())
    assert [plain for _, plain in rows] == [1, 0, 0, 0, 0, 0, 0]


def test_a_use_takes_the_place_of_the_time_that_was_given(experiences, clock):
    experiences.import_experiences(
        [replace(PLAIN, last_used_at="once", updated_at="then", used_count=3)]
    )
    clock.advance(hours=1)
    assert experiences.store(PLAIN.context, PLAIN.action, PLAIN.result).id == PLAIN.id
    [found] = experiences.export()
    assert (found.used_count, found.last_used_at) == (4, "2026-01-01T01:00:00Z")
    assert (found.updated_at, found.created_at) == ("then", "2025-03-01T10:00:00Z")


def test_ids_that_are_taken_are_skipped(experiences, opened, path):
    episode = Engram(path, embedder=WordEmbedder())
    uid = episode.observe("an episode")
    episode.close()
    records = [
        PLAIN,
        replace(PLAIN, context="a second of that id"),
        replace(PLAIN, id=uid),
        replace(PLAIN, id="new", parent_id="imported-001"),
    ]
    assert experiences.import_experiences(records) == Imported(2, 2)
    assert experiences.import_experiences(records) == Imported(0, 4)
    assert opened("ann").import_experiences([PLAIN]) == Imported(0, 1)
    assert [one.context for one in experiences.export()] == [PLAIN.context] * 2
    assert experiences.import_experiences([]) == Imported(0, 0)


def test_parents_come_in_any_order_and_may_be_missing(experiences):
    records = [replace(PLAIN, id=f"i{n}", parent_id=f"i{n + 1}") for n in range(5)]
    experiences.import_experiences(records)
    assert [one.parent_id for one in experiences.export()] == ["i1", "i2", "i3", "i4", "i5"]


REFUSED = {
    "id": ["", "x" * 101, "é" * 51, "fact:1", "evidence-1", 5, "\ud800"],
    "memory_type": ["opinion", None],
    "context": ["x" * 10_001, "é" * 5001, None],
    "action": ["x" * 10_001, 1],
    "result": ["x" * 10_001, "\udfff"],
    "score": [float("nan"), float("inf"), 1e39, "1", None, True],
    "tags": ["a", ("a", 1), 5],
    "project": [1],
    "parent_id": [1],
    "source_ids": [["a"]],
    "insight_type": ["other"],
    "created_at": [None, 5],
    "updated_at": [None, "\ud800"],
    "used_count": [-1, 2**63, 1.0, None, True],
    "last_used_at": [5],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in REFUSED.items() for value in values],
)
def test_one_bad_record_keeps_all_out(experiences, name, value):
    bad = replace(PLAIN, **{"id": "second", name: value})
    with pytest.raises((InvalidArgument, InvalidType), match=rf"memories\[1\]\.{name}"):
        experiences.import_experiences([PLAIN, bad])
    assert experiences.status().episodes == 0


def test_bad_records_may_be_left_out_or_all_only_counted(experiences):
    experiences.import_experiences([PLAIN])
    records = [PLAIN, replace(PLAIN, id=""), replace(PLAIN, id="new"), replace(PLAIN, id="new")]
    counts = Imported(1, 2, 1)
    assert experiences.import_experiences(records, skip_refused=True, dry_run=True) == counts
    assert len(experiences.export()) == 1
    with pytest.raises(InvalidArgument, match=r"memories\[1\]"):
        experiences.import_experiences(records, dry_run=True)
    assert experiences.import_experiences(records, skip_refused=True) == counts
    assert len(experiences.export()) == 2


@pytest.mark.parametrize("uid", ["x" * 100, "é" * 50])
def test_the_longest_id_is_accepted_everywhere(experiences, uid):
    experiences.import_experiences([replace(PLAIN, id=uid)])
    assert experiences.judge(uid, score=1).score == 1
    experiences.delete(uid)


def test_what_is_no_record_is_refused(experiences):
    for records in ("text", PLAIN, [PLAIN, {"id": "x"}]):
        with pytest.raises(InvalidType):
            experiences.import_experiences(records)
    assert experiences.status().episodes == 0


def test_an_insight_rests_on_its_sources_also_where_they_are_not_there(experiences, opened):
    stored = experiences.store("a", "b", "c").id
    insight = replace(
        PLAIN, id="i", memory_type="insight", source_ids=f"later, {stored},gone,later"
    )
    plain = replace(insight, id="p", memory_type="pattern")
    experiences.import_experiences([insight, plain, replace(PLAIN, id="later")])
    assert Engram.get(experiences, "i").summary_of == ["later", stored, "gone"]
    assert Engram.get(experiences, "p").summary_of == []
    assert experiences.get("i").source_ids == insight.source_ids


class Missing(WordEmbedder):
    def embed(self, texts):
        message = "no model"
        raise ModelMissing(message)


def test_without_an_embedder_the_texts_are_kept(opened):
    memory = opened(embedder=Missing())
    assert memory.import_experiences([PLAIN]) == Imported(1, 0)
    assert memory.status().waiting == 1
    assert not memory.get(PLAIN.id).indexed
    memory.close()
    memory = opened()
    assert memory.import_experiences([replace(PLAIN, id="x")], embed=False) == Imported(1, 0)
    assert memory.status().waiting == 2
    memory.import_experiences([replace(PLAIN, id="y")])
    assert memory.status().waiting == 0
    assert memory.check() == []


def test_another_model_is_an_error(opened, path):
    opened(embedder=WordEmbedder(16, "other")).store("a", "b", "c")
    with ExperienceMemory(path) as follows:
        with pytest.raises(ModelMismatch):
            follows.import_experiences([PLAIN])
        assert follows.status().episodes == 1


def family(experiences) -> dict[str, str | None]:
    return {one.id: one.parent_id for one in experiences.export()}


def test_a_parent_that_was_merged_or_deleted_is_exported_as_what_is_left_of_it(
    experiences, opened, path
):
    texts = {"context": "the same", "action": "said", "result": "again"}
    experiences.import_experiences(
        [
            replace(PLAIN, id="best", score=0.9, **texts),
            replace(PLAIN, id="middle", score=0.8, **texts),
            replace(PLAIN, id="broken", parent_id="gone", context="an orphan"),
            replace(PLAIN, id="of middle", parent_id="middle", context="one"),
            replace(PLAIN, id="of broken", parent_id="broken", context="three"),
            replace(PLAIN, id="of best", parent_id="best", context="four"),
        ]
    )
    assert experiences.consolidate(min_score=0).merged == 1
    # Into one that was not there in the first run: a chain of two.
    experiences.import_experiences(
        [
            replace(PLAIN, id="worst", score=0.1, **texts),
            replace(PLAIN, id="first", score=1.0, **texts),
            replace(PLAIN, id="of worst", parent_id="worst", context="two"),
        ]
    )
    done = experiences.consolidate(min_score=0)
    assert done.merged == 2
    assert experiences.get("middle").superseded_by == "best"
    assert experiences.get("of middle").parent_id == "middle"
    expected = {
        "first": None,
        "of middle": "first",
        "of worst": "first",
        "of broken": None,
        "of best": "first",
    }
    assert family(experiences) == expected
    other = opened(path=path.with_name("other.engram"))
    other.import_experiences([wire(one) for one in experiences.export()])
    assert other.preview().garbage == 0
    assert other.consolidate(min_score=0).deleted == 0
    assert family(other) == expected
    experiences.undo(done.run_id)
    assert family(experiences)["of middle"] == "best"


def test_a_parent_that_is_not_exported_is_not_named(experiences, opened, open_memory):
    quarantined = open_memory().observe("hidden", quarantined=True)
    plain = open_memory().observe("an episode")
    bobs = opened("bob").store("of", "another", "agent").id
    experiences.import_experiences(
        [
            replace(PLAIN, id="q", parent_id=quarantined, context="1"),
            replace(PLAIN, id="p", parent_id=plain, context="2"),
            replace(PLAIN, id="b", parent_id=bobs, context="3"),
            replace(PLAIN, id="gone", parent_id="nobody", context="4"),
        ]
    )
    assert family(experiences) == {bobs: None, "q": None, "p": None, "b": bobs, "gone": "nobody"}
    ann = opened("ann")
    ann.import_experiences([replace(PLAIN, id="a", parent_id=bobs, context="5")])
    assert family(ann) == {"a": None}


def test_an_experience_is_not_its_own_parent(experiences):
    same = {"context": "the same", "action": "said", "result": "again"}
    experiences.import_experiences(
        [
            replace(PLAIN, id="child", parent_id="parent", score=0.9, **same),
            replace(PLAIN, id="parent", **same),
        ]
    )
    assert experiences.consolidate(min_score=0).merged == 1
    assert family(experiences) == {"child": None}


def test_no_lock_is_held_while_it_embeds(opened):
    other = opened()

    class Writing(WordEmbedder):
        def embed(self, texts):
            if self.embedded == 0:
                other.store("meanwhile", "somebody", "writes")
            return super().embed(texts)

    memory = opened(embedder=Writing(), busy_timeout=0.0)
    memory.import_experiences([replace(PLAIN, id=f"i{n}") for n in range(3)])
    assert memory.status().indexed_count == 4


def test_everything_goes_through_an_export_unchanged(experiences, opened, path, clock):
    for n in range(200):
        clock.advance(seconds=7)
        experiences.store(f"c{n}", f"a{n % 5}", "", tags=[f"t{n % 3}"], project=f"p{n % 2}")
    exported = experiences.export()
    other = opened(path=path.with_name("other.engram"))
    assert other.import_experiences([wire(one) for one in exported]) == Imported(200, 0)
    assert other.export() == exported


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
RECORDS = st.builds(
    ImportedExperience,
    id=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(
        lambda uid: not uid.startswith(("fact:", "evidence-"))
    )
    | st.uuids().map(str),
    memory_type=st.sampled_from(["decision", "insight", "context"]),
    context=TEXTS,
    action=TEXTS,
    result=TEXTS,
    score=st.floats(-1, 1).map(lambda score: score + 0.0),
    tags=st.lists(TEXTS, max_size=3).map(tuple),
    project=st.none() | TEXTS,
    parent_id=st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    source_ids=st.none() | TEXTS,
    insight_type=st.sampled_from([None, "cluster", "temporal"]),
    created_at=TEXTS | st.datetimes().map(str),
    updated_at=TEXTS | st.datetimes().map(str),
    used_count=st.integers(0, 2**62),
    last_used_at=st.none() | TEXTS,
)


@given(st.lists(RECORDS, max_size=8, unique_by=lambda record: record.id))
def test_any_records_come_back_as_they_were(records):
    with ExperienceMemory(embedder=WordEmbedder()) as memory:
        assert memory.import_experiences(records) == Imported(len(records), 0)
        assert [wire(one) for one in memory.export()] == records
        assert memory.check() == []


def test_the_view_says_what_the_export_says(experiences, path):
    records = [
        replace(PLAIN, score=0.5, tags=("a", "b"), parent_id="p", source_ids="s", project="x"),
        replace(PLAIN, id="019b76da-a800-7739-8026-18f4cb590766", created_at="?", used_count=2),
        replace(PLAIN, id="i", insight_type="cluster", memory_type="insight", last_used_at="!"),
    ]
    experiences.import_experiences(records)
    experiences.close()
    with sqlite3.connect(path) as plain:
        plain.row_factory = sqlite3.Row
        rows = plain.execute("SELECT * FROM memories ORDER BY rowid").fetchall()
    found = {row["id"]: row for row in plain.execute("SELECT * FROM memories")}
    plain.close()
    assert len(rows) == 3
    for record in records:
        row = found[record.id]
        for name in set(NAMES) - {"tags"}:
            assert row[name] == getattr(record, name), name
        assert row["indexed"] == 1
        assert row["superseded_by"] is None
    assert found[PLAIN.id]["tags"] == '["a","b"]'
    assert found["i"]["tags"] is None


EVERY_HALF = np.arange(65_536, dtype="<u2").view("<f2")


@pytest.mark.parametrize("program", ["sqlite3", "apsw"])
def test_the_view_has_vectors_in_single_precision(experiences, path, program):
    experiences.store("one two", "three " * 3, "")
    experiences.store("all", "that", "can be")
    with experiences._store.writing():
        run = experiences._store._connection.execute
        halves = [half for (half,) in run("SELECT vector FROM embedding WHERE episode = 1")]
        # Whatever can be in a file: infinities, NaN and numbers without an exponent too.
        run(
            "UPDATE embedding SET vector = ? WHERE episode = 2 AND field = 2",
            (EVERY_HALF.tobytes(),),
        )
    # Two libraries must not have one file open in one process.
    experiences.close()
    sql = "SELECT embedding_context, embedding_action, embedding_result FROM memories ORDER BY id"
    first, second = ask(program, path, sql)
    assert first == (*(np.frombuffer(half, "<f2").astype("<f4").tobytes() for half in halves), None)
    single, wanted = np.frombuffer(second[2], "<f4"), EVERY_HALF.astype("<f4")
    known = ~np.isnan(wanted)
    assert np.array_equal(single[known].view("<u4"), wanted[known].view("<u4"))
    assert np.isnan(single[~known]).all()


def ask(program: str, path, sql: str) -> list[tuple[object, ...]]:
    if program == "sqlite3":
        with closing(sqlite3.connect(path)) as plain:
            return plain.execute(sql).fetchall()
    with closing(apsw.Connection(str(path))) as plain:
        return plain.execute(sql).fetchall()
