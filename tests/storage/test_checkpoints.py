"""The write-ahead log: how far it grows, and that moving it into the file is in nobody's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from engram.storage.connection import Connection

PAGE = 4096


def log_size(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def write(connection: Connection, pages: int) -> None:
    """Write about that many pages to the log, over a few of the file."""
    with connection.writing():
        connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, x)")
    for at in range(pages):
        with connection.writing():
            connection.execute("INSERT OR REPLACE INTO t VALUES (?, zeroblob(3000))", (at % 50,))


@pytest.fixture
def connection(path):
    opened = Connection(path)
    yield opened
    opened.close()


def test_the_log_of_a_small_store_stays_small(connection, path):
    write(connection, 2_500)
    assert log_size(path) < 1_100 * (PAGE + 24)
    assert path.stat().st_size > 50 * PAGE


def test_the_log_of_a_large_store_may_take_an_eighth_of_it(connection, path):
    with connection.writing():
        connection.execute("CREATE TABLE large AS SELECT zeroblob(?) AS x", (20_000 * PAGE,))
    assert connection.checkpoint()
    write(connection, 2_000)
    assert 1_500 * PAGE < log_size(path) < 2_600 * PAGE
    write(connection, 2_000)
    assert log_size(path) < 2_600 * PAGE


def test_a_reader_in_the_way_refuses_no_write(connection, path):
    other = Connection(path)
    write(connection, 10)
    with other.reading():
        assert other.execute("SELECT count(*) FROM t").get == 10
        write(connection, 1_500)
        assert other.execute("SELECT count(*) FROM t").get == 10
    write(connection, 10)
    with other.reading():
        assert other.execute("SELECT count(*) FROM t").get == 50
    other.close()
