"""No operation shows one project what belongs to another, however alike their paths look."""

from __future__ import annotations

import json
import os
import re
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_ins import WordEmbedder

from engram import Engram

PROJECTS = 200
CANARY = re.compile(r"canary-\d{3}-(?:explicit|source|task|evidence)")

# Each is a folder of its own beside, above or below the others.
ALIKE = [
    "a", "a-b", "a_b", "a.b", "a b", "a ", " a", "A", "a%", "a*", "a?", "a[b]", "a'", 'a"', "a;",
    "a\\", "a/sub", "a/sub/deep", "a-b/a", "ab", "aa", "á", unicodedata.normalize("NFD", "á"),
    "ａ", "а", "a\u200b", "日本", "日本語", "a,b", "a&b", "a\tb", "a\nb", "~", "~a",
    "-a", "a..", "..a", "...", "a.", ".a", "file:", "C:", "a#b", "é", "e\u0301", "ß", "ss",
    "ı", "i", "I",
]  # fmt: skip


def spellings(base: Path, path: str) -> Iterator[str]:
    """Other ways to write a project's path."""
    parent, name = os.path.split(path)
    yield path
    yield path + "/"
    yield path + "/."
    yield f"{parent}//{name}"
    yield f"{parent}/{name}/../{name}"
    yield f"{base}/nowhere/..{path.removeprefix(str(base))}"


def paths(base: Path) -> list[str]:
    alike = [str(base / name) for name in ALIKE]
    return alike + [str(base / f"p{number}") for number in range(PROJECTS - len(alike))]


@pytest.fixture
def planted(tmp_path, store, start):
    """Every project has a memory that names it, one by its source, a checkpoint and evidence."""
    base = tmp_path / "projects"
    found = paths(base)
    assert len(set(found)) == PROJECTS
    base.mkdir()
    with Engram(store, embedder=WordEmbedder()) as memory:
        for number, path in enumerate(found):
            mark = f"canary-{number:03d}"
            memory.remember(f"{mark}-explicit", project=path)
            memory.remember(f"{mark}-source", source_path=f"{path}/src.py")
    worker = start()
    now = time.time()
    evidence = {}
    for number, path in enumerate(found):
        mark = f"canary-{number:03d}"
        worker.result("checkpoint", project_id=path, task="release", summary=f"{mark}-task")
        evidence[path] = worker.result(
            "evidence_put",
            project_id=path,
            session_id="s",
            assumption_id="a",
            evidence_id="e",
            outcome="supported",
            observed_at=now,
            expires_at=now + 3600,
            observation={"actual": f"{mark}-evidence"},
            provenance={"producer": "p", "check_type": "c"},
        )["id"]
    assert len(set(evidence.values())) == PROJECTS
    return worker, base, found, evidence


def canaries(answer: object) -> set[str]:
    return set(CANARY.findall(json.dumps(answer)))


def expected(found: list[str], path: str) -> tuple[set[str], set[str]]:
    """What a project's context must show of its own, and what it may: sources in its folders."""
    own = f"canary-{found.index(path):03d}"
    inside = {
        f"canary-{number:03d}-source"
        for number, other in enumerate(found)
        if other.startswith(path + "/")
    }
    return {f"{own}-explicit", f"{own}-source", f"{own}-task"}, inside


def test_no_operation_shows_another_projects_memories(planted):
    worker, base, found, evidence = planted
    for path in found:
        shown, inside = expected(found, path)
        own = f"canary-{found.index(path):03d}-evidence"
        for spelled in spellings(base, path):
            for operation, more in (
                ("recall", {"limit": 20}),
                ("session_resume", {"limit": 20}),
                ("resume", {"limit": 20, "task": "release"}),
            ):
                answer = worker.result(operation, project_id=spelled, **more)
                assert answer["project_path"] == path
                assert canaries(answer) == shown | inside
            assert canaries(worker.result("evidence_list", project_id=spelled)) == {own}
        others = [evidence[other] for other in found[:: PROJECTS // 10] if other != path]
        for identity in others:
            answer = worker.result("evidence_get", project_id=path, id=identity)
            assert (answer["state"], answer["reason"], answer["id"]) == (
                "unknown",
                "not_found",
                None,
            )


def test_a_link_is_the_project_it_leads_to(planted, tmp_path):
    worker, base, _, evidence = planted
    (base / "a").mkdir(exist_ok=True)
    (tmp_path / "link").symlink_to(base / "a")
    linked = worker.result("recall", project_id=str(tmp_path / "link"), limit=20)
    assert linked == worker.result("recall", project_id=str(base / "a"), limit=20)
    path = str(base / "a")
    answer = worker.result("evidence_get", project_id=str(tmp_path / "link"), id=evidence[path])
    assert answer["project_id"] == path


def test_clearing_a_checkpoint_clears_no_other(planted):
    worker, _, found, _ = planted
    for path in found[:10]:
        worker.result("checkpoint", project_id=path, task="release", action="clear")
    for number, path in enumerate(found):
        left = worker.result("resume", project_id=path, task="release")["checkpoints"]
        assert len(left) == (number >= 10)
