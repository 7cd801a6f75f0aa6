"""What lies beside a store is derived: whatever becomes of it, the answers stay the same.

`--mutations N` sets how many damaged files are opened: a quarter of N.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from answers import answers, assert_true, filled
from kept import Kept, assert_read_back, files, folder, opened

pytestmark = pytest.mark.usefixtures("small_segments")


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
