"""A process that writes for ever and says what was acknowledged, until it is killed.

Usage: writer.py STORE SEED [KEY]. Each line on stdout is one acknowledged call: `+` and the ids it
wrote, or `-` and the id it forgot.
"""

from __future__ import annotations

import random
import sys

from stand_ins import WordEmbedder

from engram import Engram, ObserveInput


def text(name: str, part: int, size: int) -> str:
    return f"batch {name} part {part} of {size} 暗号"


def main(path: str, seed: int, key: str | None = None) -> None:
    chance = random.Random(seed)
    with Engram(path, embedder=WordEmbedder(), agent_id="writer", key=key) as memory:
        mine: list[str] = []
        for number in range(1_000_000):
            name, size = f"{seed}-{number}", chance.choice([1, 1, 3, 40])
            if mine and chance.random() < 0.2:
                gone = mine.pop(chance.randrange(len(mine)))
                memory.forget(gone)
                print("-", gone, flush=True)
                continue
            parts = [
                ObserveInput(text(name, part, size), tags=[name, str(size)], actors=["writer"])
                for part in range(size)
            ]
            ids = memory.observe_many(parts)
            if size == 1:
                mine += ids
            memory.recall("batch part", 3)
            print("+", *ids, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
