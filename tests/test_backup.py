"""Backups, new keys and compaction: the file as a whole, while others use it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from files import every_byte
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput
from engram.errors import Busy, CannotOpen, Closed, InvalidArgument, InvalidType, NotAStore

CANARY = "the canary Xylophone-Quetzalcoatl sings"
WRITER = Path(__file__).parent / "crash" / "writer.py"


@pytest.fixture
def dest(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder / "copy.engram"


@pytest.mark.parametrize("key", [None, "pass"])
def test_a_backup_is_the_store(open_memory, dest, key):
    memory = open_memory(key=key)
    ids = memory.observe_many([ObserveInput(f"{CANARY} {n}", tags=["t"]) for n in range(50)])
    memory.recall("canary", 3)
    memory.backup(dest)
    memory.observe("written afterwards")
    with open_memory(path=dest, key=key) as copy:
        assert copy.check() == []
        assert {e.id for e in copy.episodes(limit=100).episodes} == set(ids)
        assert copy.recall("Xylophone", 1, mode="cosine")[0].episode.tags == ["t"]
        # Recalls that had not reached the file yet are in it.
        assert copy._store._connection.execute("SELECT count(*) FROM recall_log").get == 1
    assert (b"Xylophone" in every_byte(dest)) == (key is None)
    assert sorted(dest.parent.iterdir()) == [dest]


def test_another_key_does_not_open_an_encrypted_backup(open_memory, dest):
    open_memory(key="pass").backup(dest)
    with pytest.raises(NotAStore):
        open_memory(path=dest)


def test_a_store_in_memory_is_backed_up_under_its_key(open_memory, dest):
    memory = open_memory(path=":memory:", key="pass")
    memory.observe(CANARY)
    memory.backup(dest)
    assert b"Xylophone" not in dest.read_bytes()
    assert open_memory(path=dest, key="pass").count() == 1


def test_a_scoped_instance_makes_no_backup(open_memory, dest):
    with pytest.raises(ValueError, match=r"'ann'.*without agent_id.*export_json\(\)"):
        open_memory("ann").backup(dest)
    assert not dest.exists()


def test_a_backup_never_overwrites_the_store(memory, path, tmp_path):
    memory.observe("x")
    (tmp_path / "link").symlink_to(path)
    os.link(path, tmp_path / "hard")
    for own in (path, f"{path}-wal", f"{path}-shm", tmp_path / "link", tmp_path / "hard",
                path.parent / "." / path.name):  # fmt: skip
        with pytest.raises(InvalidArgument, match="the store itself"):
            memory.backup(own)
    assert memory.check() == []


def test_a_backup_replaces_the_one_before_and_keeps_its_permissions(memory, path, dest):
    path.chmod(0o600)
    memory.backup(dest)
    assert dest.stat().st_mode & 0o777 == 0o600
    dest.chmod(0o640)
    memory.observe("x")
    memory.backup(dest)
    assert dest.stat().st_mode & 0o777 == 0o640
    with Engram(dest, embedder=WordEmbedder()) as copy:
        assert copy.count() == 1


def test_a_failed_backup_leaves_the_one_before(memory, dest, monkeypatch):
    memory.backup(dest)
    before = dest.read_bytes()
    memory.observe("x")

    def fail(self, target):
        raise OSError

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError):  # noqa: PT011 - any will do
        memory.backup(dest)
    assert dest.read_bytes() == before
    assert sorted(dest.parent.iterdir()) == [dest]


def test_a_backup_does_not_take_a_database_that_is_open(memory, open_memory, dest):
    # SQLite would apply the journal beside the old file to the new one.
    with open_memory(path=dest) as other:
        other.observe("mine")
        with pytest.raises(Busy, match="destination"):
            memory.backup(dest)
        assert other.count() == 1
    memory.backup(dest)


@pytest.mark.parametrize("wrong", [None, 5, b"x", Ellipsis])
def test_a_destination_is_a_path(memory, wrong):
    with pytest.raises(InvalidType, match="dest"):
        memory.backup(wrong)


def test_destinations_that_cannot_be_written(memory, tmp_path):
    with pytest.raises(CannotOpen):
        memory.backup(tmp_path / "missing" / "file")
    with pytest.raises(CannotOpen):
        memory.backup(tmp_path)
    for name in ("", "a\0b"):
        with pytest.raises(InvalidArgument):
            memory.backup(name)


def test_no_backup_of_a_closed_store(memory, dest):
    memory.close()
    with pytest.raises(Closed):
        memory.backup(dest)
    assert not dest.exists()


@pytest.mark.parametrize("key", [None, "pass"])
def test_backups_under_concurrent_writes_hold_a_prefix(open_memory, path, dest, key):
    with open_memory(key=key) as memory:
        memory.observe("first")
        writer = subprocess.Popen(
            [sys.executable, str(WRITER), str(path), "7", *([key] if key else [])],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(WRITER.parents[1])},
        )
        assert writer.stdout is not None
        lines, copies = [], []
        try:
            for _ in range(4):
                lines += [writer.stdout.readline() for _ in range(8)]
                memory.backup(dest)
                with open_memory(path=dest, key=key) as copy:
                    assert copy.check() == []
                    copies.append(frozenset(written_in(copy)))
            # The writer says what it did only after it did it.
            lines += [writer.stdout.readline() for _ in range(500)]
        finally:
            writer.kill()
            writer.stdout.close()
            writer.wait()
    assert set(copies) <= set(states(lines))


def written_in(copy: Engram) -> Iterator[str]:
    cursor = None
    while True:
        page = copy.episodes(limit=1000, cursor=cursor)
        yield from (e.id for e in page.episodes if e.actors == ["writer"])
        if (cursor := page.cursor) is None:
            return


def states(lines: list[str]) -> Iterator[frozenset[str]]:
    """What a store holds after each of a writer's acknowledged calls."""
    alive: set[str] = set()
    for line in lines:
        kind, *ids = line.split()
        (alive.update if kind == "+" else alive.difference_update)(ids)
        yield frozenset(alive)


