"""A process that changes the key of a store for ever, until it is killed.

Usage: rekeyer.py STORE KEY. The key goes from KEY to "second", to none, and back to KEY; each line
on stdout is one acknowledged change.
"""

from __future__ import annotations

import itertools
import sys

from stand_ins import WordEmbedder

from engram import Engram


def main(path: str, key: str | None) -> None:
    keys = [None, "first", "second"]
    after = keys.index(key) + 1
    with Engram(path, embedder=WordEmbedder(), key=key) as memory:
        for new in itertools.islice(itertools.cycle(keys), after, None):
            memory.rekey(new)
            memory.observe("the key was changed")
            print(new, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
