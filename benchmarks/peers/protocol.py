"""What every peer is asked to do, and how it is measured; needs NumPy and nothing of engram.

A script of a peer makes a `Peer` and calls `main` with it. It runs twice in the peer's own
environment: `build` writes the store, and `search` opens it in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

WARM_UPS = 5
Search = Callable[[np.ndarray, int], list[int]]
"""The positions of the k texts nearest to a float32[dim] vector of unit length, best first."""


class Corpus:
    """The texts, vectors, questions and exact answers of a run.

    Args:
        folder: Where the harness wrote them.
        count: How many of the texts the store holds.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.texts: list[str] = json.loads((folder / "texts.json").read_text("utf-8"))[:count]
        self.vectors = np.load(folder / "vectors.npy", mmap_mode="r")[:count]
        self.questions: dict[str, list[str]] = json.loads(
            (folder / "questions.json").read_text("utf-8")
        )
        self.asked = np.load(folder / "asked.npy")
        self.exact = np.load(folder / f"exact-{count}.npy")


class Peer(Protocol):
    """An engine that stores texts with vectors and finds the nearest."""

    def build(self, store: Path, corpus: Corpus) -> None:
        """Write everything to `store`, a path where nothing is yet, and close it."""

    def open(self, store: Path, corpus: Corpus) -> Search:
        """Open what `build` wrote and return how it is searched."""


def quantiles(samples: list[float]) -> dict[str, float]:
    """Return the percentiles of durations in milliseconds."""
    p50, p95, p99 = np.percentile(samples, (50, 95, 99)).round(4).tolist()
    return {"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "calls": len(samples)}


def timed(call: Callable[[], object]) -> float:
    """Return how long a call took, in milliseconds."""
    started = time.perf_counter()
    call()
    return 1000.0 * (time.perf_counter() - started)


def memory() -> dict[str, float | None]:
    """Return the resident memory of this process and the part that is its own, in MB."""
    try:
        text = Path("/proc/self/smaps_rollup").read_text("utf-8")
    except OSError:
        return {"rss_mb": None, "anonymous_mb": None}
    sums = dict(line.split()[:2] for line in text.splitlines()[1:])
    return {
        "rss_mb": round(int(sums["Rss:"]) / 1e3, 1),
        "anonymous_mb": round(int(sums["Anonymous:"]) / 1e3, 1),
    }


def size_mb(store: Path) -> float:
    """Return the size of a store: all files and folders that have its name."""
    beside = store.parent.glob(f"{store.name}*")
    files = [file for one in beside for file in (one, *one.rglob("*")) if file.is_file()]
    return round(sum(file.stat().st_size for file in files) / 1e6, 2)


def searched(peer: Peer, store: Path, corpus: Corpus, k: int) -> dict[str, Any]:
    """Open a store, search it and return the figures."""
    found: Search | None = None

    def opened() -> None:
        nonlocal found
        found = peer.open(store, corpus)

    open_ms = timed(opened)
    assert found is not None
    first_ms = timed(lambda: found(corpus.asked[0], k))
    for vector in corpus.asked[:WARM_UPS]:
        found(vector, k)
    samples, hits = [], 0
    for vector, exact in zip(corpus.asked, corpus.exact, strict=True):
        started = time.perf_counter()
        answers = found(vector, k)
        samples.append(1000.0 * (time.perf_counter() - started))
        hits += len({*answers} & {*exact[:k].tolist()})
    return {
        "open_ms": round(open_ms, 3),
        "first_ms": round(first_ms, 3),
        **quantiles(samples),
        "recall": round(hits / (min(k, len(corpus.vectors)) * len(samples)), 4),
        **memory(),
    }


def arguments() -> argparse.Namespace:
    """Return what the harness asked a script for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=("build", "search"))
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--k", type=int, required=True)
    return parser.parse_args()


def answer(figures: dict[str, Any]) -> None:
    """Print figures as the last line, where the harness looks for them."""
    sys.stdout.write(f"\n{json.dumps(figures)}\n")


def main(peer: Peer) -> None:
    """Do one step with a peer."""
    asked = arguments()
    corpus = Corpus(asked.corpus, asked.size)
    if asked.step == "search":
        answer(searched(peer, asked.store, corpus, asked.k))
        return
    seconds = timed(lambda: peer.build(asked.store, corpus)) / 1000
    answer({"build_s": round(seconds, 3), "size_mb": size_mb(asked.store)})
