"""Filling the store of a benchmark through the public calls."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from engram import Engram, ObserveInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engram.bench.corpus import Vectors
    from engram.bench.precomputed import PrecomputedEmbedder

__all__ = ["HALF", "NOW", "SHARES", "Clock", "add_graph", "agents", "fill", "graph_lines"]

_START = datetime(2025, 1, 1, tzinfo=UTC)
_SPAN = timedelta(days=300)
NOW = _START + _SPAN
HALF = _START + _SPAN / 2
"""Half the episodes had happened by then."""
SHARES = {"50": 0.5, "10": 0.1, "1": 0.01, "0.1": 0.001}
"""Tags by the percentage of the episodes that have them, and the shares."""
_GOLDEN = 0.6180339887498949
_BATCH = 500
_SOLO = 5
_MID = 1000


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """Return the time it shows."""
        return self.now


def agents(count: int) -> list[tuple[str, int]]:
    """Return the agents in the order they write, and how many episodes each has."""
    solo = min(_SOLO, count)
    mid = min(_MID, count // 10)
    return [("solo", solo), ("mid", mid), ("bulk", count - solo - mid)]


def _tags(at: int) -> list[str]:
    # Multiples of the golden ratio spread evenly: shares are exact, and holders lie scattered.
    place = at * _GOLDEN % 1.0
    return [tag for tag, share in SHARES.items() if place < share]


def _episode(text: str, at: int, when: datetime) -> ObserveInput:
    return ObserveInput(text, tags=_tags(at), salience=(at * 7 % 10) / 10, timestamp=when)


def fill(
    path: Path,
    texts: list[str],
    vectors: Vectors,
    embedder: PrecomputedEmbedder,
    options: dict[str, Any],
    progress: Callable[[int, int], None],
) -> tuple[list[str], float]:
    """Write an episode per text, in batches of 500.

    Args:
        path: The store, which is made.
        texts: What to write.
        vectors: Their vectors.
        embedder: The embedder of the store.
        options: More arguments of `Engram`.
        progress: Called with the episodes written and all there are.

    Returns:
        The episodes' ids in the order of the texts, and the seconds it took, without those in which
        the vectors were put together.
    """
    ids: list[str] = []
    seconds = 0.0
    step = _SPAN / len(texts)
    for agent, size in agents(len(texts)):
        end = len(ids) + size
        with Engram(path, agent_id=agent, embedder=embedder, clock=Clock(), **options) as memory:
            while len(ids) < end:
                at, stop = len(ids), min(len(ids) + _BATCH, end)
                embedder.hand_out(vectors.rows(at, stop))
                started = time.perf_counter()
                items = [_episode(texts[i], i, _START + i * step) for i in range(at, stop)]
                ids += memory.observe_many(items)
                seconds += time.perf_counter() - started
                progress(stop, len(texts))
    return ids, seconds


def add_graph(memory: Engram, ids: list[str], file: Path, seed: int) -> float:
    """Link every episode to two of `n / 20` entities and return the seconds it took.

    Args:
        memory: The store, opened without an agent.
        ids: Its episodes.
        file: Where the file to import may be written.
        seed: Which entities.
    """
    with file.open("w", encoding="utf-8") as out:
        out.writelines(f"{json.dumps(record)}\n" for record in graph_lines(ids, seed))
    started = time.perf_counter()
    memory.import_lines(file, merge=True)
    return time.perf_counter() - started


def graph_lines(ids: list[str], seed: int) -> Iterator[dict[str, Any]]:
    """Yield the records of a lossless export that holds nothing but a graph of episodes."""
    entities = max(10, len(ids) // 20)
    ends = np.random.default_rng(seed).integers(0, entities, (len(ids), 2)).tolist()
    owners = [agent for agent, size in agents(len(ids)) for _ in range(size)]
    links = [
        (agent, uid, target)
        for agent, uid, pair in zip(owners, ids, ends, strict=True)
        for target in set(pair)
    ]
    counts = {"entity": entities, "edge": len(links)}
    yield {"format": "engram-lines", "version": 1, "records": counts}
    for number in range(entities):
        name = f"entity {number}"
        yield {"kind": "entity", "uid": name, "name": name, "type": "concept"}
    for agent, uid, target in links:
        yield {
            "kind": "edge",
            "agent": agent,
            "episode": uid,
            "target": f"entity {target}",
            "relation": "mentions",
            "weight": 1.0,
            "created_at": 0,
        }
