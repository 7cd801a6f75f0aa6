"""A damaged file: an answer, or an error with a name, and never a crash or a raw exception.

`--mutations N` sets how many damaged copies are tried.
"""

from __future__ import annotations

import random
from collections import Counter

from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.errors import EngramError


def damaged(content: bytes, chance: random.Random) -> bytes:
    copy = bytearray(content)
    for _ in range(chance.choice([1, 1, 4, 64])):
        copy[chance.randrange(len(copy))] = chance.randrange(256)
    return bytes(copy[: chance.randrange(len(copy))] if chance.random() < 0.1 else copy)


def test_damaged_copies(tmp_path, request):
    sound = tmp_path / "sound.engram"
    with Engram(sound, embedder=WordEmbedder(), clock=Clock()) as memory:
        for number in range(200):
            memory.observe(f"note {number} about tea and paris", actors=["Al"], tags=["t"])
        memory.recall("tea")
    content, chance, outcomes = sound.read_bytes(), random.Random(1), Counter()
    texts: list[str] = []
    for number in range(request.config.getoption("mutations")):
        copy = tmp_path / f"{number}.engram"
        copy.write_bytes(damaged(content, chance))
        try:
            with Engram(copy, embedder=WordEmbedder(), clock=Clock()) as memory:
                memory.recall("note 7 tea", 5)
                memory.recall("note 7", 5, mode="cosine", tags=["t"])
                memory.episodes(limit=100)
                memory.check()
                memory.observe("still writable")
            outcomes["answered"] += 1
        except EngramError as error:
            outcomes[error.code] += 1
            texts.append(str(error))
    assert not any("paris" in text for text in texts)
    # Both kinds occur, or the test shows nothing.
    assert outcomes["answered"]
    assert outcomes["corrupt_store"]
