"""A process that remembers people and erases them, and says what was acknowledged, until killed.

Usage: eraser.py STORE SEED [KEY]. Each line on stdout is one acknowledged call: `+` and the person
that was remembered, or `-` and the one that was erased.
"""

from __future__ import annotations

import random
import sys

from stand_ins import WordEmbedder

from engram import Engram, ObserveInput

EACH = 12


def main(path: str, seed: int, key: str | None = None) -> None:
    chance = random.Random(seed)
    with Engram(path, embedder=WordEmbedder(), agent_id="eraser", key=key) as memory:
        people: list[str] = []
        for number in range(1_000_000):
            if len(people) > 2 and chance.random() < 0.5:
                gone = people.pop(chance.randrange(len(people)))
                memory.forget_entity(gone.upper())
                print("-", gone, flush=True)
                continue
            person = f"person{seed}x{number}z"
            memory.observe_many(
                [
                    ObserveInput(
                        f"{person} was here {n} 暗号", actors=[person], tags=[f"t{person}"]
                    )
                    for n in range(EACH)
                ]
            )
            memory.assert_fact(person, "was", "here")
            memory.recall(f"where was {person}", EACH)
            people.append(person)
            print("+", person, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
