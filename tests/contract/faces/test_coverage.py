"""What faces claim is run, what is run is claimed, and the page says the same."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import faces_page
import pytest
from contract.faces.behaviours import BEHAVIOURS, PAIRS, claimed
from contract.faces.registry import FACES

HERE = Path(__file__).parent


def run() -> set[str]:
    """The ids that the tests of this folder are run with."""
    modules = [
        importlib.import_module(f"contract.faces.{file.stem}") for file in HERE.glob("test_*.py")
    ]
    tests = [
        one for module in modules for name, one in vars(module).items() if name.startswith("test_")
    ]
    marks = [mark for test in tests for mark in getattr(test, "pytestmark", ())]
    return {one for mark in marks for one in mark.kwargs.get("ids") or ()}


def test_what_is_claimed_is_what_is_run():
    pairs = {one for one in claims() if one.startswith("pairs.")}
    assert {one for one in run() if "." in one} == claims() - pairs
    # Of a pair, one half belongs to the face that keeps and one to the face that finds.
    assert {writer for writer, _ in PAIRS} == faces_with("pairs.written", pairs)
    assert {reader for _, reader in PAIRS} == faces_with("pairs.found", pairs)
    assert {f"{writer}-{reader}" for writer, reader in PAIRS} <= run()


def claims():
    return {f"{one}-{name}" for name, face in FACES.items() for one in claimed(face)}


def faces_with(behaviour, pairs):
    return {name for name in FACES if f"{behaviour}-{name}" in pairs}


@pytest.mark.parametrize("name", FACES)
def test_each_face_has_some_behaviour_and_reasons_for_the_rest(name):
    face = FACES[name]
    assert claimed(face)
    topics = {one.partition(".")[0] for one in BEHAVIOURS}
    assert set(face.lacks) <= {*BEHAVIOURS, *topics}
    for why in face.lacks.values():
        assert re.fullmatch(r"\S.*\.", why), why


def test_the_page_is_what_the_suite_says():
    written = faces_page.PAGE.read_text(encoding="utf-8")
    assert written == faces_page.renewed(written)
