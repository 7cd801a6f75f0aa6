"""kill -9 at random moments: nothing acknowledged is lost, nothing half-written is seen.

`--kills N` sets how often each writer is killed; state accumulates from kill to kill.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from stand_ins import WordEmbedder

from engram import Engram

WRITER = Path(__file__).with_name("writer.py")


def write_until_killed(path: Path, seed: int, key: str | None) -> list[str]:
    """Start a writer, kill it after some acknowledgements, return the complete lines it wrote."""
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(path), str(seed), *([key] if key else [])],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(WRITER.parents[1])},
    )
    assert process.stdout is not None
    # The pipe runs ahead of us, so the kill falls wherever the writer happens to be.
    lines = [process.stdout.readline() for _ in range(random.Random(seed).randrange(1, 60))]
    process.kill()
    lines += process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -9
    return [line for line in lines if line.endswith("\n")]


def everything(memory: Engram) -> dict[str, tuple[str, list[str]]]:
    found, cursor = {}, None
    while True:
        page = memory.episodes(limit=1000, cursor=cursor)
        found |= {e.id: (e.content, e.tags) for e in page.episodes}
        if (cursor := page.cursor) is None:
            return found


@pytest.mark.parametrize("key", [None, "pass"])
def test_killed_writers_lose_nothing_they_acknowledged(path, key, request):
    alive: set[str] = set()
    for seed in range(request.config.getoption("kills")):
        for line in write_until_killed(path, seed, key):
            kind, *ids = line.split()
            (alive.update if kind == "+" else alive.difference_update)(ids)
        with Engram(path, embedder=WordEmbedder(), agent_id="writer", key=key) as memory:
            assert memory.check() == []
            found = everything(memory)
            check_batches_are_whole(found)
            # At most the one call in flight is beyond what was acknowledged: a batch that was
            # committed and not yet printed, or an episode that was forgotten and not yet printed.
            assert len(alive - found.keys()) <= 1
            beyond = [found[uid] for uid in found.keys() - alive]
            assert len({tags[0] for _, tags in beyond}) <= 1
            check_every_side_agrees(memory, found)
            alive = set(found)


def check_batches_are_whole(found: dict[str, tuple[str, list[str]]]) -> None:
    sizes = Counter(tuple(tags) for _, tags in found.values())
    assert all(present == int(size) for (_, size), present in sizes.items())


def check_every_side_agrees(memory: Engram, found: dict[str, tuple[str, list[str]]]) -> None:
    """Rows, vectors and words are all there for each episode, or for none."""
    k = min(len(found), 4096)
    if not k:
        return
    assert len(memory.recall("batch", k, mode="cosine")) == k
    assert len(memory.recall("暗号", k, vector_weight=0.0, fts_weight=1.0, min_score=1e-9)) >= k - 1
    counts = memory.counts()
    assert counts.episodes == counts.embedded == len(found)
