"""A process that keeps evidence and checkpoints for ever, until it is killed.

Usage: ledger_writer.py STORE SEED. Each line on stdout is one acknowledged call: `put` and a
number, `save`, a task and a number, or `clear` and a task.
"""

from __future__ import annotations

import random
import sys

from observing import PROJECT, put
from stand_ins import Clock

from engram.ledger import Ledger


def main(path: str, seed: int) -> None:
    chance = random.Random(seed)
    with Ledger(path, clock=Clock()) as ledger:
        for number in range(1_000_000):
            mine, task = seed * 1_000_000 + number, f"task {chance.randrange(5)}"
            verb = chance.choice(["put", "put", "save", "clear"])
            if verb == "put":
                put(ledger, mine)
                print("put", mine, flush=True)
            elif verb == "save":
                ledger.save_checkpoint(PROJECT, task, f"{mine}", decisions=[f"{mine}"] * 8)
                print("save", task[5:], mine, flush=True)
            else:
                ledger.clear_checkpoint(PROJECT, task)
                print("clear", task[5:], flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
