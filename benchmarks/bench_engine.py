"""Observe and recall at 1,000 and 10,000 episodes: the engine's share, and with the real model.

The engine's share uses vectors that cost nothing, 384 dimensions as the packaged model's.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from engram import Engram, ObserveInput

SIZES = (1_000, 10_000)
START = datetime(2026, 1, 1, tzinfo=UTC)
NOUNS = [
    "roadmap",
    "budget",
    "invoice",
    "piano",
    "garden",
    "recipe",
    "flight",
    "contract",
    "server",
]
VERBS = ["discussed", "cancelled", "planned", "finished", "postponed", "reviewed", "moved"]
NAMES = ["Alice", "Bob", "Carol", "Dmitri", "Elena", "Farid", "Grace", "Hiro", "Ines", "Jonas"]


class FreeVectors:
    """Random unit vectors; embedding costs as little as it can."""

    dim = 384
    fingerprint = "free-vectors"

    def __init__(self) -> None:
        self._chance = np.random.default_rng(7)

    def embed(self, texts: list[str]) -> np.ndarray:
        made = self._chance.normal(size=(len(texts), self.dim)).astype(np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def sentences() -> Iterator[str]:
    chance = random.Random(7)
    for number in itertools.count():
        yield (
            f"{chance.choice(NAMES)} {chance.choice(VERBS)} the {chance.choice(NOUNS)} with "
            f"{chance.choice(NAMES)} before the {chance.choice(NOUNS)} in week {number % 52}"
        )


def items(count: int) -> list[ObserveInput]:
    return [
        ObserveInput(
            text, actors=[text.split()[0]], tags=["note"], timestamp=START + timedelta(minutes=n)
        )
        for n, text in enumerate(itertools.islice(sentences(), count))
    ]


@pytest.fixture(scope="module", params=SIZES)
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engram]:
    path = tmp_path_factory.mktemp("store") / "memory.engram"
    with Engram(path, embedder=FreeVectors(), agent_id="bench") as memory:
        memory.observe_many(items(request.param))
        memory.recall("warm up")
        yield memory


def test_observe(benchmark: BenchmarkFixture, store: Engram) -> None:
    texts = sentences()
    benchmark.pedantic(lambda: store.observe(next(texts), actors=["Bob"]), rounds=300)


@pytest.mark.parametrize("mode", ["cosine", "hybrid"])
def test_recall(benchmark: BenchmarkFixture, store: Engram, mode: str) -> None:
    questions = (f"who {text.split()[1]} the {text.split()[3]} and when" for text in sentences())
    benchmark.pedantic(lambda: store.recall(next(questions), 10, mode=mode), rounds=200)


def test_recall_as_of_half(benchmark: BenchmarkFixture, store: Engram) -> None:
    half = START + timedelta(minutes=store.count() // 2)
    benchmark.pedantic(lambda: store.recall("the budget", 10, as_of=half), rounds=200)


def test_recall_by_tag(benchmark: BenchmarkFixture, store: Engram) -> None:
    benchmark.pedantic(lambda: store.recall("the budget", 10, actors=["Carol"]), rounds=200)


@pytest.mark.parametrize("size", SIZES)
def test_observe_many(benchmark: BenchmarkFixture, tmp_path: Path, size: int) -> None:
    made = items(size)

    def fresh() -> tuple[tuple[Engram], dict[str, object]]:
        fresh.number += 1
        return (Engram(tmp_path / f"{fresh.number}.engram", embedder=FreeVectors()),), {}

    fresh.number = 0
    benchmark.pedantic(lambda memory: memory.observe_many(made), setup=fresh, rounds=5)


def test_open_and_first_recall(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    path = tmp_path / "memory.engram"
    with Engram(path, embedder=FreeVectors()) as memory:
        memory.observe_many(items(10_000))

    def open_and_recall() -> None:
        with Engram(path, embedder=FreeVectors()) as memory:
            memory.recall("the budget")

    benchmark.pedantic(open_and_recall, rounds=10)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engram]:
    with Engram(tmp_path_factory.mktemp("real") / "memory.engram") as memory:
        memory.observe_many(items(1_000))
        yield memory


def test_observe_with_the_packaged_model(benchmark: BenchmarkFixture, real: Engram) -> None:
    texts = itertools.islice(sentences(), 1_000, None)
    benchmark.pedantic(lambda: real.observe(next(texts)), rounds=100)


def test_recall_with_the_packaged_model(benchmark: BenchmarkFixture, real: Engram) -> None:
    texts = itertools.islice(sentences(), 5_000, None)
    benchmark.pedantic(lambda: real.recall(next(texts), 10), rounds=100)
