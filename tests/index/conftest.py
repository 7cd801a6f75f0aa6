"""Small segments, and a store that has some."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kept import Kept
from small_segments import LIMITS


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in LIMITS:
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    # The limits are everybody's again once it is made: the fixture lives as long as the session.
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in LIMITS:
            patch.setattr(module, name, value)
        return Kept(tmp_path_factory.mktemp("kept"))


@pytest.fixture
def copied(kept: Kept, path: Path, small_segments: None) -> Path:
    """The path of a store of its own for a test."""
    shutil.copytree(kept.path, path.parent, dirs_exist_ok=True)
    return path
