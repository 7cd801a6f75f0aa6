"""What lies beside a store, for whom, and what where nothing can."""

from __future__ import annotations

import errno
import os
import shutil

import pytest
from answers import answers, assert_true, filled
from kept import assert_read_back, folder, opened
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import ModelMismatch
from engram.index import EpisodeIndex

pytestmark = pytest.mark.usefixtures("small_segments")


# What is there, and for whom.


def test_a_small_store_has_nothing_beside_it(path):
    with opened(path) as memory:
        filled(memory, 90)
        memory.recall("w1")
        memory.maintain()
    assert list(path.parent.iterdir()) == [path]


def test_an_encrypted_store_has_nothing_beside_it(path):
    with opened(path, key="secret") as memory:
        filled(memory, 300)
        memory.recall("w1")
        memory.maintain()
        assert len(memory._index.segments) > 0
        assert_true(memory)
        assert not folder(path).exists()
    assert list(path.parent.iterdir()) == [path]


def test_a_store_in_memory_has_nothing_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(":memory:") as memory:
        filled(memory, 300)
        memory.maintain()
        assert len(memory._index.segments) > 0
        assert_true(memory)
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_may_read_what_is_kept(copied):
    with opened(copied) as memory:
        filled(memory, 150, seed=8)
        memory.recall("w1")
        memory.maintain()
        assert folder(copied).stat().st_mode & 0o777 == 0o700
        for file in folder(copied).iterdir():
            assert file.stat().st_mode & 0o777 == 0o600


def test_what_is_kept_is_read_back(kept, copied, monkeypatch):
    assert_read_back(copied, monkeypatch, kept.answers)


def test_another_model_has_other_segments(copied, monkeypatch):
    other = WordEmbedder(16, "other")
    with opened(copied) as memory, opened(copied) as reader:
        reader.recall("w1")
        memory.reembed(embedder=other)
        memory.maintain()
        assert {one.arrays["centre"].size for one in memory._index.segments} == {16}
        with pytest.raises(ModelMismatch):
            reader.recall("w1")
        expected = answers(memory)
    with monkeypatch.context() as patch:
        patch.setattr(EpisodeIndex, "_add_segment", lambda *_: pytest.fail("made anew"))
        with Engram(copied, embedder=other) as memory:
            assert answers(memory) == expected
    shutil.rmtree(folder(copied))
    with Engram(copied, embedder=other) as memory:
        assert answers(memory) == expected


# Where nothing can be kept.


def test_where_no_folder_can_be_made_memory_serves(path):
    folder(path).write_bytes(b"somebody's file")
    with opened(path) as memory:
        ids = filled(memory, 400)
        assert_true(memory)
        memory.maintain()
        memory.forget(ids[3])
        assert_true(memory)
    assert folder(path).read_bytes() == b"somebody's file"
    with opened(path) as memory:
        assert_true(memory)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_on_a_full_disk_memory_serves(kept, copied, path, monkeypatch):
    before = {file.name for file in path.parent.rglob("*")}
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with opened(copied) as memory:
            assert answers(memory) == kept.answers
            filled(memory, 400, seed=5)
            assert_true(memory)
            memory.maintain()
            assert_true(memory)
            memory.recall("w1")
    # What was forgotten in these files went with them: there was no room to make them anew.
    assert {file.name for file in path.parent.rglob("*")} <= before
    with opened(copied) as memory:
        assert_true(memory)


def test_a_disk_that_is_full_at_the_manifest(copied, monkeypatch):
    with opened(copied) as memory:
        filled(memory, 400, seed=5)
        assert_true(memory)
        memory._upkeep.stop()
        with monkeypatch.context() as patch:
            patch.setattr(os, "posix_fallocate", full)
            memory.maintain()
            assert_true(memory)
    with opened(copied) as memory:
        assert_true(memory)


# Keys and copies.


def test_a_key_takes_the_folder_away(copied):
    with opened(copied) as memory:
        memory.recall("w1")
        memory.rekey("secret")
        assert not folder(copied).exists()
        filled(memory, 200, seed=6)
        memory.maintain()
        assert_true(memory)
        assert not folder(copied).exists()
        memory.rekey(None)
        assert_true(memory)
        memory.maintain()
        assert folder(copied).exists()


def test_a_folder_left_beside_an_encrypted_store_goes_at_opening(copied, path):
    left = shutil.copytree(folder(copied), path.parent / "left")
    with opened(copied) as memory:
        memory.rekey("secret")
    left.rename(folder(copied))
    with opened(copied, key="secret") as memory:
        assert not folder(copied).exists()
        assert_true(memory)


def test_a_backup_needs_no_folder(kept, copied, tmp_path):
    with opened(copied) as memory:
        memory.backup(tmp_path / "backup.engram")
    assert not folder(tmp_path / "backup.engram").exists()
    with opened(tmp_path / "backup.engram") as copy:
        assert answers(copy) == kept.answers
        assert_true(copy)
