"""kill -9 amid puts and checkpoints: what was acknowledged is there, and nothing is half there.

`--kills N` sets how often the writer is killed; state accumulates from kill to kill.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from observing import PROJECT, put
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.ledger import Ledger
from engram.ledger.evidence import CheckObservation

WRITER = Path(__file__).with_name("ledger_writer.py")


def write_until_killed(path: Path, seed: int) -> list[list[str]]:
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(path), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(WRITER.parents[1])},
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(random.Random(seed).randrange(1, 80))]
    process.kill()
    lines += process.stdout.readlines()
    process.stdout.close()
    assert process.wait() == -9
    return [line.split() for line in lines if line.endswith("\n")]


def test_what_was_acknowledged_survives(path, request):
    Engram(path, embedder=WordEmbedder()).close()
    numbers: set[int] = set()
    saved: dict[str, str] = {}
    for seed in range(request.config.getoption("kills")):
        lines = write_until_killed(path, seed)
        for verb, *rest in lines:
            if verb == "put":
                numbers.add(int(rest[0]))
            elif verb == "save":
                saved[f"task {rest[0]}"] = rest[1]
            else:
                saved.pop(f"task {rest[0]}", None)
        with Ledger(path, clock=Clock()) as ledger:
            found = {one.task: one for one in ledger.checkpoints(PROJECT, limit=20)}
            assert all(one.decisions == (one.summary,) * 8 for one in found.values())
            kept = {task: one.summary for task, one in found.items()}
            # At most the one call in flight is beyond what was acknowledged.
            assert len(saved.items() ^ kept.items()) <= 2
            assert len(saved.keys() ^ kept.keys()) <= 1
            saved = kept
            before = ledger.totals().evidence
            if before > len(numbers):
                # The call in flight was a put; each call has a number and a line of its own.
                numbers.add(seed * 1_000_000 + len(lines))
            assert before == len(numbers)
            for number in sorted(numbers):
                view = ledger.get_evidence(PROJECT, put(ledger, number))
                assert isinstance(view, CheckObservation)
                assert view.observation["number"] == number
            assert ledger.totals().evidence == before
        with Engram(path, embedder=WordEmbedder()) as memory:
            assert memory.check() == []
