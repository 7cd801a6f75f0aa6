"""What was forgotten is in no file of a large store or of its folder: no word, no term, no code."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from answers import assert_true, embedder, filled
from files import every_byte
from stand_ins import Clock, WordEmbedder
from turns import Other

from engram import Engram, ObserveInput

pytestmark = pytest.mark.usefixtures("small_segments")

CANARIES = {
    kind: f"{kind}{random.Random(kind).randbytes(29).hex()}"[:64] for kind in ("text", "tag", "who")
}
TRACES = [canary[at : at + 16].encode() for canary in CANARIES.values() for at in (8, 40)]
FORGETTER = Path(__file__).with_name("forgetter.py")


def opened(path: Path, **options: object) -> Engram:
    return Engram(path, **{"embedder": embedder()} | options)


def folder(path: Path) -> Path:
    return Path(f"{path}-index")


def traces(path: Path) -> list[bytes]:
    left = every_byte(path).lower()
    return [trace for trace in TRACES if trace in left]


def planted(memory: Engram, path: Path) -> list[str]:
    """Remember canaries among other things, so that segments in files have them."""
    filled(memory, 150)
    gone = memory.observe_many(
        ObserveInput(
            f"w1 {CANARIES['text'].upper()} w{n}",
            tags=[CANARIES["tag"]],
            actors=[CANARIES["who"]],
            salience=0.0,
        )
        for n in range(12)
    )
    filled(memory, 150, seed=2)
    memory.recall("w1")
    memory.maintain()
    terms = b"".join(file.read_bytes() for file in folder(path).glob("*.segment"))
    assert CANARIES["text"].encode() in terms
    return gone


def forget(memory: Engram, gone: list[str]) -> None:
    for uid in gone:
        memory.forget(uid)


def forget_after_recalls(memory: Engram, gone: list[str]) -> None:
    forget(memory, gone[:5])
    memory.recall("w1")
    memory.maintain()
    filled(memory, 120, seed=3)
    memory.recall("w1")
    forget(memory, gone[5:])


def forget_and_compact(memory: Engram, gone: list[str]) -> None:
    forget(memory, gone)
    memory.compact()


def forget_everything(memory: Engram, gone: list[str]) -> None:
    for episode in memory.episodes(limit=1000).episodes:
        memory.forget(episode.id)


def prune(memory: Engram, gone: list[str]) -> None:
    assert set(gone) <= set(memory.prune(threshold=0.3))


@pytest.mark.parametrize(
    "erase", [forget, forget_after_recalls, forget_and_compact, forget_everything, prune]
)
def test_after_close_nothing_is_left(path, erase):
    clock = Clock()
    with opened(path, clock=clock) as memory:
        gone = planted(memory, path)
        clock.advance(days=1)
        erase(memory, gone)
    assert traces(path) == []
    with opened(path) as memory:
        if memory.count():
            assert_true(memory)


def test_an_instance_that_never_recalled_leaves_nothing_either(path):
    with opened(path) as memory:
        gone = planted(memory, path)
    with opened(path) as memory:
        forget(memory, gone)
    assert traces(path) == []


@pytest.mark.parametrize("asked", [False, True])
def test_when_forget_entity_returns_nothing_is_left(path, asked):
    with opened(path) as memory:
        planted(memory, path)
        other = opened(path)
        if asked:
            other.recall("w1")
            filled(other, 120, seed=4)
            other._upkeep.stop()
            other.recall("w1")
        assert memory.forget_entity(CANARIES["who"]).wiped
        assert traces(path) == []
        assert_true(other)
        other.maintain()
        assert_true(other)
        other.close()
        assert_true(memory)
        assert traces(path) == []
    assert traces(path) == []


def test_a_killed_process_leaves_it_to_the_next_that_closes(path):
    with opened(path) as memory:
        gone = planted(memory, path)
    killed = subprocess.run(
        [sys.executable, str(FORGETTER), str(path), *gone],
        env={**os.environ, "PYTHONPATH": str(FORGETTER.parents[1])},
    )
    assert killed.returncode == -9
    assert traces(path) != []
    with opened(path) as memory:
        assert_true(memory)
    assert traces(path) == []
    with opened(path) as memory:
        assert_true(memory)


def test_what_another_process_has_not_named_yet_goes_as_well(path):
    with opened(path) as memory, Other(path) as other:
        planted(memory, path)
        other.ask("without_upkeep")
        memory.observe_many(
            ObserveInput(f"{CANARIES['text']} {n}", actors=[CANARIES["who"]]) for n in range(100)
        )
        other.ask("recall w1")
        assert list(folder(path).glob(f"*.{other.process.pid}"))
        assert memory.forget_entity(CANARIES["who"]).wiped
        assert traces(path) == []
        assert other.ask("true") == "True"
        assert other.ask("maintain") == "done"
        assert other.ask("true") == "True"
        assert_true(memory)
    assert traces(path) == []


def test_where_nothing_can_be_written_the_folder_goes(path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened(path) as memory:
        planted(memory, path)
        with monkeypatch.context() as patch:
            patch.setattr(os, "posix_fallocate", full)
            assert memory.forget_entity(CANARIES["who"]).wiped
        assert traces(path) == []
        assert not folder(path).exists()
        assert_true(memory)
    assert traces(path) == []


def test_while_another_process_holds_the_folder_it_goes(path):
    with opened(path) as memory:
        planted(memory, path)
        with (folder(path) / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert memory.forget_entity(CANARIES["who"]).wiped
        assert traces(path) == []
        assert_true(memory)
    assert traces(path) == []


def test_where_an_old_file_cannot_be_taken_away_the_folder_goes(path, monkeypatch):
    unlink = Path.unlink

    def refused(file: Path, **options: bool) -> None:
        if file.suffix == ".segment":
            raise PermissionError(errno.EACCES, "Permission denied")
        unlink(file, **options)

    with opened(path) as memory:
        planted(memory, path)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", refused)
            assert memory.forget_entity(CANARIES["who"]).wiped
        assert traces(path) == []
        assert_true(memory)
    assert traces(path) == []


def test_a_folder_that_cannot_be_emptied_is_said(path, monkeypatch):
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with opened(path) as memory:
        planted(memory, path)
        monkeypatch.setattr(os, "posix_fallocate", refused)
        monkeypatch.setattr("shutil.rmtree", refused)
        assert not memory.forget_entity(CANARIES["who"]).wiped
        monkeypatch.undo()


def test_a_store_with_a_damaged_row_loses_its_folder(path):
    with opened(path) as memory:
        gone = planted(memory, path)
        with memory._store.writing():
            memory._store._connection.execute(
                "UPDATE embedding SET vector = x'00' WHERE episode = (SELECT max(id) FROM episode)"
            )
        shutil.rmtree(folder(path))
        folder(path).mkdir()
        (folder(path) / "1f.segment").write_bytes(CANARIES["text"].encode())
    with opened(path) as memory:
        forget(memory, gone)
    assert traces(path) == []


def test_no_code_of_a_forgotten_vector_is_left(path):
    wide = WordEmbedder(64)
    with opened(path, embedder=wide) as memory:
        filled(memory, 100)
        gone = memory.observe("quite unlike anything else")
        filled(memory, 200, seed=2)
        memory.recall("w1")
        memory.maintain()
        with memory._store.reading():
            index = memory._index
            key = memory._store.episodes.key(gone, None)
            [one] = [part for part in index.segments if part.first <= key <= part.last]
            row = int(np.searchsorted(one.keys, key))
            codes = [bytes(one.arrays.whole(name)[row]) for name in ("high", "low", "bits")]
            codes.append(wide.vector("quite unlike anything else").astype("<f2").tobytes())
        content = every_byte(path)
        assert all(code in content for code in codes)
        memory.forget(gone)
    content = every_byte(path)
    assert not any(code in content for code in codes)
