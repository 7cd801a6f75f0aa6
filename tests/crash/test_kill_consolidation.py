"""Consolidations that are killed with -9 or run at the same time: all of each or nothing, once.

`--kills N` sets how often the process is killed; state accumulates from kill to kill.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from imported import imported
from stand_ins import WordEmbedder

from engram.experience import ExperienceMemory

HERE = Path(__file__).parent
GROUPS = 12
EACH = 10
MERGED = GROUPS * (EACH - 1)


def start(path: Path, way: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HERE / "consolidator.py"), str(path), way],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )


def fill(path: Path) -> None:
    with ExperienceMemory(path, embedder=WordEmbedder()) as memory:
        memory.import_experiences(
            [
                imported(f"m{group:02}-{n}", f"case {chr(97 + group)}", tags=(f"t{n}",))
                for group in range(GROUPS)
                for n in range(EACH)
            ]
        )


def state(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    with ExperienceMemory(path, embedder=WordEmbedder()) as memory:
        assert memory.check() == []
        return [(one.id, one.tags) for one in memory.export()]


def test_a_killed_consolidation_or_undo_is_whole(path, request):
    fill(path)
    before = state(path)
    every_tag = tuple(f"t{n}" for n in range(EACH))
    after = [(f"m{group:02}-0", every_tag) for group in range(GROUPS)]
    for seed in range(request.config.getoption("kills")):
        process = start(path, "again")
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(random.Random(seed).randrange(1, 6))]
        process.kill()
        process.communicate()
        assert process.returncode == -9
        assert {int(line) for line in lines} <= {0, MERGED}
        assert state(path) in (before, after)


def test_two_at_once_merge_everything_once(path):
    fill(path)
    processes = [start(path, "once") for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    merged = []
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        done, errors = map(int, out.split())
        merged.append(done)
        # Whoever came second had found the same, or nothing any more.
        assert done + errors in (0, MERGED)
    assert sorted(merged) == [0, MERGED]
    with ExperienceMemory(path, embedder=WordEmbedder()) as memory:
        log = memory.consolidation_log(1000)
    assert len({step.id for step in log}) == len({step.memory_ids[-1] for step in log}) == MERGED
    assert len({step.run_id for step in log}) == 1
