"""A process that consolidates a store.

Usage: consolidator.py STORE WAY. "again": consolidate and undo until it is killed; each line on
stdout is the number of experiences that one of the two changed. "once": say "ready", wait for a
line on stdin, consolidate, and say how many were merged and how many errors there were.
"""

from __future__ import annotations

import sys

from stand_ins import WordEmbedder

from engram.experience import ExperienceMemory


def main(path: str, way: str) -> None:
    with ExperienceMemory(path, embedder=WordEmbedder()) as memory:
        if way == "once":
            print("ready", flush=True)
            sys.stdin.readline()
            done = memory.consolidate()
            print(done.merged, len(done.errors), flush=True)
            return
        while True:
            done = memory.consolidate()
            print(done.merged, flush=True)
            # Nothing to do: the process before was killed between the two.
            run = done.run_id or memory.consolidation_log(1)[0].run_id
            print(memory.undo(run), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
