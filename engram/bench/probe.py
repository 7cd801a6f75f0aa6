"""A fresh process that opens a store, recalls 20 times and says what that took.

`python -m engram.bench.probe` is run by the benchmark; it imports as little as a program of a user.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from engram import Engram
from engram.bench.memory import process_memory
from engram.bench.point import Opening
from engram.bench.precomputed import PrecomputedEmbedder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RECALLS", "Job", "embedder_of", "main", "save_embedder"]

RECALLS = 20


class Job(msgspec.Struct):
    """What a child is to do.

    Attributes:
        store: The store's path.
        embedder: The file of `save_embedder`; None lets the store's own model be loaded.
        questions: What to ask.
        k: How many answers.
        options: More arguments of `Engram`.
        recall_options: More arguments of `recall`.
    """

    store: str
    embedder: str | None
    questions: list[str]
    k: int
    options: dict[str, Any]
    recall_options: dict[str, Any]


def save_embedder(
    file: Path, fingerprint: str, name: str | None, questions: list[str], vectors: np.ndarray
) -> None:
    """Write the vectors of questions to a file, float32[len(questions), dim]."""
    np.savez(
        file,
        header=np.array([fingerprint, name or ""]),
        questions=np.array(questions),
        vectors=vectors,
    )


def embedder_of(file: str) -> PrecomputedEmbedder:
    """Return the embedder that `save_embedder` wrote."""
    with np.load(file, allow_pickle=False) as saved:
        fingerprint, name = saved["header"].tolist()
        vectors = saved["vectors"]
        return PrecomputedEmbedder(
            fingerprint, name or None, vectors.shape[1], saved["questions"].tolist(), vectors
        )


def _opened(job: Job) -> Opening:
    embedder = None if job.embedder is None else embedder_of(job.embedder)
    started = time.perf_counter()
    with Engram(job.store, embedder=embedder, **job.options) as memory:
        opened = time.perf_counter()
        times = [opened]
        for question in job.questions:
            memory.recall(question, job.k, **job.recall_options)
            times.append(time.perf_counter())
        resident, anonymous = process_memory()
    spent = [1000.0 * (after - before) for before, after in pairwise(times)]
    mapped = None if resident is None or anonymous is None else resident - anonymous
    return Opening(
        1000.0 * (opened - started),
        spent[0],
        median(spent[1:] or spent),
        resident,
        anonymous,
        mapped,
    )


def main() -> None:
    """Do the job on stdin and print the result as JSON."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    sys.stdout.buffer.write(msgspec.json.encode(_opened(job)))


if __name__ == "__main__":
    main()
