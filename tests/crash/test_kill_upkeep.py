"""kill -9 while an index is written, merged, published or thrown away: recall is as exact after.

`--kills N` sets how often the process is killed; state accumulates from kill to kill.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
from plain_twin import stored
from stand_ins import WordEmbedder

from engram import Engram

KEEPER = Path(__file__).with_name("keeper.py")
ROUNDS = 8


def keep_until_killed(path: Path, seed: int) -> None:
    process = subprocess.Popen(
        [sys.executable, str(KEEPER), str(path), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(KEEPER.parents[1])},
    )
    assert process.stdout is not None
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, ROUNDS)):
        process.stdout.readline()
    # The next round begins now; how far it comes is up to the machine.
    process.kill()
    process.stdout.close()
    assert process.wait() == -9


def expected(memory: Engram, query: str, k: int) -> list[str]:
    embedder, found, cursor = WordEmbedder(8), [], None
    while True:
        page = memory.episodes(limit=1000, cursor=cursor, newest_first=False)
        found += [(episode.id, episode.content) for episode in page.episodes]
        if (cursor := page.cursor) is None:
            break
    with memory._store.reading():
        order = dict(memory._store._connection.execute("SELECT hex(uid), id FROM episode"))
    vectors = np.array([stored(embedder.vector(text)) for _, text in found], dtype=np.float64)
    distances = np.linalg.norm(vectors - stored(embedder.vector(query)), axis=1)
    keys = [order[uid.replace("-", "").upper()] for uid, _ in found]
    return [found[at][0] for at in np.lexsort((keys, distances))[:k]]


def test_killed_keepers_leave_an_index_that_tells_the_truth(path, request):
    for seed in range(request.config.getoption("kills")):
        keep_until_killed(path, seed)
        with Engram(path, embedder=WordEmbedder(8)) as memory:
            assert memory.check() == []
            for query in ("w1 w2", "w7 w8 w9"):
                hits = memory.recall(query, 40, mode="cosine", accuracy="exact")
                assert [hit.episode.id for hit in hits] == expected(memory, query, 40)
    # Nobody's files are left once the store was kept by somebody who lived.
    code = (
        "from small_segments import shrink; shrink()\nimport sys\n"
        "from stand_ins import WordEmbedder\nfrom engram import Engram\n"
        "with Engram(sys.argv[1], embedder=WordEmbedder(8)) as memory: memory.maintain()\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(path)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(KEEPER.parents[1])},
    )
    names = [file.name for file in Path(f"{path}-index").iterdir()]
    assert sum(name.endswith(".manifest") for name in names) == 1
    assert all(name.endswith((".manifest", ".segment")) or name == "lock" for name in names)
