"""What lies beside a store is derived: whatever becomes of it, the answers stay the same.

`--mutations N` sets how many damaged files are opened: a quarter of N.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from answers import answers, assert_true, embedder, filled
from small_segments import LIMITS
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import ModelMismatch
from engram.index import EpisodeIndex

pytestmark = pytest.mark.usefixtures("small_segments")


def folder(path: Path) -> Path:
    return Path(f"{path}-index")


def opened(path: Path, **options: object) -> Engram:
    return Engram(path, embedder=embedder(), **options)


class Kept:
    """A store with its folder, as a process left them that was killed.

    There are two segments, forgotten episodes in them that the manifest marks, and writes that no
    manifest covers.
    """

    def __init__(self, root: Path) -> None:
        self.path, self.older = root / "kept", root / "older"
        with opened(root / "live.engram") as memory:
            ids = filled(memory, 330)
            memory.maintain()
            filled(memory, 60, seed=2)
            memory.maintain()
            self._copy(memory, root, self.older)
            for uid in ids[::9]:
                memory.forget(uid)
            filled(memory, 70, seed=3)
            memory.maintain()
            memory.forget(ids[1])
            filled(memory, 10, seed=4)
            self._copy(memory, root, self.path)
            self.answers = answers(memory)
            assert_true(memory)
        with opened(self.path / "copy") as memory:
            assert_true(memory)
            assert len(memory._index.segments) == 2
        shutil.rmtree(folder(self.path / "copy"), ignore_errors=True)
        (self.path / "copy").unlink()

    def _copy(self, memory: Engram, root: Path, to: Path) -> None:
        to.mkdir()
        memory.backup(to / "memory.engram")
        memory.backup(to / "copy")
        shutil.copytree(folder(root / "live.engram"), folder(to / "memory.engram"))
        shutil.copytree(folder(root / "live.engram"), folder(to / "copy"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in LIMITS:
            patch.setattr(module, name, value)
        yield Kept(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def copied(kept: Kept, path: Path) -> Path:
    """The path of a store of its own for a test."""
    shutil.copytree(kept.path, path.parent, dirs_exist_ok=True)
    return path


def files(path: Path, kind: str) -> list[Path]:
    return sorted(folder(path).glob(f"*.{kind}"))


def assert_read_back(path: Path, monkeypatch: pytest.MonkeyPatch, expected: object) -> None:
    """What is beside the store must be all that its answers need."""
    with monkeypatch.context() as patch:
        patch.setattr(
            EpisodeIndex, "_add_segment", lambda *_: pytest.fail("a segment was made anew")
        )
        with opened(path) as memory:
            assert answers(memory) == expected
    assert len(files(path, "manifest")) == 1


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


# What may become of it.


def delete_folder(kept: Kept, path: Path) -> None:
    shutil.rmtree(folder(path))


def delete(kind: str) -> Callable[[Kept, Path], None]:
    def damage(kept: Kept, path: Path) -> None:
        files(path, kind)[0].unlink()

    return damage


def delete_lock(kept: Kept, path: Path) -> None:
    (folder(path) / "lock").unlink()


def swap_segments(kept: Kept, path: Path) -> None:
    one, two = files(path, "segment")
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def anothers_folder(kept: Kept, path: Path) -> None:
    with opened(path.parent / "other.engram") as other:
        filled(other, 350, seed=77)
        other.maintain()
    shutil.rmtree(folder(path))
    folder(path.parent / "other.engram").rename(folder(path))
    (path.parent / "other.engram").unlink()


def anothers_contents(kept: Kept, path: Path) -> None:
    """The files of another store under the names that this one's manifest has."""
    names = files(path, "segment"), files(path, "manifest")
    anothers_folder(kept, path)
    for kind, wanted in zip(("segment", "manifest"), names, strict=True):
        for name, file in zip(wanted, files(path, kind), strict=False):
            file.rename(name)


def older_folder(kept: Kept, path: Path) -> None:
    shutil.rmtree(folder(path))
    shutil.copytree(folder(kept.older / path.name), folder(path))


def leftovers(kept: Kept, path: Path) -> None:
    for name in ("x", "1f.99999999", "2f.99999999.99999999.new", "3f.graph", "4f.manifest"):
        (folder(path) / name).write_bytes(b"anything")
    (folder(path) / "a folder").mkdir()


