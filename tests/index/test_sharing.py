"""Processes, instances and threads on one large store: each publishes, none is ever wrong."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from answers import assert_true, embedder, filled
from turns import Other

from engram import Engram

pytestmark = pytest.mark.usefixtures("small_segments")


def manifest(memory: Engram) -> str | None:
    with memory._store.reading():
        return memory._store.snapshot()


def test_instances_of_one_process_take_each_others_files_and_go_on(path):
    with Engram(path, embedder=embedder()) as one, Engram(path, embedder=embedder()) as two:
        filled(one, 300)
        for memory in (one, two):
            memory.recall("w1")
            memory.maintain()
        filled(one, 120, seed=2)
        two._upkeep.stop()
        assert_true(two)
        theirs = two._index.segments[-1].arrays.path
        assert theirs.exists()
        assert_true(one)
        one.maintain()
        assert not theirs.exists()
        assert_true(two)
        two.maintain()
        filled(two, 130, seed=3)
        assert_true(two)
        two.maintain()
        assert_true(one)
        assert_true(two)


def test_a_segment_made_while_a_manifest_is_written_keeps_its_file(path, monkeypatch):
    with Engram(path, embedder=embedder()) as memory:
        filled(memory, 300)
        assert_true(memory)
        memory._upkeep.stop()
        index = memory._index
        write = index.shelf.write_manifest

        def meanwhile(*given):
            name = write(*given)
            filled(memory, 120, seed=2)
            with memory._store.reading():
                index.refresh()
            return name

        filled(memory, 120, seed=5)
        with monkeypatch.context() as patch:
            patch.setattr(index.shelf, "write_manifest", meanwhile)
            memory.maintain()
        assert all(one.arrays.path.exists() for one in index.segments)
        assert not all(map(index.shelf.has, index.segments))
        memory.maintain()
        assert all(map(index.shelf.has, index.segments))
        assert_true(memory)


def test_threads_recall_while_others_write_forget_and_maintain(path):
    def work(seed: int) -> None:
        chance = random.Random(seed)
        for turn in range(6):
            ids = filled(memory, chance.randrange(20, 110), seed=10 * seed + turn)
            for uid in chance.sample(ids, 3):
                memory.forget(uid)
            assert len(memory.recall("w1 w2", 20, tags=[f"t{turn % 3}"])) == 20
            if seed == 0:
                memory.maintain()

    with Engram(path, embedder=embedder()) as memory:
        filled(memory, 300)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert_true(memory)
        memory.maintain()
        assert all(map(memory._index.shelf.has, memory._index.segments))
        assert_true(memory)
        assert memory.check() == []
    with Engram(path, embedder=embedder()) as memory:
        assert_true(memory)


def test_two_processes_in_turn(path):
    chance = random.Random(3)
    publishers = set()
    with Engram(path, embedder=embedder()) as memory, Other(path) as other:
        mine, theirs = filled(memory, 200), []
        for turn in range(24):
            before = manifest(memory)
            theirs.append(other.ask(f"fill {chance.randrange(5, 90)} {turn}"))
            assert_true(memory)
            memory._upkeep._working.acquire()  # nothing of ours in the background
            memory._upkeep._working.release()
            mine += filled(memory, chance.randrange(5, 90), seed=100 + turn)
            assert other.ask("true") == "True"
            for uid in chance.sample(mine, 3):
                mine.remove(uid)
                memory.forget(uid)
            assert other.ask(f"forget {theirs.pop(chance.randrange(len(theirs)))}") == "done"
            assert_true(memory)
            assert other.ask("true") == "True"
            if turn % 3 == 0:
                memory.maintain()
                publishers |= {"mine"} if manifest(memory) != before else set()
            if turn % 4 == 1:
                before = manifest(memory)
                assert other.ask("maintain") == "done"
                publishers |= {"theirs"} if manifest(memory) != before else set()
            assert_true(memory)
        assert memory.check() == []
    assert publishers == {"mine", "theirs"}
    with Engram(path, embedder=embedder()) as memory:
        assert_true(memory)
        memory.maintain()
    names = [file.name for file in Path(f"{path}-index").iterdir()]
    assert sum(name.endswith(".manifest") for name in names) == 1
    assert all(name.endswith((".manifest", ".segment")) or name == "lock" for name in names)
