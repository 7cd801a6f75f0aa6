"""Importance in blocks: what is read is what was written, and what older stores hold is kept."""

from __future__ import annotations

import random
import struct

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from older import older
from stand_ins import Clock, WordEmbedder

from engram import Engram, ObserveInput
from engram.storage import Store
from engram.storage.importance import BLOCK


def keys(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def blocks(memory: Engram) -> list[int]:
    with memory._store.reading():
        rows = memory._store._connection.execute("SELECT block FROM importance ORDER BY block")
        return [block for (block,) in rows]


writes = st.lists(
    st.dictionaries(
        st.integers(1, 3 * BLOCK) | st.integers(10**9, 10**9 + 5),
        st.sampled_from([1.0, 0.0, -3.5]) | st.floats(allow_nan=False),
        min_size=1,
        max_size=12,
    ),
    max_size=6,
)


@given(writes)
def test_what_is_read_is_what_was_written_last(written):
    store = Store(":memory:", 0, memory_budget=0)
    expected: dict[int, float] = {}
    for values in written:
        expected |= values
        with store.writing():
            store.strength.importance.set(
                keys(*sorted(values)), np.array([values[key] for key in sorted(values)])
            )
    asked = keys(*expected, BLOCK, 10**12, 1)
    with store.reading():
        found = store.strength.importance.of(asked)
        stored = {
            key: value
            for some, values in store.strength.importance.stored()
            for key, value in zip(some.tolist(), values.tolist(), strict=True)
            if value != 1.0
        }
        counted = store._connection.execute("SELECT count(*) FROM importance").get
    assert found.tolist() == [expected.get(key, 1.0) for key in asked.tolist()]
    assert stored == {key: value for key, value in expected.items() if value != 1.0}
    # A block of nothing but 1 has no row.
    assert counted == len({key // BLOCK for key in stored})
    store.close()


def test_only_blocks_that_change_are_written(memory):
    importance = memory._store.strength.importance
    everyone = np.arange(1, 4 * BLOCK)
    with memory._store.writing():
        importance.set(everyone, np.full(len(everyone), 0.5))
    values = np.full(len(everyone), 0.5)
    values[BLOCK] = 0.25
    connection = memory._store._connection
    with memory._store.writing():
        before = connection.moment
        importance.set(everyone, values)
        assert connection.moment[1] - before[1] == 1


def test_an_erased_episode_leaves_its_place_as_if_it_never_decayed(memory):
    made = [memory.observe(f"note {n}") for n in range(3)]
    memory.decay()
    assert blocks(memory) == [0]
    memory.forget(made[0])
    assert [memory.get(uid).importance_score for uid in made[1:]] == [0.5, 0.5]
    assert memory.check() == []
    with memory._store.reading():
        [(stored,)] = memory._store._connection.execute("SELECT importances FROM importance")
    assert struct.unpack_from("<4d", stored) == (1.0, 1.0, 0.5, 0.5)
    memory.forget(made[1])
    memory.forget(made[2])
    assert blocks(memory) == []


def test_the_check_finds_an_importance_without_its_episode(memory):
    memory.observe("note")
    with memory._store.writing():
        memory._store.strength.importance.set(keys(7, BLOCK), np.array([0.1, 0.2]))
    assert memory.check() == ["2 episodes that are gone have an importance"]


@pytest.mark.parametrize("key", [None, "pass"])
def test_a_store_of_version_1_keeps_every_value(path, monkeypatch, key):
    clock = Clock()
    chance = random.Random(3)
    count = 2 * BLOCK + 30
    with (
        older(monkeypatch, 1),
        Engram(path, embedder=WordEmbedder(), clock=clock, key=key) as memory,
    ):
        memory.observe_many([ObserveInput(f"note {n}") for n in range(count)])
        connection = memory._store._connection
        decayed = sorted(chance.sample(range(1, count + 1), count // 2))
        importance = {k: chance.choice([0.0, 1.0, chance.uniform(-2, 4)]) for k in decayed}
        accesses = {k: (chance.randrange(3), k, 1, k - 1) for k in decayed}
        with memory._store.writing():
            connection.executemany(
                "INSERT INTO strength VALUES (?, ?, ?, ?, ?, ?)",
                [(k, importance[k], *accesses[k]) for k in decayed],
            )
    with Engram(path, embedder=WordEmbedder(), clock=clock, key=key) as memory:
        assert memory.check() == []
        everyone = np.arange(1, count + 1)
        with memory._store.reading():
            assert memory._store._connection.execute("PRAGMA user_version").get == 6
            found = memory._store.strength.importance.of(everyone)
            kept = memory._store._connection.execute("SELECT * FROM strength").fetchall()
        assert found.tolist() == [importance.get(k, 1.0) for k in everyone.tolist()]
        assert kept == [(k, *accesses[k]) for k in decayed if accesses[k][0]]
        assert memory.decay() == count


def test_reading_an_importance_is_one_look_up(memory):
    memory.observe("note")
    with memory._store.reading():
        plan = memory._store._connection.execute(
            "EXPLAIN QUERY PLAN SELECT substr(i.importances, 8 * (e.id % 240) + 1, 8)"
            " FROM episode AS e LEFT JOIN importance AS i ON i.block = e.id / 240"
        ).fetchall()
    assert any("USING INTEGER PRIMARY KEY" in step[3] and " i " in step[3] for step in plan)


def test_the_format_is_what_its_page_says(memory, tmp_path):
    uid = memory.observe("note")
    with memory._store.writing():
        memory._store.strength.importance.set(keys(1), np.array([0.75]))
    memory.backup(tmp_path / "copy.engram")
    raw = apsw.Connection(str(tmp_path / "copy.engram"))
    [(block, values)] = raw.execute("SELECT * FROM importance").fetchall()
    raw.close()
    assert (block, len(values)) == (0, 8 * BLOCK)
    assert np.frombuffer(values, "<f8").tolist() == [1.0, 0.75, *[1.0] * (BLOCK - 2)]
    assert memory.get(uid).importance_score == 0.75
