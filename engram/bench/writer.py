"""A process that writes one episode after another until it is told to stop.

`python -m engram.bench.writer` is run by the benchmark while that reads.
"""

from __future__ import annotations

import sys
import threading
import time

import msgspec
import numpy as np

from engram import Engram
from engram.bench.precomputed import PrecomputedEmbedder
from engram.bench.sentences import sentences
from engram.bench.stats import LatencyStats

__all__ = ["Job", "main"]

_TEXTS = 1000


class Job(msgspec.Struct):
    """What to write to.

    Attributes:
        store: The store's path.
        fingerprint: That of the store's model.
        name: The model's name.
        dim: Numbers in a vector.
        seed: Which texts and vectors.
    """

    store: str
    fingerprint: str
    name: str | None
    dim: int
    seed: int


def _write(job: Job, stop: threading.Event) -> LatencyStats:
    texts = sentences(_TEXTS, job.seed)
    chance = np.random.default_rng(job.seed)
    nothing = np.empty((0, job.dim), np.float32)
    embedder = PrecomputedEmbedder(job.fingerprint, job.name, job.dim, [], nothing)
    samples: list[float] = []
    with Engram(job.store, embedder=embedder, agent_id="writer") as memory:
        while not stop.is_set():
            embedder.hand_out(chance.normal(size=(1, job.dim)).astype(np.float32))
            started = time.perf_counter()
            memory.observe(texts[len(samples) % _TEXTS])
            samples.append(1000.0 * (time.perf_counter() - started))
            if len(samples) == 1:
                sys.stdout.write("writing\n")
                sys.stdout.flush()
    return LatencyStats.from_samples(samples)


def main() -> None:
    """Read the job's line from stdin, write until stdin ends, and print the result as JSON."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    stop = threading.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    sys.stdout.buffer.write(msgspec.json.encode(_write(job, stop)))


if __name__ == "__main__":
    main()
