"""A process that writes, recalls, merges and publishes its index for ever, until it is killed.

Usage: keeper.py STORE SEED. Each line on stdout says that one more round is done.
"""

from __future__ import annotations

import random
import sys

from small_segments import shrink
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput


def main(path: str, seed: int) -> None:
    shrink()
    chance = random.Random(seed)
    words = [f"w{n}" for n in range(40)]
    while True:
        with Engram(path, embedder=WordEmbedder(8)) as memory:
            for _ in range(chance.randrange(1, 12)):
                texts = [" ".join(chance.choices(words, k=5)) for _ in range(chance.randrange(120))]
                ids = memory.observe_many([ObserveInput(text) for text in texts])
                for uid in chance.sample(ids, len(ids) // 3):
                    memory.forget(uid)
                memory.recall("w1 w2 w3", 5)
                if chance.random() < 0.3:
                    memory.maintain()
                if chance.random() < 0.1:
                    memory.compact()
                print("round", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
