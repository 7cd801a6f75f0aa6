"""Memory is a choice, and so is certainty: neither changes what is right, and it is said."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from answers import FILTERS, QUERIES, START, answers, assert_true, embedder, filled

from engram import AsyncEngram, Engram
from engram.cognition import fading
from engram.cognition.decay import DecayConfig
from engram.errors import InvalidArgument, InvalidType
from engram.index import ACCURACIES, episode_index

pytestmark = pytest.mark.usefixtures("small_segments")

NOW = 1_800_000_000_000_000


@pytest.fixture
def large(open_memory) -> Engram:
    memory = open_memory(embedder=embedder())
    ids = filled(memory, 600)
    memory.maintain()
    for uid in ids[::7]:
        memory.forget(uid)
    filled(memory, 50, seed=2)
    return memory


def every_recall(memory: Engram) -> list[list[tuple[str, float]]]:
    return [
        [(hit.episode.id, hit.score) for hit in memory.recall(query, k, mode=mode,
                                                              accuracy=accuracy, **filters)]
        for accuracy in ACCURACIES
        for query in QUERIES
        for mode in ("cosine", "hybrid", "spreading")
        for filters in FILTERS
        for k in (3, 50)
    ]  # fmt: skip


def test_without_memory_the_answers_are_the_same(large, open_memory):
    expected = every_recall(large)
    assert not large._index.frugal
    frugal = open_memory(embedder=embedder(), memory_budget=0)
    assert every_recall(frugal) == expected
    assert frugal._index.frugal
    assert_true(frugal)
    # From files as from memory.
    large.maintain()
    large.close()
    again = open_memory(embedder=embedder(), memory_budget=0)
    assert answers(again) == answers(frugal)
    assert again._index.segments[0].arrays.path is not None


def test_spreading_through_segments_is_spreading_without(large, open_memory, monkeypatch, tmp_path):
    with large._store.writing():
        graph = large._store.graph
        for key in range(1, 600, 5):
            if large._store.episodes.fetch(np.array([key])):
                for name in (f"e{key % 4}", f"e{key % 7}"):
                    graph.mention(key, graph.entity(name, 1), 0.5, None, 1)
    large.recall("w1")
    large.backup(tmp_path / "plain.engram")
    monkeypatch.setattr(episode_index, "TAIL_ROWS", 10_000)
    plain = open_memory(path=tmp_path / "plain.engram", embedder=embedder())
    for query in QUERIES:
        expected = plain.recall(query, 30, mode="spreading", accuracy="exact")
        found = large.recall(query, 30, mode="spreading", accuracy="exact")
        assert [(hit.episode.id, hit.score) for hit in found] == [
            (hit.episode.id, hit.score) for hit in expected
        ]
    assert plain._index.segments == []
    assert large._index.segments


@pytest.mark.parametrize("agent", [None, "a", "nobody"])
@pytest.mark.parametrize("most", [7, fading.SLICE])
def test_decay_by_columns_is_decay_by_rows(open_memory, agent, most):
    memories = {name: open_memory(name, embedder=embedder()) for name in (None, "a", "b")}
    for seed, memory in enumerate(memories.values()):
        ids = filled(memory, 150, seed=seed)
        memory.recall("w1", 20)
        for uid in ids[::4]:
            memory.forget(uid)
    memory = memories[None]
    store = memory._store

    def importance() -> list[float]:
        found = memory.episodes(limit=1000).episodes
        return [episode.importance_score for episode in found]

    memory.maintain()
    with store.reading():
        memory._index.refresh()
        assert memory._index.segments
    traces = memory._index.traces(agent, most)
    count = fading.decay(store, agent, NOW, DecayConfig(), traces)
    by_columns = importance()
    assert count == fading.decay(store, agent, NOW, DecayConfig())
    assert by_columns == importance()
    assert count == {None: 336, "a": 112, "nobody": 0}[agent]


def test_decay_by_columns_sees_what_comes_between_two_steps(large):
    large.recall("w1")
    steps = large._index.traces(None, 100)
    seen = []
    with large._store.reading():
        seen += next(steps).episodes.tolist()
    gone = [key for key in (150, 151, 152, 153) if key not in seen]
    with large._store.writing():
        for key in gone:
            large._store.remove_episodes([key], 0)
    filled(large, 300, seed=9)
    large.maintain()
    while True:
        with large._store.reading():
            step = next(steps, None)
            if step is None:
                break
            seen += step.episodes.tolist()
    assert seen == sorted(set(seen))
    assert not set(seen) & set(gone)
    assert gone
    assert len(seen) == large.count()


# What is said about a recall.


def certificate(memory: Engram, k: int = 2, **options: object):
    hits = memory.recall("w1 w2", k, **options)
    assert len({id(hit.certificate) for hit in hits}) == 1
    return hits[0].certificate


def test_a_scan_says_so(large):
    count = large.count()
    found = certificate(large, accuracy="exact")
    assert (found.accuracy, found.strategy, found.exact) == ("exact", "scan", True)
    assert (found.matching, found.considered) == (count, 600 + 50)
    assert found.reason == (
        f"{count} of {count} episodes match: every matching vector was compared"
    )


def test_sign_bits_say_so(large):
    count = large.count()
    found = certificate(large, accuracy="fast", mode="cosine")
    assert (found.accuracy, found.strategy, found.exact) == ("fast", "sketch", False)
    assert found.matching == count
    assert 2 <= found.considered < count
    assert found.reason == (
        f"{count} of {count} episodes match: sign bits chose {found.considered} vectors to"
        " compare, for a scan of all would take long"
    )


def test_few_matches_are_scanned_whatever_was_asked_for(large):
    for accuracy in ACCURACIES:
        found = certificate(large, accuracy=accuracy, until=START)
        assert (found.accuracy, found.strategy, found.exact) == (accuracy, "scan", True)
        assert found.matching == found.considered == large.count(until=START)
        assert found.reason.startswith(f"{found.matching} of {large.count()} episodes match: ")


def test_a_certificate_is_no_part_of_a_hit(large):
    hit = large.recall("w1", mode="cosine")[0]
    assert "certificate" not in repr(hit)
    other = large.recall("w1", mode="cosine", accuracy="exact")[0]
    assert hit == other
    assert hit.certificate != other.certificate


# What is refused.


@pytest.mark.parametrize("accuracy", ["", "Exact", "low", None, 1])
def test_an_accuracy_is_one_of_three_words(memory, accuracy):
    memory.observe("w1")
    with pytest.raises(InvalidArgument, match=r"^accuracy must be one of exact, high, fast"):
        memory.recall("w1", accuracy=accuracy)


@pytest.mark.parametrize(
    ("budget", "error"),
    [(-1, InvalidArgument), (2**63, InvalidArgument), ("1", InvalidType), (1.5, InvalidType),
     (None, InvalidType), (True, InvalidType)],
)  # fmt: skip
def test_a_budget_is_a_number_of_bytes(path, budget, error):
    with pytest.raises(error, match=r"^memory_budget must be"):
        Engram(path, embedder=embedder(), memory_budget=budget)
    assert not path.exists()


def test_async_engram_has_both(path):
    async def ask() -> None:
        async with AsyncEngram(path, embedder=embedder(), memory_budget=0) as memory:
            await memory.observe("w1")
            [hit] = await memory.recall("w1", accuracy="exact")
            assert hit.certificate is not None
            assert hit.certificate.accuracy == "exact"
            with pytest.raises(InvalidArgument, match=r"^accuracy must be one of"):
                await memory.recall("w1", accuracy="sure")
            assert memory._memory is not None
            assert memory._memory._budget == 0
        with pytest.raises(InvalidArgument, match=r"^memory_budget must be"):
            async with AsyncEngram(path, embedder=embedder(), memory_budget=-1) as memory:
                await memory.observe("w2")

    asyncio.run(ask())
