"""Spreading activation against its twin and against a plain reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram._native.spreading import spread
from engram._native.twins.spreading import spread as twin

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]
Arcs = list[tuple[int, int, float]]

deterministic = settings(deadline=None, derandomize=True)


def csr(nodes: int, arcs: Arcs) -> Any:
    """Compressed rows of `arcs`, which keep their order within a row."""
    ordered = sorted(arcs, key=lambda arc: arc[0])
    degrees = np.bincount([source for source, _, _ in ordered], minlength=nodes)
    return (
        np.concatenate([[0], np.cumsum(degrees[:nodes])]).astype(np.int64),
        np.array([target for _, target, _ in ordered], np.int32),
        np.array([weight for _, _, weight in ordered], np.float32),
    )


def both_ways(edges: Arcs) -> Arcs:
    return edges + [(target, source, weight) for source, target, weight in edges]


def charges(seeds: dict[int, float]) -> Any:
    return np.array(list(seeds), np.int64), np.array(list(seeds.values()), np.float64)


def reference(
    nodes: int, arcs: Arcs, seeds: dict[int, float], depth: int, decay: float
) -> dict[int, float]:
    activation = dict.fromkeys(seeds, 0.0)
    frontier = dict(seeds)
    for _ in range(depth):
        following: dict[int, float] = {}
        for source, target, weight in arcs:
            energy = frontier.get(source, 0.0)
            if energy > 0.0:
                contribution = energy * decay * min(max(weight, 0.0), 1.0)
                activation[target] = activation.get(target, 0.0) + contribution
                following[target] = following.get(target, 0.0) + contribution
        frontier = following
        if not any(frontier.values()):
            break
    return dict(sorted(activation.items()))


@st.composite
def graphs(draw: st.DrawFn, weights: st.SearchStrategy[float]) -> tuple[int, Arcs]:
    nodes = draw(st.integers(1, 90))
    node = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.tuples(node, node, weights), max_size=120))


@st.composite
def walks(
    draw: st.DrawFn, weights: st.SearchStrategy[float], energies: st.SearchStrategy[float]
) -> tuple[int, Arcs, dict[int, float]]:
    nodes, edges = draw(graphs(weights))
    seeds = draw(st.dictionaries(st.integers(0, nodes - 1), energies, max_size=5))
    return nodes, edges, seeds


@deterministic
@given(
    walks(st.floats(-0.5, 1.5, width=32), st.floats(-0.5, 2)),
    st.integers(0, 5),
    st.floats(0, 1.5),
)
def test_activations_match_the_reference(
    agree: Agree, walk: tuple[int, Arcs, dict[int, float]], depth: int, decay: float
) -> None:
    nodes, edges, seeds = walk
    arcs = both_ways(edges)
    expected = reference(nodes, arcs, seeds, depth, decay)
    visited, activation = agree(spread, twin, *csr(nodes, arcs), *charges(seeds), depth, decay)
    assert visited.tolist() == list(expected)
    assert activation.tolist() == pytest.approx(list(expected.values()), rel=1e-12, abs=1e-300)


@deterministic
@given(
    walks(st.floats(width=32), st.floats(allow_nan=False, allow_infinity=False)),
    st.integers(0, 9),
    st.sampled_from([0.0, 5e-324, 0.5, 1.0, 1e308]),
)
def test_any_weights_and_energies_give_the_bits_of_the_twin(
    agree: Agree, walk: tuple[int, Arcs, dict[int, float]], depth: int, decay: float
) -> None:
    nodes, arcs, seeds = walk
    visited, activation = agree(spread, twin, *csr(nodes, arcs), *charges(seeds), depth, decay)
    assert np.all(np.diff(visited) > 0)
    assert not np.isnan(activation).any()


def test_a_chain_halves_with_each_hop(agree: Agree) -> None:
    graph = csr(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)])
    visited, activation = agree(spread, twin, *graph, *charges({0: 1.0}), 2, 0.5)
    assert visited.tolist() == [0, 1, 2]
    assert activation.tolist() == [0.0, 0.5, 0.25]


def test_energy_comes_back_to_a_seed(agree: Agree) -> None:
    graph = csr(2, both_ways([(0, 1, 1.0)]))
    visited, activation = agree(spread, twin, *graph, *charges({0: 1.0}), 3, 0.5)
    assert visited.tolist() == [0, 1]
    assert activation.tolist() == [0.25, 0.5 + 0.125]


def test_depth_zero_returns_the_seeds(agree: Agree) -> None:
    graph = csr(3, both_ways([(0, 1, 1.0), (1, 2, 1.0)]))
    visited, activation = agree(spread, twin, *graph, *charges({2: 0.4, 0: 0.9}), 0, 0.5)
    assert visited.tolist() == [0, 2]
    assert activation.tolist() == [0.0, 0.0]


def test_weights_are_clamped_and_a_weightless_arc_still_visits(agree: Agree) -> None:
    graph = csr(5, [(0, 1, 3.0), (0, 2, -1.0), (0, 3, 0.0), (0, 4, math.nan)])
    visited, activation = agree(spread, twin, *graph, *charges({0: 1.0}), 1, 0.5)
    assert visited.tolist() == [0, 1, 2, 3, 4]
    assert activation.tolist() == [0.0, 0.5, 0.0, 0.0, 0.0]


def test_a_cycle_stops_when_nothing_is_left(agree: Agree) -> None:
    graph = csr(3, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)])
    visited, activation = agree(spread, twin, *graph, *charges({0: 1.0}), 2**90, 0.5)
    assert visited.tolist() == [0, 1, 2]
    assert activation.tolist() == pytest.approx([1 / 7, 4 / 7, 2 / 7])


def test_a_seed_without_energy_passes_nothing(agree: Agree) -> None:
    graph = csr(3, both_ways([(0, 1, 1.0), (1, 2, 1.0)]))
    for energy in (0.0, -0.0, -1.0):
        visited, activation = agree(spread, twin, *graph, *charges({1: energy}), 3, 0.5)
        assert visited.tolist() == [1]
        assert activation.tolist() == [0.0]


def test_a_hub_sums_in_the_order_of_its_neighbours(agree: Agree) -> None:
    random = np.random.default_rng(7)
    spokes = 3000
    edges = [(0, i, float(random.random())) for i in range(1, spokes + 1)]
    graph = csr(spokes + 1, both_ways(edges))
    seeds = {int(i): float(random.random()) for i in random.permutation(spokes)[:500] + 1}
    visited, activation = agree(spread, twin, *graph, *charges(seeds), 3, 0.5)
    assert len(visited) == spokes + 1
    weight = {target: np.float32(w) for _, target, w in edges}
    received = 0.0
    for node in sorted(seeds):
        received += seeds[node] * 0.5 * float(weight[node])
    assert activation[0] > received
    once = agree(spread, twin, *graph, *charges(seeds), 1, 0.5)[1]
    assert once[0] == received


def test_no_seeds_or_no_nodes_give_nothing(agree: Agree) -> None:
    for graph in (csr(0, []), csr(3, both_ways([(0, 1, 1.0)]))):
        visited, activation = agree(spread, twin, *graph, *charges({}), 2, 0.5)
        assert visited.shape == activation.shape == (0,)


def test_a_large_random_graph_matches_the_twin(agree: Agree) -> None:
    random = np.random.default_rng(11)
    sources = np.sort(random.integers(0, 20_000, 100_000))
    graph = (
        np.searchsorted(sources, np.arange(20_001)).astype(np.int64),
        random.integers(0, 20_000, 100_000).astype(np.int32),
        random.random(100_000, dtype=np.float32),
    )
    seeds, energy = random.permutation(20_000)[:30], random.random(30)
    for array in (*graph, seeds, energy):
        array.setflags(write=False)
    for depth in (1, 2, 6):
        agree(spread, twin, *graph, seeds, energy, depth, 0.5)


GOOD: dict[str, Any] = {
    "indptr": np.array([0, 1, 2]),
    "indices": np.array([1, 0], np.int32),
    "weights": np.array([0.5, 0.5], np.float32),
    "seeds": np.array([0, 1]),
    "energy": np.array([1.0, 0.5]),
    "depth": 2,
    "decay": 0.5,
}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("indptr", [0, 1, 2], TypeError),
        ("indptr", np.array([0, 1, 2], np.int32), TypeError),
        ("indptr", np.empty(0, np.int64), ValueError),
        ("indptr", np.array([1, 1, 2]), ValueError),
        ("indptr", np.array([0, 1, 3]), ValueError),
        ("indptr", np.array([0, 3, 2]), ValueError),
        ("indptr", np.array([0, -1, 2]), ValueError),
        ("indptr", np.array([0, 2**62, 2]), ValueError),
        ("indices", np.array([1, 0]), TypeError),
        ("indices", np.array([1, 2], np.int32), ValueError),
        ("indices", np.array([-1, 0], np.int32), ValueError),
        ("weights", np.array([0.5], np.float32), ValueError),
        ("weights", np.ones(4, np.float32)[::2], ValueError),
        ("seeds", np.array([0, 2]), ValueError),
        ("seeds", np.array([-1, 0]), ValueError),
        ("seeds", np.array([1, 1]), ValueError),
        ("seeds", np.array([[0, 1]]), ValueError),
        ("energy", np.array([1.0]), ValueError),
        ("energy", np.array([1.0, np.nan]), ValueError),
        ("energy", np.array([1.0, np.inf]), ValueError),
        ("depth", -1, ValueError),
        ("depth", 1.5, TypeError),
        ("decay", -0.5, ValueError),
        ("decay", np.nan, ValueError),
        ("decay", None, TypeError),
    ],
)
def test_a_wrong_argument_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    kind, message = refuse(spread, twin, *(GOOD | {name: value}).values())
    assert kind is error
    assert message.startswith(name)
