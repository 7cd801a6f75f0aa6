"""A store with segments beside it, to be damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from answers import answers, assert_true, embedder, filled

from engram import Engram
from engram.index import EpisodeIndex


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
