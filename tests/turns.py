"""Another process on a store, which does one thing at a time and says when it is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OTHER = """
import sys
from answers import assert_true, embedder, filled
from engram import Engram
from small_segments import shrink
shrink()
with Engram(sys.argv[1], embedder=embedder()) as memory:
    for line in sys.stdin:
        verb, *rest = line.split()
        answer = "done"
        if verb == "fill":
            answer = filled(memory, int(rest[0]), seed=int(rest[1]))[0]
        elif verb == "forget":
            memory.forget(rest[0])
        elif verb == "recall":
            answer = len(memory.recall(" ".join(rest), 50))
        elif verb == "true":
            assert_true(memory)
            answer = True
        elif verb == "maintain":
            memory.maintain()
        elif verb == "without_upkeep":
            memory.recall("w1")
            memory._upkeep.stop()
        else:
            raise ValueError(verb)
        print(answer, flush=True)
"""


class Other:
    """The process; leaving it closes its store.

    Args:
        path: The store.
        script: What it does: a line of orders in, a line of answer out. Of itself, that of a large
            store.
    """

    def __init__(self, path: Path, script: str = OTHER) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        )

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        self.process.stdout.close()

    def ask(self, line: str) -> str:
        """Have something done and return what it says."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()
