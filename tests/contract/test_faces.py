"""One memory behind all faces: kept by one each finds it, erased by one it is gone from each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from workers import Worker, environment, program

from engram import Engram
from engram.experience import ExperienceMemory

QUERY = "When does the ferry to the island leave?"
CONTEXT = "The ferry to the island leaves at nine"
OTHER = "Bread is baked on Tuesdays"


@pytest.fixture
def project(tmp_path: Path) -> str:
    folder = tmp_path / "atlas"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def config(tmp_path: Path, path: Path) -> Path:
    file = tmp_path / "engram.yaml"
    file.write_text(f"db_path: {path}\nann: {{enabled: false}}\n", encoding="utf-8")
    return file


class Faces:
    """A store that several programs have open at once."""

    def __init__(self, path: Path, config: Path, project: str) -> None:
        self.path, self.config, self.project = path, config, project
        self.experiences = ExperienceMemory(path)
        self.engram = Engram(path)
        self.worker = Worker(config)

    def close(self) -> None:
        self.experiences.close()
        self.engram.close()
        self.worker.__exit__()

    def command(self, *arguments: str) -> None:
        subprocess.run(
            program("--config", str(self.config), *arguments),
            check=True,
            capture_output=True,
            cwd=self.config.parent,
            env=environment(self.config.parent),
        )

    def found(self) -> dict[str, set[str]]:
        """What each face has."""
        listed = self.worker.result("recall", project_id=self.project)["memories"]
        return {
            "experiences": {hit.id for hit in self.experiences.search(QUERY).hits},
            "export": {one.id for one in self.experiences.export()},
            "recall": {one.episode.id for one in self.engram.recall(QUERY)},
            "words": {one.episode.id for one in self.engram.recall("ferry island", mode="hybrid")},
            "search": {one.id for one in self.engram.search(QUERY)},
            "process search": {row["id"] for row in self.worker.result("search", query=QUERY)},
            "process recall": {row["id"] for row in listed},
        }


@pytest.fixture
def faces(path, config, project):
    opened = Faces(path, config, project)
    yield opened
    opened.close()


WAYS: dict[str, Callable[[Faces, str], object]] = {
    "memory_delete": lambda faces, uid: faces.experiences.delete(uid),
    "forget": lambda faces, uid: faces.engram.forget(uid),
    "forget_entity": lambda faces, _: faces.engram.forget_entity("ferry", content_sweep=True),
    "engram forget PATH": lambda faces, uid: faces.command(
        "forget", str(faces.path), "--episode", uid
    ),
    "engram forget ID --erase": lambda faces, uid: faces.command("forget", uid, "--erase"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_one_face_keeps_and_erases_all_see(faces, way):
    stored = faces.experiences.store(
        CONTEXT, "Ask at the harbour", "We caught it", project=faces.project, tags=["travel"]
    )
    faces.experiences.store(OTHER, "Buy some", "Fresh bread", project=faces.project)
    before = faces.found()
    assert {face for face, ids in before.items() if stored.id not in ids} == set()
    WAYS[way](faces, stored.id)
    after = faces.found()
    assert {face for face, ids in after.items() if stored.id in ids} == set()
    # The other one is where it was.
    assert after["export"] == before["export"] - {stored.id}
    assert after["process recall"] == before["process recall"] - {stored.id}
    assert faces.engram.check() == []


def test_what_is_hidden_is_hidden_from_all_and_comes_back(faces):
    uid = faces.experiences.store(CONTEXT, "a", "r", project=faces.project).id
    before = faces.found()
    faces.command("forget", uid)
    assert all(uid not in ids for ids in faces.found().values())
    faces.command("restore", uid)
    assert faces.found() == before


def test_an_episode_is_deleted_by_the_face_of_experiences(faces):
    uid = faces.engram.remember(CONTEXT, project=faces.project)
    found = faces.found()
    assert found.pop("export") == set()
    assert all(uid in ids for ids in found.values())
    faces.experiences.delete(uid)
    assert all(uid not in ids for ids in faces.found().values())
