"""Measure the trainer: seconds and peak memory of the whole program, on stores of some sizes.

Run from a checkout with an environment that has engram and the extra `train`:

    python benchmarks/trainer.py --sizes 3000,30000,100000

Memories speak of made-up topics, some of the same one nearly alike. Vectors of sentences can be
brought along instead: `--vectors` names float32[n, dim] in a .npy file, `--texts` the sentences as
a JSON list. Prints one JSON object a line, one for each size.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import numpy as np

from engram.experience import ExperienceMemory
from engram.experience.results import ImportedExperience
from engram.vectors import normalise

START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = {
    "bugfix": "crash timeout leak overflow race deadlock",
    "decision": "choose adopt replace postpone split merge",
    "pattern": "retry cache queue batch stream pool",
    "context": "release branch owner region quota schedule",
}
RESULTS = ("expected", "planned", "feared")
BLOCK = 10_000
JUDGED = 200


class Sentences:
    """Texts with their vectors, and an embedder that gives any other text one of these."""

    def __init__(self, texts: list[str], vectors: np.ndarray) -> None:
        self.texts = texts
        self.vectors = vectors
        self.dim = vectors.shape[1]
        self.fingerprint = "canned-sentences"
        self._rows = {text: row for row, text in enumerate(texts)}

    def embed(self, texts: list[str]) -> np.ndarray:
        return np.stack(
            [
                self.vectors[self._rows.get(text, zlib.crc32(text.encode()) % len(self.texts))]
                for text in texts
            ]
        )


def made_up(count: int, dim: int) -> Sentences:
    """About 20 sentences of each topic, one in ten nearly the same as another."""
    chance = np.random.default_rng(1)
    topics = chance.integers(max(1, count // 20), size=count)
    # Directions of text are far from alike in size; so are these.
    sizes = (1.0 + np.arange(dim)) ** -0.5
    centres = chance.standard_normal((topics.max() + 1, dim), dtype=np.float32) * sizes
    spread = np.where(chance.random(count) < 0.1, 0.1, 0.7)[:, np.newaxis]
    noise = chance.standard_normal((count, dim), dtype=np.float32) * sizes
    vectors = normalise((centres[topics] + spread * noise).astype(np.float32))
    texts = [f"topic {topic} as seen in case {case}" for case, topic in enumerate(topics.tolist())]
    return Sentences(texts, vectors)


def records(texts: list[str]) -> Iterator[ImportedExperience]:
    chance = random.Random(2)
    for number, text in enumerate(texts):
        kind = chance.choice(list(TYPES))
        at = (START + timedelta(minutes=10 * number)).isoformat(timespec="seconds")
        follows = number and not chance.randrange(20)
        yield ImportedExperience(
            id=f"memory-{number}",
            memory_type=kind,
            context=text,
            action=" ".join(chance.choices(TYPES[kind].split(), k=3)),
            result=f"came out as {chance.choice(RESULTS)} {number % 500}",
            score=round(chance.random(), 3),
            created_at=at,
            updated_at=at,
            used_count=chance.randrange(5),
            tags=(f"area{number % 30}",),
            parent_id=f"memory-{chance.randrange(number)}" if follows else None,
        )


def build(path: Path, count: int, dim: int, vectors: Path | None, texts: Path | None) -> None:
    """Keep memories, and judge some that searches showed."""
    if vectors is None or texts is None:
        sentences = made_up(count, dim)
    else:
        known = json.loads(texts.read_text(encoding="utf-8"))[:count]
        sentences = Sentences(known, np.load(vectors, mmap_mode="r"))
    with ExperienceMemory(path, embedder=sentences) as memory:
        kept = list(records(sentences.texts))
        for at in range(0, count, BLOCK):
            memory.import_experiences(kept[at : at + BLOCK])
        for text in sentences.texts[:JUDGED]:
            for hit in memory.search(text, limit=3).hits:
                memory.judge(hit.id, score=0.9 if len(hit.action) % 2 else 0.2)


def measure(path: Path, models: Path) -> dict[str, object]:
    """Run the trainer as a user does; return what it took and what it said."""
    command = [sys.executable, "-m", "engram.training"]
    command += ["--database", str(path), "--models-path", str(models)]
    stages: list[tuple[str, float]] = []
    said: Counter[str] = Counter()
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            said[message["type"]] += 1
            if message["type"] == "progress":
                stages.append((message["stage"], round(time.monotonic() - began, 2)))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "exit": process.returncode,
        "seconds": round(time.monotonic() - began, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": peak_mb(used),
        "stages_from": dict(stages),
        "messages": dict(said),
    }


def peak_mb(used: resource.struct_rusage) -> int:
    """Return the peak of resident memory; Linux counts in KiB, macOS in bytes."""
    return used.ru_maxrss // (1 << 20 if sys.platform == "darwin" else 1 << 10)


@click.command()
@click.option("--sizes", default="3000,30000", show_default=True, help="Numbers of memories.")
@click.option("--dim", default=384, show_default=True, help="The size of made-up vectors.")
@click.option("--vectors", type=click.Path(exists=True, path_type=Path), help="A .npy file.")
@click.option("--texts", type=click.Path(exists=True, path_type=Path), help="Their sentences.")
def main(sizes: str, dim: int, vectors: Path | None, texts: Path | None) -> None:
    """Print what the trainer takes for each size."""
    # A process of its own: the peak of one that is started counts what its parent had.
    elsewhere = multiprocessing.get_context("spawn")
    for size in map(int, sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memory.engram"
            building = elsewhere.Process(target=build, args=(path, size, dim, vectors, texts))
            building.start()
            building.join()
            measured = measure(path, Path(folder) / "models")
            load = [round(one, 1) for one in os.getloadavg()]
            print(json.dumps({"memories": size, **measured, "load": load}), flush=True)


if __name__ == "__main__":
    main()