def test_threads_write_while_a_backup_runs(memory, dest):
    memory.observe_many([ObserveInput(f"note {n}") for n in range(500)])
    done = threading.Event()

    def write():
        while not done.is_set():
            memory.observe("meanwhile")

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(3):
        memory.backup(dest)
    done.set()
    thread.join()
    with Engram(dest, embedder=WordEmbedder()) as copy:
        assert copy.check() == []
        assert copy.count() >= 500
    assert memory.check() == []


@pytest.mark.parametrize(("old", "new"), [("old", "new"), (None, "new"), ("old", None),
                                          ("same", "same")])  # fmt: skip
def test_rekey_in_every_direction(open_memory, path, old, new):
    memory = open_memory("ann", key=old)
    memory.observe_many([ObserveInput(f"{CANARY} {n}", actors=["Bob"]) for n in range(60)])
    memory.recall("canary")
    path.chmod(0o600)
    memory.rekey(new)
    assert path.exists()
    assert {file.name for file in path.parent.iterdir()} <= {
        path.name + end for end in ("", "-wal", "-shm")
    }
    assert (b"Xylophone" in every_byte(path)) == (new is None)
    # The instance goes on.
    memory.observe(f"{CANARY} after")
    assert memory.count() == 61
    assert len(memory.recall("Xylophone", 100)) == 61
    assert memory.check() == []
    memory.close()
    assert (b"Xylophone" in every_byte(path)) == (new is None)
    assert path.stat().st_mode & 0o777 == 0o600
    with open_memory("ann", key=new) as again:
        assert again.count() == 61
        assert again.check() == []
    if old != new:
        with pytest.raises(NotAStore):
            open_memory(key=old)


def test_there_is_no_encryption_to_remove(memory):
    with pytest.raises(ValueError, match="rekey"):
        memory.rekey(None)


