"""kill -9 amid erasures and changes of key: all or nothing, and no byte of what is gone.

`--kills N` sets how often each process is killed; state accumulates from kill to kill.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from files import every_byte
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput
from engram.errors import NotAStore

HERE = Path(__file__).parent
EACH = 12
PERSON = re.compile(rb"person\d+x\d+z")
KEYS = (None, "first", "second")


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / script), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )


def kill(process: subprocess.Popen[str]) -> list[str]:
    """Kill a process and return the complete lines that were still unread."""
    assert process.stdout is not None
    process.kill()
    lines = process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -9
    return [line.strip() for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("key", [None, "pass"])
def test_killed_erasures_are_whole_and_leave_no_byte(path, key, request):
    alive: set[str] = set()
    for seed in range(request.config.getoption("kills")):
        process = start("eraser.py", str(path), str(seed), *([key] if key else []))
        assert process.stdout is not None
        lines = [
            process.stdout.readline().strip() for _ in range(random.Random(seed).randrange(40))
        ]
        for line in lines + kill(process):
            (alive.add if line[0] == "+" else alive.discard)(line[2:])
        with Engram(path, embedder=WordEmbedder(), key=key) as memory:
            assert memory.check() == []
            there = whole_people(memory)
        # Not acknowledged is at most the one call that was killed.
        assert len(alive ^ there) <= 1
        alive = there
        # Every trace that is still in some file, in any spelling, is of somebody who is there.
        assert {found.decode() for found in PERSON.findall(every_byte(path))} <= alive


def whole_people(memory: Engram) -> set[str]:
    people: dict[str, int] = {}
    cursor = None
    while True:
        page = memory.episodes(limit=1000, cursor=cursor)
        for episode in page.episodes:
            people[episode.actors[0]] = people.get(episode.actors[0], 0) + 1
        if (cursor := page.cursor) is None:
            break
    assert set(people.values()) <= {EACH}
    for person in people:
        assert len(memory.timeline(person)) <= 1
        assert len(memory.recall(person, EACH + 5, actors=[person])) == EACH
    return set(people)


def test_a_killed_change_of_key_leaves_the_old_key_or_the_new(path, request):
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.observe_many([ObserveInput(f"Xylophone {n}") for n in range(1500)])
    key: str | None = None
    for seed in range(request.config.getoption("kills")):
        process = start("rekeyer.py", str(path), *([key] if key else []))
        assert process.stdout is not None
        chance = random.Random(seed)
        lines = [process.stdout.readline().strip() for _ in range(chance.randrange(1, 4))]
        threading.Event().wait(chance.random() * 0.5)
        lines += kill(process)
        acknowledged = None if lines[-1] == "None" else lines[-1]
        expected = {acknowledged, KEYS[(KEYS.index(acknowledged) + 1) % len(KEYS)]}
        key = opens(path, expected)
        if key is not None:
            assert b"Xylophone" not in every_byte(path)
        assert [file.name for file in path.parent.iterdir()] == [path.name]


def opens(path: Path, keys: set[str | None]) -> str | None:
    """Return the key that opens the store, all of which must be there."""
    for key in keys:
        try:
            with Engram(path, embedder=WordEmbedder(), key=key) as memory:
                assert memory.check() == []
                assert memory.count() >= 1500
                assert len(memory.recall("Xylophone", 1000)) == 1000
                return key
        except NotAStore:
            continue
    pytest.fail("no key opens it")
