"""Two processes in turn on one large store: both publish, and neither is ever wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from answers import assert_true, embedder, filled
from turns import Other

from engram import Engram

pytestmark = pytest.mark.usefixtures("small_segments")


def manifest(memory: Engram) -> str | None:
    with memory._store.reading():
        return memory._store.snapshot()


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