def test_a_store_in_memory_has_no_key_to_change(open_memory):
    for key in (None, "pass"):
        with pytest.raises(ValueError, match="rekey"):
            open_memory(path=":memory:", key=key).rekey("x")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [("", InvalidArgument), (5, InvalidType), (b"x", InvalidType), ("\ud800", InvalidArgument)],
)
def test_keys_that_are_refused(open_memory, wrong, error):
    memory = open_memory(key="pass")
    memory.observe("x")
    with pytest.raises(error):
        memory.rekey(wrong)
    memory.close()
    assert open_memory(key="pass").count() == 1


@pytest.mark.parametrize("length", [31, 32, 33])
def test_a_passphrase_of_any_length_goes_through_key_derivation(open_memory, length):
    memory = open_memory(key="old")
    memory.rekey("k" * length)
    rounds = memory._store._connection.execute("PRAGMA kdf_iter").get
    assert int(rounds) == 256000
    memory.close()
    with pytest.raises(NotAStore):
        open_memory(key=f"x'{('k' * length).encode().hex()}'")


def test_a_store_that_is_open_elsewhere_keeps_its_key(open_memory):
    memory = open_memory(key="old", busy_timeout=0.05)
    memory.observe("x")
    with open_memory(key="old") as other:
        with pytest.raises(Busy):
            memory.rekey("new")
        assert other.count() == memory.count() == 1
        memory.observe("y")
        assert other.count() == 2
    memory.rekey("new")
    assert memory.count() == 2


def test_a_closed_store_keeps_its_key(open_memory):
    memory = open_memory(key="old")
    memory.close()
    with pytest.raises(Closed):
        memory.rekey("new")
    assert open_memory(key="old").count() == 0


def test_rekey_finds_the_file_after_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Engram("store.engram", embedder=WordEmbedder()) as memory:
        memory.observe("x")
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        memory.rekey("pass")
        memory.backup("copy.engram")
        assert memory.count() == 1
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["store.engram"]


def test_threads_wait_while_the_key_changes(open_memory):
    memory = open_memory(key="old")
    ids: list[str] = []
    started = threading.Event()

    def write():
        for number in range(30):
            ids.append(memory.observe(f"note {number}"))
            started.set()

    thread = threading.Thread(target=write)
    thread.start()
    started.wait()
    memory.rekey("new")
    memory.rekey(None)
    thread.join()
    assert memory.count() == len(ids) == 30
    assert memory.check() == []


@pytest.mark.parametrize("key", [None, "pass"])
def test_compact_shrinks_the_file_while_others_have_it_open(open_memory, path, key):
    memory = open_memory(key=key)
    text = " ".join(f"word{n}" for n in range(200))
    ids = memory.observe_many([ObserveInput(f"{CANARY} {n} {text}") for n in range(600)])
    kept = memory.observe("an ordinary remark")
    with open_memory(key=key) as other:
        assert other.count() == 601
        for uid in ids:
            memory.forget(uid)
        memory._store._connection.checkpoint()
        before = path.stat().st_size
        memory.compact()
        assert path.stat().st_size < before / 3
        assert [r.episode.id for r in other.recall("ordinary")] == [kept]
    left = every_byte(path)
    assert b"Xylophone" not in left
    assert b"word1" not in left
    assert memory.check() == []
    assert memory.observe("goes on")


def test_compact_says_who_is_in_the_way(open_memory):
    memory = open_memory(busy_timeout=0.05)
    memory.observe("x")
    other = open_memory()
    with other._store.writing(), pytest.raises(Busy):
        memory.compact()
    memory.compact()


@pytest.mark.parametrize("call", ["export_json", "export_lines", "import_json", "import_lines",
                                  "import_store", "backup"])  # fmt: skip
@pytest.mark.parametrize("wrong", [None, 5, b"file", ["file"]])
def test_files_are_named_by_paths(memory, call, wrong):
    with pytest.raises(InvalidType, match="must be a path"):
        getattr(memory, call)(wrong)


def test_a_journal_that_a_killed_change_of_key_left_goes_when_the_store_opens(open_memory, path):
    with open_memory() as memory:
        memory.observe("tea")
    journal = path.with_name(f"{path.name}-journal")
    journal.write_bytes(bytes(512))  # SQLite takes a blank header for no journal, and leaves it
    with open_memory() as memory:
        assert memory.count() == 1
    assert not journal.exists()
