"""Public ids: unique, and in the order of writing whatever the clock does."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from engram import ObserveInput
from engram.errors import InvalidType
from engram.storage import uids

WRITER = """
import sys
from datetime import datetime
from stand_ins import Clock, WordEmbedder
from engram import Engram
clock = Clock(datetime.fromisoformat(sys.argv[2]))
with Engram(sys.argv[1], embedder=WordEmbedder(), clock=clock) as memory:
    for line in sys.stdin:
        print(memory.observe(line), flush=True)
"""


def items(count: int) -> list[ObserveInput]:
    return [ObserveInput(str(n)) for n in range(count)]


def written(memory) -> list[str]:
    """Return every id in the order of writing."""
    with memory._store.reading():
        rows = memory._store._connection.execute("SELECT uid FROM episode ORDER BY id").fetchall()
    return [uids.from_stored(uid) for (uid,) in rows]


def test_ids_are_uuids_that_say_when(memory, clock):
    made = uuid.UUID(memory.observe("x"))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == int(clock.now.timestamp() * 1000)


def test_ids_grow_under_a_fixed_clock(memory):
    ids = [memory.observe("x"), *memory.observe_many(items(1)), *memory.observe_many(items(300))]
    ids += [memory.observe("y") for _ in range(20)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert written(memory) == ids


def test_ids_grow_under_a_clock_that_goes_backwards(memory, clock):
    ids = []
    for year in (2026, 2020, 2026, 1, 1969, 2030, 2025):
        clock.now = clock.now.replace(year=year)
        ids += memory.observe_many(items(3))
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_ids_of_two_processes_grow_together(memory, path, clock):
    earlier = (clock.now.replace(year=2020)).isoformat()
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), earlier],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
        env={"PYTHONPATH": str(Path(__file__).parent)},
    ) as other:
        ids = []
        for turn in range(10):
            print(f"theirs {turn}", file=other.stdin, flush=True)
            ids.append(other.stdout.readline().strip())
            ids.append(memory.observe(f"mine {turn}"))
        other.stdin.close()
    assert ids == sorted(ids)
    assert len(set(ids)) == 20
    assert written(memory) == ids


def test_a_batch_of_twenty_thousand(memory):
    many = items(20_000)
    for item in many:
        item.content = str(int(item.content) % 7)  # the stand-in's vectors cost time
    refused = [*many[:-1], ObserveInput(3)]
    with pytest.raises(InvalidType, match=r"^items\[19999\]\.content must be a str, not int"):
        memory.observe_many(refused)
    assert memory.count() == 0
    ids = memory.observe_many(many)
    assert written(memory) == ids == sorted(ids)
    assert len(set(ids)) == memory.count() == 20_000


def test_a_forgotten_id_is_not_given_again(memory):
    ids = set()
    for _ in range(50):
        uid = memory.observe("x")
        memory.forget(uid)
        ids.add(uid)
    assert len(ids) == 50


LARGEST = (7 << 76 | 2 << 62 | 0xFFFFFFFFFFFF << 80 | 0xFFF << 64 | (1 << 62) - 1).to_bytes(16)


@pytest.mark.parametrize(
    "last",
    [None, "episode-9", b"short", uuid.UUID("ffffffff-ffff-4fff-bfff-ffffffffffff").bytes, LARGEST],
)
def test_what_cannot_be_followed_is_passed_over(last):
    at = 1_750_000_000_000_000
    made = uids.following(last, at, 3)
    assert made == sorted(made)
    assert {int.from_bytes(uid[:6]) for uid in made} == {at // 1000}


def test_a_time_before_1970_makes_ids_too():
    made = uids.following(None, -1, 1) + uids.following(None, -(10**15), 2)
    assert {int.from_bytes(uid[:6]) for uid in made} == {0}


@pytest.mark.parametrize(
    "uid",
    [
        "",
        "-",
        "episode-9",
        "00000000-0000-0000-0000-00000000000g",
        "F47AC10B-58CC-4372-A567-0E02B2C3D479",
        "f47ac10b58cc4372a5670e02b2c3d479",
        "f47ac10b-58cc-4372-a567-0e02b2c3d4",
        "{f47ac10b-58cc-4372-a567-0e02b2c3d479}",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479 ",
        "f47ac10b-58cc-4372-a567-0e02b2c3d４79",
    ],
)
def test_any_other_id_is_kept_as_text(uid):
    assert uids.to_stored(uid) == uid == uids.from_stored(uid)


@pytest.mark.parametrize("version", [1, 4, 7])
def test_a_canonical_uuid_takes_sixteen_bytes(version):
    uid = f"f47ac10b-58cc-{version}372-a567-0e02b2c3d479"
    assert uids.to_stored(uid) == uuid.UUID(uid).bytes
    assert uids.from_stored(uuid.UUID(uid).bytes) == uid
