"""kill -9 during decay: every importance is that of one of the two last days, and none is torn."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from stand_ins import Clock, WordEmbedder

from engram import Engram, ObserveInput
from engram.importance import DecayConfig, compute_importance

DECAYER = Path(__file__).with_name("decayer.py")
COUNT = 1_000


def decay_until_killed(path: Path, seed: int, day: int) -> int:
    """Start a process that decays from a day on, kill it, return the last day it acknowledged."""
    process = subprocess.Popen(
        [sys.executable, str(DECAYER), str(path), str(day)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(DECAYER.parents[1])},
    )
    assert process.stdout is not None
    # The pipe runs ahead of us, so the kill falls wherever the process happens to be.
    lines = [process.stdout.readline() for _ in range(random.Random(seed).randrange(1, 9))]
    process.kill()
    lines += process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -9
    return int([line for line in lines if line.endswith("\n")][-1])


def importance_on(day: int, items: list[ObserveInput]) -> list[float]:
    written, clock = Clock().now, Clock()
    clock.advance(days=day)
    return [
        compute_importance(i.salience, i.emotional_valence, written, 0, clock.now, DecayConfig())
        for i in items
    ]


def test_a_killed_decay_leaves_each_importance_whole(path, request):
    chance, clock = random.Random(8), Clock()
    items = [
        ObserveInput(f"note {n}", salience=chance.random(), emotional_valence=chance.uniform(-1, 1))
        for n in range(COUNT)
    ]
    with Engram(path, embedder=WordEmbedder(), agent_id="decayer", clock=clock) as memory:
        memory.observe_many(items)
    day = 1
    for seed in range(request.config.getoption("kills")):
        day = decay_until_killed(path, seed, day) + 1
        with Engram(path, embedder=WordEmbedder(), agent_id="decayer") as memory:
            assert memory.check() == []
            page = memory.episodes(limit=1000, newest_first=False)
        # The last day that was acknowledged, and those that may have been under way.
        days = [importance_on(day - 1 + later, items) for later in range(3)]
        judged = [
            next(at for at, values in enumerate(days) if values[n] == pytest.approx(e, abs=1e-12))
            for n, e in enumerate(episode.importance_score for episode in page.episodes)
        ]
        assert len(judged) == COUNT
        # In the order of writing: whole transactions of a later day, then those of the one before.
        assert judged == sorted(judged, reverse=True)
