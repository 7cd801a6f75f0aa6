"""A graph of a partition: built when it is asked for, and never the reason for a wrong answer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from answers import START, embedder, filled
from files import every_byte

from engram import Engram
from engram.experience import ExperienceMemory
from engram.index import graphs, proximity
from engram.index.proximity import ProximityGraph
from engram.storage import NewEpisode

pytestmark = [
    pytest.mark.usefixtures("small_segments", "early"),
    pytest.mark.skipif(not proximity.available(), reason="hnswlib is not installed"),
]


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "GRAPH_FROM", 100)


@pytest.fixture
def memory(open_memory) -> Engram:
    """An agent's memory of 300 episodes, and another's in the same file."""
    memory = open_memory("a", embedder=embedder())
    filled(open_memory("b", embedder=embedder()), 150, seed=9)
    filled(memory, 300)
    return memory


def recalled(memory: Engram, k: int = 10, **options: object) -> tuple[str, list[str]]:
    hits = memory.recall("w1 w2 w3", k, mode="cosine", accuracy="fast", **options)
    return hits[0].certificate.strategy, [hit.episode.id for hit in hits]


def exact(memory: Engram, k: int = 10) -> list[str]:
    hits = memory.recall("w1 w2 w3", k, mode="cosine", accuracy="exact")
    return [hit.episode.id for hit in hits]


def with_graph(memory: Engram) -> Engram:
    """Ask for the graph and have it built."""
    strategy, _ = recalled(memory)
    assert strategy != "graph"
    memory.maintain()
    return memory


def graph_files(path: Path) -> list[Path]:
    return list(Path(f"{path}-index").glob("*.graph"))


def unbuildable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProximityGraph, "build", lambda *_, **__: pytest.fail("built anew"))


def test_a_graph_is_built_once_it_was_asked_for(memory, path):
    memory.maintain()
    assert graph_files(path) == []
    with_graph(memory)
    strategy, found = recalled(memory)
    assert strategy == "graph"
    # Of so few rows the search sees nearly all.
    assert found == exact(memory)
    certificate = memory.recall("w1", accuracy="fast", mode="cosine")[0].certificate
    assert (certificate.accuracy, certificate.exact, certificate.matching) == ("fast", False, 300)
    assert certificate.reason == (
        f"300 of 450 episodes match: a graph of the partition led to {certificate.considered}"
        " vectors, newer ones included"
    )
    for accuracy in ("high", "exact"):
        hit = memory.recall("w1", accuracy=accuracy)[0]
        assert hit.certificate.strategy in ("scan", "sketch")
    [file] = graph_files(path)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("k", [1, 10, 64, 200, 300, 4096])
def test_there_are_always_as_many_as_match(memory, k):
    with_graph(memory)
    _, found = recalled(memory, k)
    assert len(found) == len(set(found)) == min(k, 300)


def test_episodes_newer_than_the_graph_are_found(memory):
    with_graph(memory)
    for count in (1, 30, 200):
        new = [memory.observe("w1 w2 w3") for _ in range(3)]
        filled(memory, count, seed=count)
        strategy, found = recalled(memory, 3)
        assert strategy == "graph"
        assert found == exact(memory, 3)
        for uid in new:
            memory.forget(uid)
    memory.maintain()
    newest = memory.observe("w1 w2 w3")
    assert recalled(memory, 1) == ("graph", [newest])


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_forgotten_never_come_back(memory, share):
    with_graph(memory)
    _, order = recalled(memory, 300)
    # The nearest go: all that the graph would find.
    gone = order[: int(share * len(order))]
    for uid in gone:
        memory.forget(uid)
    for k in (1, 10, 100):
        strategy, found = recalled(memory, k)
        assert len(found) == min(k, 300 - len(gone))
        assert not set(found) & set(gone)
        assert strategy != "graph"
    memory.maintain()
    assert len(recalled(memory, 300)[1]) == 300 - len(gone)


def test_what_is_forgotten_before_it_is_in_a_segment_never_comes_back(memory):
    exact(memory)
    recent = [memory.observe("w1 w2 w3") for _ in range(5)]
    # The background makes the graph and leaves the newest in memory.
    for _ in range(2):
        # The first can find the thread at the end of its work, from the recall before.
        recalled(memory)
        memory._upkeep._thread.join()
    assert memory._index.tail.rows
    assert recalled(memory) == ("graph", exact(memory))
    for uid in recent[::2]:
        memory.forget(uid)
    _, found = recalled(memory)
    assert found == exact(memory)
    assert not set(found) & set(recent[::2])


@pytest.mark.parametrize(
    "filters",
    [{"tags": ["t1"]}, {"actors": ["ann"]}, {"since": START}, {"exclude_quarantined": True},
     {"provenance": "user"}, {"cross_agent": True}],
)  # fmt: skip
def test_filters_never_use_it(memory, filters):
    with_graph(memory)
    assert recalled(memory, **filters)[0] != "graph"


def test_another_agents_partition_has_its_own(memory, open_memory):
    with_graph(memory)
    other = open_memory("b", embedder=embedder())
    assert recalled(other)[0] != "graph"
    other.maintain()
    strategy, found = recalled(other)
    assert (strategy, found) == ("graph", exact(other))


def test_small_partitions_ask_for_none(memory, open_memory, path):
    few = open_memory("few", embedder=embedder())
    filled(few, 99, seed=4)
    recalled(few)
    few.maintain()
    assert recalled(few)[0] != "graph"
    assert graph_files(path) == []


def test_a_small_budget_asks_for_none(memory, open_memory, path):
    # Enough for the codes, too little for whole vectors.
    budget = 450 * (8 + 100) + 300 * 100
    modest = open_memory("a", embedder=embedder(), memory_budget=budget)
    recalled(modest)
    modest.maintain()
    assert recalled(modest)[0] != "graph"
    assert graph_files(path) == []


def test_a_reopened_store_reads_it_from_its_file(memory, open_memory, monkeypatch):
    with_graph(memory)
    expected = recalled(memory)
    memory.close()
    unbuildable(monkeypatch)
    again = open_memory("a", embedder=embedder())
    newest = again.observe("w1 w2 w3")
    with_graph(again)
    strategy, found = recalled(again)
    assert strategy == expected[0] == "graph"
    assert found == [newest, *expected[1][:9]]


@pytest.mark.parametrize("at", [0, 20, 4096, -5000, -1])
def test_a_changed_file_is_built_anew(memory, open_memory, path, monkeypatch, at):
    with_graph(memory)
    expected = recalled(memory)
    memory.close()
    [file] = graph_files(path)
    raw = bytearray(file.read_bytes())
    raw[at] ^= 4
    file.write_bytes(raw)
    again = with_graph(open_memory("a", embedder=embedder()))
    assert recalled(again) == expected
    again.close()
    [healed] = graph_files(path)
    assert healed != file
    unbuildable(monkeypatch)
    assert recalled(with_graph(open_memory("a", embedder=embedder()))) == expected


def test_a_missing_file_is_built_anew(memory, open_memory, path):
    with_graph(memory)
    expected = recalled(memory)
    memory.close()
    graph_files(path)[0].unlink()
    assert recalled(with_graph(open_memory("a", embedder=embedder()))) == expected
    assert len(graph_files(path)) == 1


def late(memory: Engram, count: int) -> None:
    """Keep episodes that no vector could be made of."""
    with memory._store.writing():
        new = [NewEpisode("w1 w2 w3", 0) for _ in range(count)]
        memory._store.add_episodes(new, None, None, model=None, agent="a", now=0)


def test_what_is_embedded_after_the_graph_was_made_is_found(memory, open_memory, path):
    late(memory, 3)
    filled(memory, 120, seed=3)
    with_graph(memory)
    assert recalled(memory)[0] == "graph"
    reader = with_graph(open_memory("a", embedder=embedder()))
    assert recalled(reader)[0] == "graph"
    with ExperienceMemory(path, agent_id="a", embedder=embedder()) as embedding:
        assert embedding.embed_waiting() == 3
    for one in (memory, reader):
        strategy, found = recalled(one)
        assert (strategy == "graph", found[:3]) == (False, exact(one, 3))
        assert one.recall("w1 w2 w3", 3, accuracy="fast")[2].distance == pytest.approx(0.0)
        one.maintain()
        # The second takes over what the first published, and has to ask again.
        recalled(one)
        one.maintain()
        assert recalled(one) == ("graph", exact(one))


def test_a_graph_that_was_overtaken_while_it_was_made_is_made_again(memory, path, monkeypatch):
    late(memory, 3)
    filled(memory, 120, seed=3)
    build = ProximityGraph.build

    def overtaken(*args, **options):
        with ExperienceMemory(path, agent_id="a", embedder=embedder()) as embedding:
            embedding.embed_waiting()
        exact(memory)
        return build(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ProximityGraph, "build", overtaken)
        with_graph(memory)
    strategy, found = recalled(memory)
    assert (strategy == "graph", found[:3]) == (False, exact(memory, 3))
    recalled(memory)
    memory.maintain()
    assert recalled(memory) == ("graph", exact(memory))


def test_without_hnswlib_recall_is_the_same(memory, monkeypatch):
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with_graph(memory)
    for k in (1, 10, 300):
        strategy, found = recalled(memory, k)
        assert strategy != "graph"
        assert len(found) == k
    assert found == exact(memory, 300)


def test_a_file_written_with_hnswlib_is_no_matter_without(memory, open_memory, monkeypatch):
    with_graph(memory)
    memory.close()
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    again = open_memory("a", embedder=embedder())
    assert recalled(again)[0] != "graph"
    again.maintain()
    assert len(recalled(again, 300)[1]) == 300


def test_an_encrypted_store_keeps_it_in_memory(path):
    with Engram(path, agent_id="a", embedder=embedder(), key="secret") as memory:
        filled(memory, 300)
        with_graph(memory)
        assert recalled(memory)[0] == "graph"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_no_vector_of_the_forgotten_stays_in_its_file(memory, path):
    canary = "zebra quagga okapi"
    uid = memory.observe(canary)
    filled(memory, 50, seed=7)
    with_graph(memory)
    with memory._store.reading():
        key = memory._store.episodes.key(uid, "a")
        batch = memory._store.embeddings.of(np.array([key]), memory._store.model())
    vector = batch.vectors.tobytes()
    assert vector in graph_files(path)[0].read_bytes()
    memory.forget(uid)
    assert recalled(memory)[0] == "graph"
    memory.close()
    assert vector not in every_byte(path)


def test_chunks_of_an_episode_count_once(open_memory):
    class InTwo(type(embedder())):
        def embed_documents(self, texts):
            vectors = self.embed([half for text in texts for half in (text[:14], text[14:])])
            return vectors, np.full(len(texts), 2)

        def embed_query(self, text):
            return self.embed([text])[0]

    memory = open_memory("a", embedder=InTwo(8))
    filled(memory, 200)
    with_graph(memory)
    for k in (1, 20, 64, 200):
        _, found = recalled(memory, k)
        assert len(found) == len(set(found)) == k
    assert recalled(memory, 20) == ("graph", exact(memory, 20))
