"""Clusters and repeats are those of the whole matrix of distances, without its memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from engram.training import clustering
from engram.training.clustering import clusters
from engram.training.repeats import near_pairs


def unit(rows: np.ndarray) -> np.ndarray:
    rows = np.asarray(rows, np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def gathered(seed: int, count: int, dim: int, centres: int, spread: float) -> np.ndarray:
    """Vectors around some centres, one in ten the same as another."""
    chance = np.random.default_rng(seed)
    around = chance.standard_normal((centres, dim))[chance.integers(centres, size=count)]
    rows = unit(around + spread * chance.standard_normal((count, dim)))
    some = count // 10
    rows[chance.integers(count, size=some)] = rows[chance.integers(count, size=some)]
    return rows


def plain_clusters(rows: np.ndarray, cut: float) -> list[list[int]]:
    whole = rows.astype(np.float64)
    distances = np.clip(1 - whole @ whole.T, 0, None)
    np.fill_diagonal(distances, 0)
    linked = linkage(squareform(distances, checks=False), "average")
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(fcluster(linked, cut, "distance")):
        groups.setdefault(label, []).append(row)
    return sorted(group for group in groups.values() if len(group) > 1)


def plain_pairs(parts: list[np.ndarray], least: float) -> list[list[int]]:
    whole = [part.astype(np.float64) for part in parts]
    near = np.all([part @ part.T >= least for part in whole], axis=0)
    firsts = [(np.flatnonzero(near[:row, row]), row) for row in range(len(near))]
    return [[int(first[0]), row] for first, row in firsts if len(first)]


def as_lists(groups: list[np.ndarray]) -> list[list[int]]:
    return [group.tolist() for group in groups]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 500),
    dim=st.sampled_from([2, 16, 64, 65, 128, 384]),
    share=st.floats(0.004, 0.5),
    spread=st.floats(0.05, 1.0),
    cut=st.sampled_from([0.05, 0.15, 0.4]),
)
def test_equal_to_average_linkage_on_the_whole_matrix(seed, count, dim, share, spread, cut):
    rows = gathered(seed, count, dim, max(1, int(share * count)), spread)
    assert as_lists(clusters(rows, cut)) == plain_clusters(rows, cut)
    assert near_pairs([rows], 1 - cut / 5).tolist() == plain_pairs([rows], 1 - cut / 5)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 300),
    dim=st.sampled_from([8, 24, 96]),
    shares=st.lists(st.sampled_from([0.01, 0.1, 0.5]), min_size=2, max_size=3),
    spread=st.sampled_from([0.05, 0.2, 0.5]),
)
def test_repeats_are_near_in_every_part(seed, count, dim, shares, spread):
    parts = [
        gathered(seed + at, count, dim, max(1, int(share * count)), spread).astype(kind)
        for at, (share, kind) in enumerate(zip(shares, ["f4", "f2", "f2"], strict=False))
    ]
    assert near_pairs(parts, 0.9).tolist() == plain_pairs(parts, 0.9)


@pytest.mark.parametrize("spread", [0.05, 0.5])
def test_repeats_where_one_part_is_the_same_everywhere(spread):
    """Whoever looks at that part alone has to compare every pair."""
    same = gathered(3, 3000, 96, 1, 0.01)
    other = gathered(4, 3000, 96, 900, spread)
    expected = plain_pairs([same, other], 0.98)
    assert near_pairs([same, other]).tolist() == near_pairs([other, same]).tolist() == expected


@pytest.mark.parametrize(("centres", "spread"), [(300, 0.5), (1, 0.3), (12, 0.2)])
def test_equal_where_there_are_many_blocks(centres, spread):
    """Scattered, all one cluster, and a few dense ones."""
    rows = gathered(7, 3000, 96, centres, spread)
    assert as_lists(clusters(rows)) == plain_clusters(rows, 0.15)
    assert near_pairs([rows]).tolist() == plain_pairs([rows], 0.98)


def test_a_crowd_is_clustered_in_portions(monkeypatch):
    """Clusters further apart than the cut are found whole, and nobody is lost."""
    rows = gathered(7, 3000, 96, 12, 0.2)
    monkeypatch.setattr(clustering, "_MOST_CLOSE", 1e5)
    monkeypatch.setattr(clustering, "_PORTION", 256)
    assert as_lists(clusters(rows)) == plain_clusters(rows, 0.15)
    assert [len(group) for group in clusters(gathered(7, 3000, 96, 1, 0.3))] == [3000]


def test_groups_come_by_their_first_row_and_rows_ascend():
    one, other, alone = unit(np.eye(3))
    rows = np.stack([alone, other, one, other, one, one])
    assert as_lists(clusters(rows)) == [[1, 3], [2, 4, 5]]
    assert near_pairs([rows]).tolist() == [[1, 3], [2, 4], [2, 5]]


def test_a_pair_just_within_and_just_beyond_the_cut():
    def at(cosine: float) -> np.ndarray:
        return unit([[1.0, 0.0], [cosine, np.sqrt(1 - cosine**2)]])

    assert as_lists(clusters(at(0.8501))) == [[0, 1]]
    assert clusters(at(0.8499)) == []


def test_the_mean_counts_and_not_the_nearest_pair():
    """A chain of near neighbours is not one cluster."""
    angles = np.arange(40) * np.deg2rad(20)
    rows = unit(np.stack([np.cos(angles), np.sin(angles)], axis=1)[:9])
    assert as_lists(clusters(rows)) == plain_clusters(rows, 0.15)
    assert len(clusters(rows)) > 1


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_vectors(count):
    rows = np.ones((count, 1), np.float32)
    assert clusters(rows) == []
    assert near_pairs([rows]).shape == (0, 2)


def test_vectors_of_zeros_are_like_nobody_but_each_other():
    rows = np.zeros((3, 4), np.float32)
    rows[0, 0] = 1.0
    assert near_pairs([rows]).tolist() == [[1, 2]]


CHILD = """
import resource, sys
import numpy as np
from engram.training import clustering
from engram.training.clustering import clusters
from engram.training.repeats import near_pairs
chance = np.random.default_rng(3)
around = chance.standard_normal((1500, 128), dtype=np.float32)[chance.integers(1500, size=20_000)]
rows = around + 0.3 * chance.standard_normal((20_000, 128), dtype=np.float32)
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
clusters(rows[:100]), near_pairs([rows[:100]])
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 256 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
print(len(clusters(rows)), len(near_pairs([rows])))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_far_from_that_of_all_distances():
    """20,000 vectors in 256 MiB more than the process had; their distances alone take 3 GiB."""
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 1000
