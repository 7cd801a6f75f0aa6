"""One hop of spreading activation against its twin and against a plain reference."""

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


def graph(nodes: int, arcs: Arcs) -> Any:
    """Rows of `arcs`, which keep their order within a row; unused places lie between the rows."""
    ordered = [[arc for arc in arcs if arc[0] == node] for node in range(nodes)]
    counts = np.array([len(row) for row in ordered], np.int32)
    starts = np.cumsum(counts + 1, dtype=np.int32) - counts
    indices = np.full(len(arcs) + nodes + 1, -1, np.int32)
    weights = np.full(len(indices), np.nan, np.float32)
    for start, row in zip(starts.tolist(), ordered, strict=True):
        for at, (_, target, weight) in enumerate(row, start):
            indices[at], weights[at] = target, weight
    return starts, counts, indices, weights


def charges(frontier: dict[int, float]) -> Any:
    return np.array(list(frontier), np.int64), np.array(list(frontier.values()), np.float64)


def reference(arcs: Arcs, frontier: dict[int, float], decay: float) -> dict[int, float]:
    received: dict[int, float] = {}
    for node, energy in frontier.items():
        for source, target, weight in arcs:
            if source == node:
                contribution = energy * decay * float(np.float32(min(max(weight, 0.0), 1.0)))
                if contribution > 0.0:
                    received[target] = received.get(target, 0.0) + contribution
    return received


@st.composite
def hops(
    draw: st.DrawFn, weights: st.SearchStrategy[float], energies: st.SearchStrategy[float]
) -> tuple[int, Arcs, dict[int, float]]:
    nodes = draw(st.integers(1, 90))
    node = st.integers(0, nodes - 1)
    arcs = draw(st.lists(st.tuples(node, node, weights), max_size=120))
    return nodes, arcs, draw(st.dictionaries(node, energies, max_size=9))


@deterministic
@given(hops(st.floats(-0.5, 1.5, width=32), st.floats(-0.5, 2)), st.floats(0, 1.5))
def test_a_hop_matches_the_reference(
    agree: Agree, hop: tuple[int, Arcs, dict[int, float]], decay: float
) -> None:
    nodes, arcs, frontier = hop
    expected = reference(arcs, frontier, decay)
    reached, received = agree(spread, twin, *graph(nodes, arcs), *charges(frontier), decay)
    # In the order in which they are reached, and added up in it: the same bits.
    assert dict(zip(reached.tolist(), received.tolist(), strict=True)) == expected
    assert reached.tolist() == list(expected)


@deterministic
@given(
    hops(st.floats(width=32), st.floats(allow_nan=False, allow_infinity=False)),
    st.sampled_from([0.0, 5e-324, 0.5, 1.0, 1e308]),
)
def test_any_weights_and_energies_give_the_bits_of_the_twin(
    agree: Agree, hop: tuple[int, Arcs, dict[int, float]], decay: float
) -> None:
    nodes, arcs, frontier = hop
    _, received = agree(spread, twin, *graph(nodes, arcs), *charges(frontier), decay)
    assert (received > 0.0).all()


def test_weights_are_clamped_and_a_weightless_arc_passes_nothing(agree: Agree) -> None:
    rows = graph(5, [(0, 1, 3.0), (0, 2, -1.0), (0, 3, 0.0), (0, 4, math.nan)])
    reached, received = agree(spread, twin, *rows, *charges({0: 1.0}), 0.5)
    assert (reached.tolist(), received.tolist()) == ([1], [0.5])


def test_a_node_without_energy_passes_nothing(agree: Agree) -> None:
    rows = graph(3, [(1, 0, 1.0), (1, 2, 1.0)])
    for energy in (0.0, -0.0, -1.0):
        reached, _ = agree(spread, twin, *rows, *charges({1: energy}), 0.5)
        assert reached.shape == (0,)


def test_a_node_given_twice_passes_twice(agree: Agree) -> None:
    rows = graph(2, [(0, 1, 1.0)])
    _, received = agree(spread, twin, *rows, np.array([0, 0]), np.array([1.0, 0.5]), 0.5)
    assert received.tolist() == [0.75]


def test_no_frontier_or_no_nodes_give_nothing(agree: Agree) -> None:
    for rows in (graph(0, []), graph(3, [(0, 1, 1.0)])):
        reached, received = agree(spread, twin, *rows, *charges({}), 0.5)
        assert reached.shape == received.shape == (0,)


def test_a_large_random_graph_matches_the_twin(agree: Agree) -> None:
    """Reaches many more nodes than the table of sums begins with room for."""
    random = np.random.default_rng(11)
    sources = np.sort(random.integers(0, 20_000, 100_000))
    starts = np.searchsorted(sources, np.arange(20_001)).astype(np.int32)
    rows = (
        starts[:-1].copy(),
        np.diff(starts),
        random.integers(0, 20_000, 100_000).astype(np.int32),
        random.random(100_000, dtype=np.float32),
    )
    for count in (1, 30, 20_000):
        nodes, energy = random.permutation(20_000)[:count], random.random(count)
        for array in (*rows, nodes, energy):
            array.setflags(write=False)
        reached, _ = agree(spread, twin, *rows, nodes, energy, 0.5)
    assert len(reached) > 19_000


GOOD: dict[str, Any] = {
    "starts": np.array([0, 1], np.int32),
    "counts": np.array([1, 1], np.int32),
    "indices": np.array([1, 0], np.int32),
    "weights": np.array([0.5, 0.5], np.float32),
    "nodes": np.array([0, 1]),
    "energy": np.array([1.0, 0.5]),
    "decay": 0.5,
}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("starts", [0, 1], TypeError),
        ("starts", np.array([0, 1]), TypeError),
        ("starts", np.array([0, 2], np.int32), ValueError),
        ("starts", np.array([0, -1], np.int32), ValueError),
        ("starts", np.array([0, 2**31 - 1], np.int32), ValueError),
        ("counts", np.array([1, 1]), TypeError),
        ("counts", np.array([1], np.int32), ValueError),
        ("indices", np.array([1, 0]), TypeError),
        ("indices", np.array([1, 2], np.int32), ValueError),
        ("indices", np.array([-1, 0], np.int32), ValueError),
        ("weights", np.array([0.5], np.float32), ValueError),
        ("weights", np.ones(4, np.float32)[::2], ValueError),
        ("nodes", np.array([0, 2]), ValueError),
        ("nodes", np.array([-1, 0]), ValueError),
        ("nodes", np.array([[0, 1]]), ValueError),
        ("energy", np.array([1.0]), ValueError),
        ("energy", np.array([1.0, np.nan]), ValueError),
        ("energy", np.array([1.0, np.inf]), ValueError),
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


@pytest.mark.parametrize("count", [-1, 2, 2**31 - 1])
def test_a_row_beyond_the_arcs_is_refused(refuse: Refuse, count: int) -> None:
    kind, message = refuse(
        spread, twin, *(GOOD | {"counts": np.array([1, count], np.int32)}).values()
    )
    assert (kind, message) == (ValueError, "starts and counts must lie within the arcs")
