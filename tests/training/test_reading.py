"""What the trainer reads from a database of the reference server, and how it opens files."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from bare_database import START, BareDatabase, blob, hours, near, stages
from hypothesis import given
from hypothesis import strategies as st

from engram import errors
from engram.times import to_micros
from engram.training.rows import QValue, read_corpus

HOUR = 3_600_000_000
ZERO = to_micros(START)


def snapshot(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_a_row_of_the_reference_server(bare):
    bare.add(
        "imported-001", memory_type="bugfix", context="c", action="ä", result="", score=0.25,
        tags='["b", " a"]', parent_id="p", created_at=hours(1),
        updated_at="2026-01-01T04:00:00+02:00",
        last_used_at="2026-01-01 03:00:00", used_count=4, project="/p",
    )  # fmt: skip
    bare.judge("imported-001")
    bare.judge("imported-001", 0)
    [row] = read_corpus(bare.path).rows
    assert (row.id, row.memory_type, row.context, row.action) == (
        "imported-001",
        "bugfix",
        "c",
        "ä",
    )
    assert (row.result, row.score, row.tags, row.parent_id) == ("", 0.25, ("b", " a"), "p")
    assert (row.created, row.updated) == (ZERO + HOUR, ZERO + 2 * HOUR)
    assert (row.last_used, row.used_count, row.judged) == (ZERO + 3 * HOUR, 4, True)


@pytest.mark.parametrize(
    ("stored", "tags"),
    [
        (None, ()),
        ("[]", ()),
        ("a, b,,", ("a", "b")),
        (" single ", ("single",)),
        ('["", " ", "x"]', ("x",)),
        ("[1]", ("[1]",)),
    ],
)
def test_tags_in_every_form(bare, stored, tags):
    bare.add("m", tags=stored)
    corpus = read_corpus(bare.path)
    assert (corpus.rows[0].tags, corpus.skipped) == (tags, 0)


def test_insights_and_merged_memories_are_left_out(bare):
    bare.add("kept", near(0))
    bare.add("insight", near(0), memory_type="insight")
    bare.add("merged", near(0), superseded_by="kept")
    corpus = read_corpus(bare.path)
    assert [row.id for row in corpus.rows] == ["kept"]
    assert corpus.owners.tolist() == [0]


def test_vectors_are_of_length_one_in_the_size_that_most_have(bare):
    bare.add("a", [3.0, 4.0])
    bare.add("none")
    bare.add("b", [0.0, 2.0])
    bare.add("other", [1.0, 0.0, 0.0])
    corpus = read_corpus(bare.path)
    assert corpus.owners.tolist() == [0, 2]
    assert np.allclose(corpus.vectors, [[0.6, 0.8], [0.0, 1.0]])
    assert corpus.skipped == 1


@pytest.mark.parametrize(
    "columns",
    [
        {"vector": b"abc"},
        {"vector": blob([float("nan")] * 8)},
        {"vector": blob([float("inf")] + [0.0] * 7)},
        {"vector": blob([0.0] * 8)},
        {"vector": "text"},
        {"score": None},
        {"score": "high"},
        {"score": float("inf")},
        {"created_at": "yesterday"},
        {"created_at": b"2026-01-01"},
        {"created_at": 17},
        {"updated_at": ""},
        {"last_used_at": "never"},
        {"used_count": "often"},
        {"used_count": None},
        {"tags": b"\xff"},
        {"parent_id": 1.5},
        # Not told from others, or not saying anything.
        {"memory_type": b"bugfix"},
        {"context": b"\xff\xfe"},
        {"result": 7.5},
    ],
    ids=str,
)
def test_one_bad_row_is_counted_and_costs_no_other(bare, columns):
    bare.loosen()
    bare.add("before", near(0))
    bare.add("bad", **{"vector": near(1), **columns})
    bare.add("after", near(2))
    corpus = read_corpus(bare.path)
    assert corpus.skipped == 1
    assert {"before", "after"} <= {row.id for row in corpus.rows}
    assert {"before", "after"} <= {corpus.rows[at].id for at in corpus.owners}


def test_ids_that_are_none_or_twice_there_are_counted(bare):
    bare.loosen()
    for uid in ("a", None, 5, "a", "b"):
        bare.add(uid)
    corpus = read_corpus(bare.path)
    assert [row.id for row in corpus.rows] == ["a", "b"]
    assert corpus.skipped == 3


def test_what_the_router_learned(bare):
    insert = "INSERT INTO q_table VALUES (?, ?, ?, ?, ?, '')"
    bare.connection.execute(insert, ("search", "debug", "x", 0.5, 3))
    bare.connection.execute(insert, ("search", "debug", "y", "much", 3))
    bare.connection.execute(insert, ("search", b"\xff", "z", 0.5, 3))
    assert read_corpus(bare.path).q_values == [QValue("search", "debug", "x", 0.5, 3)]


@pytest.mark.parametrize("table", ["memories", "q_table", "feedback_tracking"])
def test_a_table_that_is_missing_is_named(bare, table):
    bare.connection.execute(f"DROP TABLE {table}")
    with pytest.raises(errors.NotAStore, match=table):
        read_corpus(bare.path)


def test_a_column_that_is_missing_is_named(bare):
    bare.connection.execute("ALTER TABLE memories DROP COLUMN tags")
    with pytest.raises(errors.NotAStore, match="tags"):
        read_corpus(bare.path)


def test_no_database(tmp_path):
    with pytest.raises(errors.CannotOpen):
        read_corpus(tmp_path / "none.db")
    with pytest.raises(errors.CannotOpen):
        read_corpus(tmp_path)
    (tmp_path / "text").write_text("hello " * 200)
    with pytest.raises(errors.NotAStore):
        read_corpus(tmp_path / "text")
    (tmp_path / "empty").touch()
    with pytest.raises(errors.NotAStore):
        read_corpus(tmp_path / "empty")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["empty", "text"]


@pytest.mark.parametrize("name", ["a#b", "50%", "what?mode=rwc", "%23", "a b", "ü", "file:x"])
def test_names_that_a_uri_would_read_otherwise(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    BareDatabase(folder / f"{name}.db").add("m")
    before = snapshot(folder)
    assert [row.id for row in read_corpus(folder / f"{name}.db").rows] == ["m"]
    assert snapshot(folder) == before
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_nothing_is_written_or_left(bare, mode):
    bare.connection.execute(f"PRAGMA journal_mode = {mode}")
    bare.add("m", near(0))
    bare.connection.close()
    before = snapshot(bare.path.parent)
    read_corpus(bare.path)
    assert snapshot(bare.path.parent) == before


def test_the_log_of_a_process_that_died_is_read_and_stays(bare, tmp_path):
    bare.connection.execute("PRAGMA journal_mode = wal")
    bare.add("m")
    copies = tmp_path / "copies"
    copies.mkdir()
    for end in ("", "-wal", "-shm"):
        (copies / f"a.db{end}").write_bytes(bare.path.with_name(f"memories.db{end}").read_bytes())
    log = snapshot(copies)["a.db-wal"]
    main = snapshot(copies)["a.db"]
    assert [row.id for row in read_corpus(copies / "a.db").rows] == ["m"]
    assert (snapshot(copies)["a.db"], snapshot(copies)["a.db-wal"]) == (main, log)


def test_a_writer_is_not_waited_for(bare):
    bare.connection.execute("PRAGMA journal_mode = wal")
    bare.add("before")
    bare.connection.execute("BEGIN IMMEDIATE")
    bare.add("unfinished")
    assert [row.id for row in read_corpus(bare.path).rows] == ["before"]
    bare.connection.execute("COMMIT")
    assert [row.id for row in read_corpus(bare.path).rows] == ["before", "unfinished"]


CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=40),
    st.text(max_size=10),
    st.sampled_from([hours(1), hours(3), "decision", "m1", blob(near(0)), blob([1.0] * 8)]),
)
COLUMNS = [
    "uid", "memory_type", "context", "action", "result", "score", "vector", "tags",
    "parent_id", "created_at", "updated_at", "used_count", "last_used_at", "superseded_by",
]  # fmt: skip


@given(rows=st.lists(st.dictionaries(st.sampled_from(COLUMNS), CELLS), max_size=9))
def test_whatever_the_cells_hold_every_stage_ends(tmp_path_factory, rows):
    bare = BareDatabase(tmp_path_factory.mktemp("damaged") / "a.db")
    bare.loosen()
    for at, row in enumerate(rows):
        bare.add(**{"uid": f"m{at}", "vector": near(at % 2), **row})
    said = bare.learned()
    assert [name for name, _ in stages(said) if "failed" in name] == []


@given(at=st.integers(0, 100), flipped=st.binary(min_size=1, max_size=64), seed=st.integers(0, 999))
def test_a_file_that_is_damaged_anywhere_never_breaks_the_program(
    tmp_path_factory, at, flipped, seed
):
    bare = BareDatabase(tmp_path_factory.mktemp("damaged") / "a.db")
    for one in range(20):
        bare.add(f"m{one}", near(one % 3), created_at=hours(one))
    bare.connection.close()
    content = bytearray(bare.path.read_bytes())
    place = (len(content) * at // 101 + seed) % len(content)
    content[place : place + len(flipped)] = flipped
    bare.path.write_bytes(content[: len(bare.path.read_bytes())])
    try:
        corpus = read_corpus(bare.path)
    except errors.EngramError:
        return
    assert len(corpus.vectors) == len(corpus.owners) <= len(corpus.rows)
    assert np.isfinite(corpus.vectors).all()


def test_a_text_with_a_nul_arrives_whole(bare):
    bare.add("m", context="a\0b")
    assert read_corpus(bare.path).rows[0].context == "a\0b"
