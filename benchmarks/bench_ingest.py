"""Writing with vectors given: bulk by batch size, one by one, and what a store weighs.

Under pytest, 10,000 episodes at a time. As a script, one store that grows to any size:

    python benchmarks/bench_ingest.py --episodes 1000000 --batch 500 --texts sentences.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import apsw
import numpy as np
import pytest
from bench_engine import NAMES, START, sentences
from pytest_benchmark.fixture import BenchmarkFixture

from engram import Engram, ObserveInput

SLICE = 100_000


class GivenVectors:
    """Unit vectors made beforehand, given out in turn."""

    dim = 384
    fingerprint = "given-vectors"

    def __init__(self, rows: int = 20_000) -> None:
        made = np.random.default_rng(7).normal(size=(rows, self.dim)).astype(np.float32)
        self._rows = made / np.linalg.norm(made, axis=1, keepdims=True)
        self._at = 0

    def embed(self, texts: list[str]) -> np.ndarray:
        first = self._at % (len(self._rows) - len(texts) + 1)
        self._at += len(texts)
        return self._rows[first : first + len(texts)]


def items(texts: Iterator[str], first: int, count: int, labels: bool) -> list[ObserveInput]:
    return [
        ObserveInput(
            text,
            actors=[NAMES[at % len(NAMES)]] if labels else [],
            tags=[f"topic {at % 50}"] if labels else [],
            timestamp=START + timedelta(seconds=at),
        )
        for at, text in enumerate(itertools.islice(texts, count), start=first)
    ]


def write(memory: Engram, made: list[ObserveInput], batch: int) -> None:
    for at in range(0, len(made), batch):
        memory.observe_many(made[at : at + batch])


@pytest.mark.parametrize("labels", [False, True], ids=["plain", "labels"])
@pytest.mark.parametrize("batch", [500, 5_000])
def test_ten_thousand(
    benchmark: BenchmarkFixture, tmp_path: Path, batch: int, labels: bool
) -> None:
    made = items(sentences(), 0, 10_000, labels)
    vectors = GivenVectors()
    numbers = itertools.count()

    def fresh() -> tuple[tuple[Engram, list[ObserveInput], int], dict[str, object]]:
        memory = Engram(tmp_path / f"{next(numbers)}.engram", embedder=vectors)
        return (memory, made, batch), {}

    benchmark.pedantic(write, setup=fresh, rounds=5)


@pytest.mark.parametrize("where", ["file", "memory"])
@pytest.mark.parametrize("size", [0, 1_000, 50_000])
def test_one_by_one(benchmark: BenchmarkFixture, tmp_path: Path, size: int, where: str) -> None:
    path = ":memory:" if where == "memory" else tmp_path / "memory.engram"
    texts = sentences()
    with Engram(path, embedder=GivenVectors()) as memory:
        write(memory, items(texts, 0, size, labels=True), 5_000)
        benchmark.pedantic(lambda: memory.observe(next(texts), actors=["Bob"]), rounds=300)


def spliced(texts: list[str]) -> Iterator[str]:
    """Yield the texts, then the first half of each with the second half of another, for ever."""
    yield from texts
    for step in itertools.count(1):
        for at, text in enumerate(texts):
            other = texts[(at + step) % len(texts)]
            yield text[: len(text) // 2] + other[len(other) // 2 :]


def one_by_one(memory: Engram, texts: Iterator[str], count: int = 300) -> float:
    """Return the median of single writes, in milliseconds."""
    took = []
    for text in itertools.islice(texts, count):
        begun = time.perf_counter()
        memory.observe(text, actors=["Bob"])
        took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1000


def weights(path: Path, episodes: int) -> Iterator[str]:
    """Yield bytes per episode of each table and index."""
    rows = apsw.Connection(str(path)).execute(
        "SELECT name, sum(pgsize) AS size FROM dbstat GROUP BY name ORDER BY size DESC LIMIT 12"
    )
    for name, size in rows:
        yield f"  {name:28} {size / episodes:8.1f}"


def grow(path: Path, texts: Iterator[str], episodes: int, batch: int, labels: bool) -> None:
    log = Path(f"{path}-wal")
    peak = 0
    with Engram(path, embedder=GivenVectors(), agent_id="bench") as memory:
        for first in range(0, episodes, SLICE):
            wall, cpu = 0.0, 0.0
            # Making the items is the caller's time, not the store's.
            made = items(texts, first, min(SLICE, episodes - first), labels)
            for at in range(0, len(made), batch):
                begun, used = time.perf_counter(), time.process_time()
                memory.observe_many(made[at : at + batch])
                wall += time.perf_counter() - begun
                cpu += time.process_time() - used
                peak = max(peak, log.stat().st_size)
            rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{first + len(made):9,} {len(made) / wall:8,.0f}/s wall {len(made) / cpu:8,.0f}/s"
                f" cpu, log at most {peak / 1e6:.0f} MB, memory at most {rss} MB,"
                f" observe {one_by_one(memory, texts):.3f} ms"
            )
    print(f"file {path.stat().st_size / 1e6:,.0f} MB, bytes per episode:")
    print(*weights(path, episodes), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=SLICE)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--labels", action="store_true", help="one actor and one tag each")
    parser.add_argument("--texts", type=Path, help="a JSON list; else sentences are made up")
    chosen = parser.parse_args()
    texts = sentences() if chosen.texts is None else spliced(json.loads(chosen.texts.read_text()))
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "memory.engram"
        grow(path, texts, chosen.episodes, chosen.batch, chosen.labels)


if __name__ == "__main__":
    main()