DAMAGES = [
    delete_folder,
    delete("segment"),
    delete("manifest"),
    delete_lock,
    swap_segments,
    anothers_folder,
    anothers_contents,
    older_folder,
    leftovers,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_no_answer_changes_and_upkeep_heals(kept, copied, monkeypatch, damage):
    damage(kept, copied)
    with opened(copied) as memory:
        assert answers(memory) == kept.answers
        assert_true(memory)
        memory.maintain()
        assert answers(memory) == kept.answers
    assert_read_back(copied, monkeypatch, kept.answers)


def test_an_older_store_under_a_newer_folder(kept, copied, monkeypatch):
    shutil.copy(kept.older / copied.name, copied)
    with opened(copied) as memory:
        assert_true(memory)
        expected = answers(memory)
        assert expected != kept.answers
        # The same keys get other contents than the folder knows of.
        filled(memory, 50, seed=55)
        assert_true(memory)
        memory.maintain()
        expected = answers(memory)
    assert_read_back(copied, monkeypatch, expected)


def test_a_folder_that_goes_while_the_store_is_open(kept, copied):
    with opened(copied) as memory:
        assert answers(memory) == kept.answers
        shutil.rmtree(folder(copied))
        filled(memory, 400, seed=9)
        assert_true(memory)
        memory.maintain()
        assert_true(memory)
    with opened(copied) as memory:
        assert_true(memory)


def mutated(raw: bytes, chance: random.Random) -> bytes:
    at, damaged = chance.randrange(len(raw)), bytearray(raw)
    match chance.randrange(4):
        case 0:
            damaged[at] ^= 1 << chance.randrange(8)
        case 1:
            del damaged[at:]
        case 2:
            damaged += chance.randbytes(chance.choice([1, 8, 4096]))
        case 3:
            damaged[at : at + chance.randrange(1, 5000)] = chance.randbytes(4096)
    return bytes(damaged)


def test_no_changed_byte_changes_an_answer(kept, path, request):
    """Flipped, cut off, made longer, overwritten: the answers are those from before."""
    chance = random.Random(11)
    original = {
        file.relative_to(kept.path): file.read_bytes()
        for file in kept.path.rglob("*")
        if file.is_file()
    }
    targets = sorted(name for name in original if name.suffix in (".segment", ".manifest"))
    for number in range(request.config.getoption("--mutations") // 4):
        # Closing after an erasure takes a damaged folder away.
        folder(path).mkdir(exist_ok=True)
        for file in path.parent.rglob("*"):
            if file.is_file():
                file.unlink()
        target = chance.choice(targets)
        for name, raw in original.items():
            content = mutated(raw, chance) if name == target else raw
            (path.parent / name).write_bytes(content)
        with opened(path, memory_budget=chance.choice([0, 2**30])) as memory:
            assert answers(memory) == kept.answers, number
            if number % 3 == 0:
                memory.maintain()
                assert answers(memory) == kept.answers, number


def damaged_salience(path: Path) -> None:
    """Change a byte of a column that no recall looks at."""
    with opened(path) as memory:
        memory.recall("w1")
        memory._upkeep.stop()
        arrays = memory._index.segments[0].arrays
        memory._store.close()
    with arrays.path.open("r+b") as file:
        file.seek(arrays._rows["salience"][0])
        file.write(b"?")


def test_decay_sees_what_no_recall_looked_at(copied):
    damaged_salience(copied)
    with opened(copied) as memory:
        assert memory.decay() == memory.count()
        importance = [episode.importance_score for episode in memory.episodes(limit=1000).episodes]
    shutil.rmtree(folder(copied))
    with opened(copied) as memory:
        assert memory.decay() == memory.count()
        again = [episode.importance_score for episode in memory.episodes(limit=1000).episodes]
    assert importance == pytest.approx(again, rel=1e-6)


def test_merging_heals_what_no_recall_looked_at(copied, monkeypatch):
    damaged_salience(copied)
    with opened(copied) as memory:
        filled(memory, 400, seed=12)
        memory.maintain()
        assert_true(memory)
        expected = answers(memory)
    assert_read_back(copied, monkeypatch, expected)


def test_merging_in_the_background_heals_as_well(copied, monkeypatch):
    damaged_salience(copied)
    with opened(copied) as memory:
        filled(memory, 400, seed=12)
        expected = answers(memory)
        memory._upkeep.stop()
        assert_true(memory)
        assert memory._index.shelf.keeps
    assert_read_back(copied, monkeypatch, expected)


def test_closing_does_not_mind_damage(copied):
    damaged_salience(copied)
    with opened(copied) as memory:
        memory.recall("w1")
        memory._upkeep.stop()
        memory.forget(memory.recall("w1")[0].episode.id)
        filled(memory, 90, seed=12)
    with opened(copied) as memory:
        assert_true(memory)


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
