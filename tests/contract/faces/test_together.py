"""Many programs at once, and programs that are killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from contract.faces.behaviours import claimed, reason, shows
from contract.faces.registry import FACES
from workers import environment

EACH = 12
WRITERS = [name for name, face in FACES.items() if "many.writers" in claimed(face)]


class Child:
    """A face in a process of its own."""

    def __init__(self, name: str, folder: Path, word: str, count: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "contract.faces.child", name, str(folder), word, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(folder, PYTHONPATH=str(Path(__file__).parents[2])),
        )

    def line(self) -> str:
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def together(name: str) -> str:
    """The word by which the memories of a face are told from those of the others."""
    return name.replace("_", "") + "together"


@pytest.fixture(scope="module")
def written(shared):
    """What each face kept while all others were writing too, by its name."""
    kept: dict[str, list[str]] = {name: [] for name in WRITERS if FACES[name].writes}
    children = {
        name: Child(name, shared.folder, together(name), EACH) for name in kept if FACES[name].child
    }
    for child in children.values():
        assert child.line() == "ready"
    # The others have processes of their own, which are asked from here.
    faces = {name: shared.writer(name) for name in kept if name not in children}

    def ask(name: str) -> None:
        for number in range(EACH):
            kept[name].append(faces[name].remember(f"{together(name)} number {number}"))

    def listen(name: str) -> None:
        children[name].go()
        kept[name] += [children[name].line() for _ in range(EACH)]

    threads = [
        threading.Thread(target=ask if name in faces else listen, args=(name,)) for name in kept
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for child in children.values():
        child.end()
    return kept


@shows("many.writers")
def test_nothing_is_lost_and_all_is_found(shared, name, face, written):
    for writer, ids in written.items():
        assert len(set(ids)) == EACH
        if writer == name or reason(type(face), "pairs.found") is None:
            found = face.find(f"{together(writer)} number", 20)
            assert {one.id for one in found} >= set(ids), writer
    assert shared.operator.check() == []


@shows("many.killed")
def test_what_was_acknowledged_is_there_after_a_kill(new_place, name, word, tmp_path):
    place = new_place()
    if FACES[name].child:
        child = Child(name, place.folder, word, 3)
        assert child.line() == "ready"
        child.go()
        ids = [child.line() for _ in range(3)]
        child.end()
    else:
        face = place.face(name)
        ids = [face.remember(f"{word} number {number}") for number in range(3)]
        face.kill()
    assert {found.id for found in place.face("python").find(word, 3)} == set(ids)
    assert place.operator.check() == []
