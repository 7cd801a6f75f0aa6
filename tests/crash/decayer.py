"""A process that lets a store decay day by day, until it is killed.

Usage: decayer.py STORE DAY. Each line on stdout is the number of a day that a decay judged at.
"""

from __future__ import annotations

import itertools
import sys

from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.cognition import fading


def main(path: str, day: int) -> None:
    fading.SLICE = 100  # many transactions, none of which ends where a block of importance does
    for at in itertools.count(day):
        clock = Clock()
        clock.advance(days=at)
        with Engram(path, embedder=WordEmbedder(), agent_id="decayer", clock=clock) as memory:
            memory.decay()
        print(at, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
