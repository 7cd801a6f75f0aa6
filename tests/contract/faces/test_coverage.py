"""What faces claim is run, what is run is claimed, and the page says the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import faces_page
import pytest
from contract.faces.behaviours import BEHAVIOURS, PAIRS, claimed
from contract.faces.registry import FACES

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def collected():
    """The ids of all tests of this folder, as pytest finds them."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", HERE],
        capture_output=True,
        text=True,
        cwd=HERE.parents[2],
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_what_is_claimed_is_what_is_run(collected):
    run = set(re.findall(r"[\[-]([a-z]+\.[a-z_]+-[a-z_]+)\]$", "\n".join(collected), re.MULTILINE))
    pairs = {one for one in claims() if one.startswith("pairs.")}
    assert run == claims() - pairs
    # Of a pair, one half belongs to the face that keeps and one to the face that finds.
    assert {writer for writer, _ in PAIRS} == faces_with("pairs.written", pairs)
    assert {reader for _, reader in PAIRS} == faces_with("pairs.found", pairs)
    for writer, reader in PAIRS:
        assert any(line.endswith(f"[{writer}-{reader}]") for line in collected)


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
