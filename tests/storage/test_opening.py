"""Opening: what is refused, and how it says so."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import warnings
from contextlib import suppress

import apsw
import pytest
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import (
    Busy,
    CannotOpen,
    Closed,
    CorruptStore,
    Forked,
    InvalidArgument,
    InvalidType,
    NotAStore,
    StoreFull,
    StoreTooNew,
)
from engram.storage import schema


def test_a_missing_folder(tmp_path):
    with pytest.raises(CannotOpen) as refused:
        Engram(tmp_path / "missing" / "memory.engram")
    assert isinstance(refused.value, sqlite3.OperationalError)


def test_what_is_no_file_is_neither_opened_nor_replaced(tmp_path, memory):
    # A device or a pipe must not be renamed over; opening one could wait for ever.
    memory.observe("x")
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for place in (tmp_path, pipe, link, "nul\0.engram"):
        for call in (Engram, memory.backup, memory.export_json, memory.export_lines):
            with pytest.raises((CannotOpen, InvalidArgument)):
                call(place)
    assert pipe.is_fifo()


@pytest.mark.parametrize("content", [b"not a database, just a text file " * 50, b"SQLite format 4"])
def test_a_file_that_is_no_database_is_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(NotAStore) as refused:
        Engram(path)
    assert isinstance(refused.value, sqlite3.DatabaseError)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_left_alone(path):
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    other.close()
    with pytest.raises(NotAStore, match="another program"):
        Engram(path)
    tables = apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema").fetchall()
    assert tables == [("theirs",)]


def test_a_newer_store_is_refused(path, memory):
    memory.observe("from the future")
    memory.close()
    raw = apsw.Connection(str(path))
    raw.execute("PRAGMA user_version = 999")
    raw.close()
    with pytest.raises(StoreTooNew, match=r"999.*upgrade"):
        Engram(path)


def test_an_interrupted_first_opening_leaves_an_empty_file_to_start_over(path, monkeypatch):
    broken = schema.Migration(1, "broken", schema.migrations()[0].sql + "SELECT nonsense;")
    monkeypatch.setattr(schema, "migrations", lambda: (broken,))
    with pytest.raises(Exception, match="lacks a part"):
        Engram(path)
    monkeypatch.undo()
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.observe("second try")
        assert memory.check() == []


def test_an_upgrade_applies_only_what_is_missing(path, memory, monkeypatch):
    uid = memory.observe("from the past")
    memory.close()
    before = schema.migrations()
    added = schema.Migration(len(before) + 1, "later", "CREATE TABLE later (x INTEGER) STRICT;")
    steps = (*before, added)
    monkeypatch.setattr(schema, "migrations", lambda: steps)
    with Engram(path, embedder=WordEmbedder()) as upgraded:
        assert upgraded.get(uid).content == "from the past"
    raw = apsw.Connection(str(path))
    done = raw.execute("SELECT version, name FROM migration").fetchall()
    assert done == [(step.version, step.name) for step in steps]
    raw.close()
    monkeypatch.undo()
    with pytest.raises(StoreTooNew):
        Engram(path)


def test_use_after_close(memory):
    memory.observe("x")
    memory.recall("x")
    memory.close()
    memory.close()
    for call in (
        lambda: memory.observe("x"),
        lambda: memory.recall("x"),
        lambda: memory.get("x"),
        lambda: memory.forget("x"),
        memory.count,
        memory.episodes,
        memory.list_agents,
        memory.check,
    ):
        with pytest.raises(Closed) as refused:
            call()
        assert isinstance(refused.value, sqlite3.ProgrammingError)


def test_a_locked_store_is_named_after_the_timeout(open_memory, path):
    memory = open_memory(busy_timeout=0.05)
    memory.observe("before")
    blocker = apsw.Connection(str(path))
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="busy_timeout"):
        memory.observe("blocked")
    assert [r.episode.content for r in memory.recall("before")] == ["before"], "readers go on"
    blocker.execute("ROLLBACK")
    memory.observe("after")
    assert memory.count() == 2


def test_a_full_disk_undoes_the_write(memory):
    memory.observe("before")
    pages = memory._store._connection.execute("PRAGMA page_count").get
    memory._store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull):
        memory.observe("word " * 100_000)
    assert memory.count() == 1
    memory._store._connection.execute("PRAGMA max_page_count = 1000000")
    memory.observe("after")
    assert memory.count() == 2
    assert memory.check() == []


def test_damage_is_found(path, memory):
    memory.observe("intact")
    memory.close()
    raw = apsw.Connection(str(path))
    raw.execute("DELETE FROM episode_fts_docsize")
    raw.close()
    with Engram(path) as damaged:
        assert damaged.check() != []
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 6] = b"\xff" * 4096 * 4
    path.write_bytes(content)
    with pytest.raises((CorruptStore, NotAStore)):
        Engram(path).check()


def _use(memory, queue):
    try:
        memory.count()
        queue.put("answered")
    except Forked as refused:
        queue.put(refused.code)


def test_a_forked_instance_says_so_and_the_parent_goes_on(memory):
    memory.observe("x")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=_use, args=(memory, queue))
        child.start()
    assert queue.get(timeout=60) == "forked"
    child.join()
    assert memory.count() == 1
    memory.observe("y")
    assert memory.check() == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"key": ""}, InvalidArgument),
        ({"key": 5}, InvalidType),
        ({"key": "\ud800"}, InvalidArgument),
        ({"durability": "off"}, InvalidArgument),
        ({"busy_timeout": -1}, InvalidArgument),
        ({"busy_timeout": "5"}, InvalidType),
        ({"embedder": WordEmbedder(), "embedder_model": "x"}, InvalidArgument),
        ({"embedder": object()}, InvalidType),
    ],
)
def test_bad_options_are_refused_before_a_file_is_made(path, options, error):
    with pytest.raises(error):
        Engram(path, **options)
    assert not path.exists()


def test_every_transaction_is_over_when_a_call_returns(memory):
    def idle():
        connection = memory._store._connection._connection
        # A statement that was left half-read holds a snapshot without a transaction.
        return not connection.in_transaction and connection.txn_state() == apsw.SQLITE_TXN_NONE

    uid = memory.observe("x")
    assert idle()
    for call in (
        lambda: memory.recall("x"),
        lambda: memory.get(uid),
        lambda: memory.observe("bad", salience=7),
        lambda: memory.forget("unknown"),
        lambda: memory.forget(uid),
        memory.count,
        memory.check,
    ):
        with suppress(ValueError, KeyError):
            call()
        assert idle()


def test_the_durability_asked_for_is_used(open_memory):
    for durability, level in (("normal", 1), ("full", 2)):
        memory = open_memory(durability=durability)
        assert memory._store._connection.execute("PRAGMA synchronous").get == level
        assert memory._store._connection.execute("PRAGMA journal_mode").get == "wal"


def test_opening_leaves_the_environment_alone(path, monkeypatch):
    before = dict(os.environ)
    Engram(path).close()
    assert dict(os.environ) == before


def test_closing_with_entries_that_cannot_be_written(open_memory, path):
    memory = open_memory(busy_timeout=0.05)
    memory.observe("x")
    memory.recall("x")
    blocker = apsw.Connection(str(path))
    blocker.execute("BEGIN IMMEDIATE")
    memory.close()
    memory.close()
    blocker.execute("ROLLBACK")
    assert open_memory().count() == 1


def test_a_vector_of_the_wrong_size_is_damage(path, memory):
    memory.observe("x")
    memory.close()
    raw = apsw.Connection(str(path))
    raw.execute("UPDATE embedding SET vector = x'00'")
    raw.close()
    with Engram(path, embedder=WordEmbedder()) as damaged:
        for _ in range(2):
            with pytest.raises(CorruptStore):
                damaged.recall("x")
