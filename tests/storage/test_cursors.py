"""What was read holds nothing up once its transaction is over."""

from __future__ import annotations

import gc

import apsw
import pytest
from stand_ins import WordEmbedder

from engram.experience import ExperienceMemory
from engram.storage.connection import Connection


def is_open(cursor: apsw.Cursor) -> bool:
    try:
        return cursor.connection is not None
    except apsw.CursorClosedError:
        return False


def open_cursors() -> int:
    gc.collect()
    return sum(isinstance(one, apsw.Cursor) and is_open(one) for one in gc.get_objects())


@pytest.fixture
def connection(tmp_path):
    one = Connection(tmp_path / "a.db")
    with one.writing():
        one.execute("CREATE TABLE t (a)")
        one.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(5)))
    yield one
    one.close()


def test_no_cursor_outlives_its_transaction(connection):
    before = open_cursors()
    for _ in range(20):
        with connection.reading():
            for (number,) in connection.execute("SELECT a FROM t"):
                connection.execute("SELECT a FROM t WHERE a > ?", (number,)).fetchone()
    assert open_cursors() <= before


def test_writing_rows_as_they_are_read_needs_one_cursor(connection):
    def rows(most: int):
        for (number,) in connection.execute("SELECT a FROM t WHERE a < ?", (most,)).fetchall():
            # Which may write itself.
            connection.executemany("UPDATE t SET a = a WHERE a = ?", [(number,)])
            yield from connection.execute("SELECT a FROM t WHERE a = ?", (number,))

    before = open_cursors()
    with connection.writing():
        for _ in range(20):
            connection.executemany("UPDATE t SET a = a WHERE a = ?", rows(3))
        assert open_cursors() <= before + 2
    with connection.reading():
        assert connection.execute("SELECT count(*) FROM t").get == 5


def test_a_failed_write_of_many_leaves_the_next_one_be(connection):
    with pytest.raises(ZeroDivisionError), connection.writing():
        connection.executemany("INSERT INTO t VALUES (?)", ((1 // n,) for n in (1, 0)))
    with connection.writing():
        connection.executemany("INSERT INTO t VALUES (?)", [(7,)])
    with connection.reading():
        assert connection.execute("SELECT sum(a) FROM t").get == 17


def test_calls_leave_none_behind(tmp_path):
    embedder = WordEmbedder()
    with ExperienceMemory(tmp_path / "a.engram", embedder=embedder) as memory:
        memory.store("a", "b", "c")
        memory.search("a")
        before = open_cursors()
        for number in range(20):
            memory.store(f"text {number}", "b", "c")
            memory.search("text")
        memory.consolidate()
        assert open_cursors() <= before + 1
