"""Spreading recall over 200 episodes and 50 facts, and what a write to the graph costs it.

Reflection links the subject and the object of a fact to the episodes the fact came from: here three
of them. `dense` links every episode to every entity, as linking a fact to its whole window would.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from bench_engine import FreeVectors, items
from pytest_benchmark.fixture import BenchmarkFixture

from engram import Engram

EPISODES, FACTS, SOURCES = 200, 50, 3


def link(memory: Engram, sources_per_fact: int) -> None:
    chance = random.Random(7)
    store = memory._store  # noqa: SLF001 - reflection, which links, needs a language model
    with store.writing():
        keys = range(1, EPISODES + 1)
        for fact in range(FACTS):
            sources = chance.sample(keys, sources_per_fact)
            for name in (f"person {chance.randrange(FACTS)}", f"value {fact}"):
                entity = store.graph.entity(name, 0)
                for episode in sources:
                    store.graph.mention(episode, entity, 0.3, "bench", 0)


@pytest.fixture(scope="module", params=[SOURCES, EPISODES], ids=["sources", "dense"])
def memory(request: pytest.FixtureRequest) -> Iterator[Engram]:
    with Engram(embedder=FreeVectors(), agent_id="bench") as opened:
        opened.observe_many(items(EPISODES))
        link(opened, request.param)
        opened.recall("warm up", mode="spreading")
        yield opened


def test_recall(benchmark: BenchmarkFixture, memory: Engram) -> None:
    questions = (f"who planned the budget in week {n}" for n in range(1_000))
    benchmark.pedantic(lambda: memory.recall(next(questions), 10, mode="spreading"), rounds=300)


def test_recall_after_a_write_to_the_graph(benchmark: BenchmarkFixture, memory: Engram) -> None:
    store = memory._store  # noqa: SLF001

    def write() -> None:
        with store.writing():
            store.graph.mention(1, 1, 0.1, "bench", 0)

    def ask() -> None:
        memory.recall("who planned the budget", 10, mode="spreading")

    benchmark.pedantic(ask, setup=write, rounds=50)
