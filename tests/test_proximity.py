"""The hnswlib graph of a partition: what its failure modes must not do to a caller."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.index import proximity
from engram.index.proximity import ProximityGraph, available

Floats = NDArray[np.float32]

IDENTITY = b"store 1, agent 2, rows to 3"
DIM = 24

pytestmark = pytest.mark.skipif(not available(), reason="hnswlib is not installed")


def clustered(seed: int, count: int) -> Floats:
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((20, DIM))
    rows = centres[random.integers(0, 20, count)] + 0.6 * random.standard_normal((count, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def never() -> bool:
    return False


def built(rows: Floats, labels: NDArray[np.int64] | None = None) -> ProximityGraph:
    labels = np.arange(len(rows)) if labels is None else labels
    batches = (rows[first : first + 500] for first in range(0, len(rows), 500))
    graph = ProximityGraph.build(rows.shape[1], labels, batches, stop=never)
    assert graph is not None
    return graph


@pytest.fixture(scope="module")
def rows() -> Floats:
    return clustered(1, 4000)


@pytest.fixture(scope="module")
def graph(rows: Floats) -> ProximityGraph:
    return built(rows, np.arange(len(rows)) * 3 + 5)


def test_it_finds_the_nearest(rows: Floats, graph: ProximityGraph) -> None:
    found = 0
    for query in clustered(2, 50):
        labels = graph.nearest(query, 10, 100)
        similarities = rows[(labels - 5) // 3] @ query
        assert np.all(np.diff(similarities) <= 1e-6)
        found += len(np.intersect1d(np.argsort(-(rows @ query))[:10] * 3 + 5, labels))
    assert found / 500 >= 0.98
    assert graph.dim == DIM
    assert len(graph) == 4000


def test_the_same_graph_each_time(rows: Floats, graph: ProximityGraph) -> None:
    again = built(rows, np.arange(len(rows)) * 3 + 5)
    for query in clustered(3, 20):
        assert again.nearest(query, 30, 30).tolist() == graph.nearest(query, 30, 30).tolist()


@pytest.mark.parametrize("count", [0, 1, 2, 49, 600])
@pytest.mark.parametrize("limit", [0, 1, 50, 10**9])
def test_a_limit_above_the_rows(count: int, limit: int) -> None:
    data = clustered(4, count)
    labels = built(data).nearest(clustered(5, 1)[0], limit, 1)
    assert len(set(labels.tolist())) == len(labels) == min(limit, count)
    if limit >= count:
        assert sorted(labels.tolist()) == list(range(count))


def test_equal_vectors() -> None:
    """Ten thousand of them, whose graph may fall into parts: no error, and no wrong label."""
    data = np.tile(clustered(6, 1), (10_000, 1))
    graph = built(data)
    for limit in (1, 10, 1000, 10_000, 20_000):
        labels = graph.nearest(data[0], limit, 50)
        assert 1 <= len(labels) <= min(limit, 10_000)
        assert len(set(labels.tolist())) == len(labels)
    mixed = built(np.concatenate([data[:3000], clustered(7, 300)]))
    assert mixed.nearest(data[0], 10, 50).max() < 3000
    assert len(mixed.nearest(clustered(7, 1)[0], 5, 50)) >= 1


def test_a_search_that_reaches_only_some(graph: ProximityGraph, rows: Floats) -> None:
    class Parts:
        """As hnswlib where seven rows can be reached."""

        element_count, dim = 4000, DIM

        def set_ef(self, ef: int) -> None:
            self.ef = ef

        def knn_query(self, query: Floats, k: int, num_threads: int) -> Any:
            assert self.ef >= k
            assert num_threads == 1
            if k > 7:
                message = "Cannot return the results in a contiguous 2D array."
                raise RuntimeError(message)
            return np.arange(k, dtype=np.uint64)[np.newaxis], None

    for limit in (1, 7, 8, 9, 100, 5000):
        assert len(ProximityGraph(Parts()).nearest(rows[0], limit, 1)) == min(limit, 7)


def test_building_stops_when_asked(rows: Floats) -> None:
    asked = iter([False, False, True])
    given: list[int] = []

    def batches() -> Iterator[Floats]:
        for first in range(0, 4000, 128):
            given.append(first)
            yield rows[first : first + 128]

    labels = np.arange(4000)
    assert ProximityGraph.build(DIM, labels, batches(), stop=lambda: next(asked)) is None
    assert given == [0, 128, 256]


def test_a_vector_for_each_label(rows: Floats) -> None:
    for labels in (np.arange(99), np.arange(101), np.zeros(100, np.int64)):
        with pytest.raises(ValueError, match="batches"):
            ProximityGraph.build(DIM, labels, iter([rows[:100]]), stop=never)


def test_threads_with_different_ef(graph: ProximityGraph) -> None:
    queries = clustered(8, 40)
    wanted = [(query, ef) for query in queries for ef in (10, 200)]
    expected = [graph.nearest(query, 10, ef).tolist() for query, ef in wanted]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: graph.nearest(pair[0], 10, pair[1]).tolist(), wanted))
    assert found == expected


@pytest.mark.parametrize("count", [0, 1, 4000])
def test_a_saved_graph_answers_the_same(tmp_path: Path, count: int) -> None:
    graph = built(clustered(1, count))
    path = tmp_path / "graph"
    path.write_bytes(b"what was there before")
    graph.save(path, IDENTITY)
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph"]
    loaded = ProximityGraph.load(path, IDENTITY)
    assert loaded is not None
    assert (len(loaded), loaded.dim) == (count, DIM)
    for query in clustered(9, 20):
        assert loaded.nearest(query, 20, 40).tolist() == graph.nearest(query, 20, 40).tolist()
    loaded.save(tmp_path / "again", IDENTITY)
    assert ProximityGraph.load(tmp_path / "again", IDENTITY) is not None


def test_another_graphs_file_is_not_loaded(graph: ProximityGraph, tmp_path: Path) -> None:
    graph.save(tmp_path / "graph", IDENTITY)
    assert ProximityGraph.load(tmp_path / "graph", IDENTITY + b"4") is None
    assert ProximityGraph.load(tmp_path / "none", IDENTITY) is None
    assert ProximityGraph.load(tmp_path, IDENTITY) is None
    with pytest.raises(ValueError, match="identity"):
        graph.save(tmp_path / "graph", bytes(513))


def test_a_file_of_another_format_is_not_loaded(
    graph: ProximityGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(proximity, "_FORMAT", 2)
        graph.save(tmp_path / "graph", IDENTITY)
    assert ProximityGraph.load(tmp_path / "graph", IDENTITY) is None


def test_a_damaged_file_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    built(clustered(1, 300)).save(path, IDENTITY)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    damaged = [b"", whole[:4095], whole[:4096], whole[:-1], whole[:-4096], whole + bytes(4096)]
    damaged += [whole[:length] for length in random.integers(0, len(whole), 20)]
    damaged.append(whole[:8192] + whole[4096:8192] + whole[12288:])
    for _ in range(200):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), random.integers(1, 4)):
            content[place] ^= int(random.integers(1, 256))
        if content != whole:
            damaged.append(bytes(content))
    for content in damaged:
        path.write_bytes(content)
        assert ProximityGraph.load(path, IDENTITY) is None
    path.write_bytes(whole)
    assert ProximityGraph.load(path, IDENTITY) is not None


def test_a_file_that_cannot_be_written_leaves_nothing(
    graph: ProximityGraph, tmp_path: Path
) -> None:
    (tmp_path / "graph").mkdir()
    with pytest.raises(OSError, match="directory"):
        graph.save(tmp_path / "graph", IDENTITY)
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph"]


def test_hnswlib_is_imported_late_and_may_be_missing() -> None:
    code = """
import sys
from engram.index import proximity
print("hnswlib" in sys.modules)
sys.modules["hnswlib"] = None
print(proximity.available())
"""
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.split() == ["False", "False"]
