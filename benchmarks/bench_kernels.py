"""Each kernel against its NumPy twin, on data that is the same in every run.

    pytest benchmarks/bench_kernels.py --benchmark-json=benchmarks/results/kernels.json

The scan has a third contender, NumPy's own product and partial sort. It is quicker than the twin,
since it may add in any order and use every core, and it can neither break a tie nor collapse the
chunks of an episode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engram._native.blend import blend
from engram._native.decay import decay
from engram._native.scan import top_k
from engram._native.spreading import spread
from engram._native.twins.blend import blend as blend_twin
from engram._native.twins.decay import decay as decay_twin
from engram._native.twins.scan import top_k as top_k_twin
from engram._native.twins.spreading import spread as spread_twin

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pytest_benchmark.fixture import BenchmarkFixture

Kernel = Callable[..., Any]

DAY = 86_400_000_000
NOW = 1_790_000_000_000_000


def numpy_top_k(
    matrix: NDArray[np.float32],
    query: NDArray[np.float32],
    owners: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    similarities = (matrix if rows is None else matrix[rows]) @ query
    best = np.argpartition(-similarities, k)[:k]
    best = best[np.argsort(-similarities[best])]
    return (owners if rows is None else owners[rows])[best], similarities[best]


SCANS: dict[str, Kernel] = {"native": top_k, "twin": top_k_twin, "numpy": numpy_top_k}
BLENDS: dict[str, Kernel] = {"native": blend, "twin": blend_twin}
DECAYS: dict[str, Kernel] = {"native": decay, "twin": decay_twin}
SPREADS: dict[str, Kernel] = {"native": spread, "twin": spread_twin}


def vectors(count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    random = np.random.default_rng(1)
    matrix = random.standard_normal((count, 384), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix, matrix[count // 2].copy()


@pytest.mark.parametrize("way", SCANS)
@pytest.mark.parametrize("count", [1_000, 10_000, 100_000])
def test_scan(benchmark: BenchmarkFixture, way: str, count: int) -> None:
    benchmark.group = f"scan {count} x 384"
    owners, _ = benchmark(SCANS[way], *vectors(count), np.arange(count), None, 10)
    assert owners[0] == count // 2


@pytest.mark.parametrize("way", SCANS)
def test_scan_of_listed_rows(benchmark: BenchmarkFixture, way: str) -> None:
    benchmark.group = "scan 10000 rows of 100000 x 384"
    rows = np.arange(0, 100_000, 10)
    owners, _ = benchmark(SCANS[way], *vectors(100_000), np.arange(100_000), rows, 10)
    assert owners[0] == 50_000


@pytest.mark.parametrize("way", BLENDS)
@pytest.mark.parametrize("size", [64, 4096])
def test_blend(benchmark: BenchmarkFixture, way: str, size: int) -> None:
    benchmark.group = f"blend {size} + {size}"
    random = np.random.default_rng(2)
    pools = [
        array
        for _ in range(2)
        for array in (random.permutation(4 * size)[:size], random.random(size))
    ]
    keys, _ = benchmark(BLENDS[way], *pools, 0.5, 0.5, 10)
    assert len(keys) == 10


@pytest.mark.parametrize("way", DECAYS)
def test_decay(benchmark: BenchmarkFixture, way: str) -> None:
    benchmark.group = "decay 1000000"
    random = np.random.default_rng(3)
    count = 1_000_000
    columns = (
        random.random(count),
        random.random(count) * 2 - 1,
        random.integers(0, 40, count),
        NOW - random.integers(0, 365 * DAY, count),
    )
    importance = benchmark(DECAYS[way], *columns, NOW, 0.1, 0.2, 0.1)
    assert len(importance) == count


@pytest.mark.parametrize("way", SPREADS)
@pytest.mark.parametrize("count", [30, 1_000, 50_000])
def test_spread(benchmark: BenchmarkFixture, way: str, count: int) -> None:
    benchmark.group = f"spread 100000 nodes, 1000000 arcs, from {count}"
    random = np.random.default_rng(4)
    nodes, edges = 100_000, 500_000
    ends = random.integers(0, nodes, (2, edges))
    weights = np.tile(random.random(edges, dtype=np.float32), 2)
    sources, targets = np.concatenate([ends, ends[::-1]], axis=1)
    order = np.argsort(sources, kind="stable")
    starts = np.searchsorted(sources[order], np.arange(nodes + 1)).astype(np.int32)
    rows = (starts[:-1].copy(), np.diff(starts), targets[order].astype(np.int32), weights[order])
    frontier = random.permutation(nodes)[:count]
    reached, _ = benchmark(SPREADS[way], *rows, frontier, random.random(count), 0.5)
    benchmark.extra_info["reached"] = len(reached)
