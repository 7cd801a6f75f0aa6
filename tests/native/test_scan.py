"""The exact scan against its twin and against a plain reference."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from engram._native.scan import top_k
from engram._native.twins.scan import top_k as twin

if TYPE_CHECKING:
    from pathlib import Path

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]
Case = tuple[
    NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], NDArray[np.int64] | None, int
]

deterministic = settings(deadline=None, derandomize=True)

# Dot products of small multiples of a power of two are exact in any order of addition.
EXACT = st.integers(-4, 4).map(lambda value: value * 0.25)
ANY = st.floats(width=32)


@st.composite
def cases(draw: st.DrawFn, elements: st.SearchStrategy[float]) -> Case:
    count = draw(st.integers(0, 24))
    dims = draw(st.sampled_from([0, 1, 3, 31, 32, 33, 64, 71]))
    steps = draw(arrays(np.int64, count, elements=st.integers(0, 2)))
    rows = draw(st.none() | st.sets(st.integers(0, count - 1)) if count else st.none())
    return (
        draw(arrays(np.float32, (count, dims), elements=elements)),
        draw(arrays(np.float32, dims, elements=elements)),
        np.cumsum(steps) + draw(st.sampled_from([-(2**63), -3, 0, 2**62])),
        None if rows is None else np.array(sorted(rows), np.int64),
        draw(st.integers(1, count + 2)),
    )


def reference(case: Case) -> list[tuple[int, float]]:
    matrix, query, owners, rows, k = case
    best: dict[int, float] = {}
    for row in range(len(matrix)) if rows is None else rows.tolist():
        similarity = sum(float(a) * float(b) for a, b in zip(matrix[row], query, strict=True))
        owner = int(owners[row])
        best[owner] = max(best.get(owner, similarity), similarity)
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:k]


@deterministic
@given(cases(EXACT))
def test_exact_products_match_the_reference_with_ties(agree: Agree, case: Case) -> None:
    owners, similarities = agree(top_k, twin, *case)
    assert list(zip(owners.tolist(), similarities.tolist(), strict=True)) == reference(case)


@deterministic
@given(cases(ANY))
def test_any_floats_give_the_bits_of_the_twin(agree: Agree, case: Case) -> None:
    owners, similarities = agree(top_k, twin, *case)
    assert not np.isnan(similarities).any()
    assert len(set(owners.tolist())) == len(owners)


@pytest.mark.parametrize("dims", [1, 31, 384, 385, 1024])
def test_random_vectors_match_float64_within_tolerance(agree: Agree, dims: int) -> None:
    random = np.random.default_rng(dims)
    matrix = random.standard_normal((3000, dims), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    query = matrix[17].copy()
    owners = np.arange(3000)
    found, similarities = agree(top_k, twin, matrix, query, owners, None, 3000)
    expected = matrix.astype(np.float64) @ query.astype(np.float64)
    np.testing.assert_allclose(similarities, expected[found], atol=1e-6)
    assert sorted(found.tolist()) == owners.tolist()
    assert np.all(np.diff(similarities) <= 0)


@pytest.mark.parametrize("count", [1, 255, 2500])
def test_chunks_of_an_owner_collapse_to_their_best(agree: Agree, count: int) -> None:
    random = np.random.default_rng(count)
    matrix = random.integers(-3, 4, (count, 40)).astype(np.float32)
    query = random.integers(-3, 4, 40).astype(np.float32)
    owners = np.sort(random.integers(0, count // 3 + 1, count))
    rows = np.flatnonzero(random.random(count) < 0.7)
    for chosen in (None, rows):
        case = (matrix, query, owners, chosen, 50)
        found, similarities = agree(top_k, twin, *case)
        assert list(zip(found.tolist(), similarities.tolist(), strict=True)) == reference(case)


def test_a_tie_at_the_cut_keeps_the_smaller_owner(agree: Agree) -> None:
    matrix = np.ones((10, 4), np.float32)
    owners, similarities = agree(
        top_k, twin, matrix, np.ones(4, np.float32), np.arange(10) * 7, None, 3
    )
    assert owners.tolist() == [0, 7, 14]
    assert similarities.tolist() == [4.0, 4.0, 4.0]


@pytest.mark.parametrize("k", [1, 6, 7, 2**63 - 1, 2**80])
def test_k_may_exceed_the_owners(agree: Agree, k: int) -> None:
    matrix = np.eye(6, dtype=np.float32)
    owners, _ = agree(top_k, twin, matrix, matrix[2].copy(), np.arange(6), None, k)
    assert len(owners) == min(k, 6)


def test_nothing_to_scan_gives_empty_arrays(agree: Agree) -> None:
    query = np.ones(4, np.float32)
    none, some = np.empty((0, 4), np.float32), np.ones((3, 4), np.float32)
    no_rows = np.empty(0, np.int64)
    for matrix, owners, rows in (
        (none, no_rows, None),
        (none, no_rows, no_rows),
        (some, np.arange(3), no_rows),
    ):
        found, similarities = agree(top_k, twin, matrix, query, owners, rows, 5)
        assert found.shape == similarities.shape == (0,)


def test_similarities_that_are_not_numbers_rank_last(agree: Agree) -> None:
    matrix = np.array([[np.nan], [-5.0], [np.inf], [np.nan], [2.0]], np.float32)
    owners, similarities = agree(
        top_k, twin, matrix, np.ones(1, np.float32), np.array([0, 1, 2, 3, 3]), None, 9
    )
    assert owners.tolist() == [2, 3, 1, 0]
    assert similarities.tolist() == [np.inf, 2.0, -5.0, -np.inf]


def test_read_only_and_mapped_arrays_are_accepted(agree: Agree, tmp_path: Path) -> None:
    matrix = np.arange(32, dtype=np.float32).reshape(8, 4)
    matrix.tofile(tmp_path / "vectors")
    mapped = np.memmap(tmp_path / "vectors", np.float32, mode="r", shape=(8, 4))
    query, owners, rows = np.ones(4, np.float32), np.arange(8), np.arange(0, 8, 2)
    for array in (query, owners, rows):
        array.setflags(write=False)
    found, _ = agree(top_k, twin, mapped, query, owners, rows, 2)
    assert found.tolist() == [6, 4]


def test_threads_share_the_work_without_changing_it() -> None:
    random = np.random.default_rng(3)
    matrix = random.standard_normal((20_000, 64), dtype=np.float32)
    owners = np.arange(20_000)
    query = matrix[5].copy()
    expected, _ = top_k(matrix, query, owners, None, 20)
    with ThreadPoolExecutor(4) as pool:
        for found, _ in pool.map(lambda _: top_k(matrix, query, owners, None, 20), range(16)):
            assert found.tolist() == expected.tolist()


MATRIX = np.ones((4, 6), np.float32)
GOOD: dict[str, Any] = {
    "matrix": MATRIX,
    "query": np.ones(6, np.float32),
    "owners": np.arange(4),
    "rows": np.array([0, 2]),
    "k": 2,
}


def unaligned(count: int) -> NDArray[np.float32]:
    return np.frombuffer(bytes(4 * count + 1), np.uint8)[1:].view(np.float32)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("matrix", MATRIX.tolist(), TypeError),
        ("matrix", MATRIX.astype(np.float64), TypeError),
        ("matrix", MATRIX.astype(">f4"), TypeError),
        ("matrix", np.ones(6, np.float32), ValueError),
        ("matrix", np.ones((6, 4), np.float32).T, ValueError),
        ("matrix", np.ones((8, 6), np.float32)[::2], ValueError),
        ("query", np.ones(5, np.float32), ValueError),
        ("query", np.ones(12, np.float32)[::2], ValueError),
        ("query", unaligned(6), ValueError),
        ("query", None, TypeError),
        ("owners", np.arange(3), ValueError),
        ("owners", np.arange(4, dtype=np.int32), TypeError),
        ("owners", np.array([3, 2, 1, 0]), ValueError),
        ("rows", [0, 1], TypeError),
        ("rows", np.array([[0, 1]]), ValueError),
        ("rows", np.array([1, 0]), ValueError),
        ("rows", np.array([1, 1]), ValueError),
        ("rows", np.array([-1, 1]), ValueError),
        ("rows", np.array([0, 4]), ValueError),
        ("rows", np.array([0, 2**62]), ValueError),
        ("k", 0, ValueError),
        ("k", -(2**70), ValueError),
        ("k", 2.0, TypeError),
        ("k", None, TypeError),
    ],
)
def test_a_wrong_argument_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    kind, message = refuse(top_k, twin, *(GOOD | {name: value}).values())
    assert kind is error
    assert message.startswith(name)


def test_only_the_scanned_owners_must_ascend(agree: Agree, refuse: Refuse) -> None:
    case = (MATRIX, GOOD["query"], np.array([0, 9, 1, 2]))
    found, _ = agree(top_k, twin, *case, np.array([0, 2, 3]), 9)
    assert found.tolist() == [0, 1, 2]
    assert refuse(top_k, twin, *case, None, 9)[1].startswith("owners")
