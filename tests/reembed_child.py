"""A process that re-embeds a store, says after each slice that it did, and waits to be killed.

Usage: reembed_child.py STORE KEY SLICES, where an empty KEY is none.
"""

from __future__ import annotations

import signal
import sys

from stand_ins import WordEmbedder

from engram import Engram


def main(path: str, key: str, slices: str) -> None:
    told: list[int] = []

    def tell(done: int, _: int) -> None:
        told.append(done)
        print(done, flush=True)
        if len(told) == int(slices):
            signal.pause()

    with Engram(path, key=key or None) as memory:
        memory.reembed(embedder=WordEmbedder(384, "new-384"), progress=tell)


if __name__ == "__main__":
    main(*sys.argv[1:])
