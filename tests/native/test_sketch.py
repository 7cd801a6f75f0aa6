"""Sign bits and codes against their twins, and what they promise against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram._native import hamming, scan, sketch
from engram._native.twins import hamming as hamming_twin
from engram._native.twins import sketch as twin

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]
Floats = NDArray[np.float32]

deterministic = settings(deadline=None, derandomize=True)

DIMS = [1, 3, 31, 32, 33, 64, 100, 384, 1024]


def vectors(seed: int, count: int, dims: int) -> Floats:
    """Random rows of several sizes, with zero rows and equal rows among them."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((count, dims), np.float32)
    rows *= random.choice(np.float32([1e-3, 1, 50]), (count, 1))
    rows[random.random(count) < 0.1] = 0
    equal = random.random(count) < 0.2
    if equal.any():
        rows[equal] = rows[np.flatnonzero(equal)[0]]
    return rows


def unit(seed: int, count: int, dims: int) -> Floats:
    rows = np.random.default_rng(seed).standard_normal((count, dims), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def owners_of(seed: int, count: int) -> NDArray[np.uint32]:
    return np.sort(np.random.default_rng(seed).integers(0, count // 2 + 1, count, np.uint32))


@pytest.mark.parametrize("dims", [0, *DIMS])
@pytest.mark.parametrize("count", [0, 1, 37])
def test_codes_and_bits(agree: Agree, count: int, dims: int) -> None:
    rows = vectors(dims, count, dims)
    high, low, scales, errors = agree(sketch.encode, twin.encode, rows)
    assert high.shape == low.shape == (count, 16 * -(-dims // 32))
    decoded = agree(sketch.decode, twin.decode, high, low, scales, dims)
    lost = np.linalg.norm(rows.astype(np.float64) - decoded.astype(np.float64), axis=1)
    # Decoding rounds once more: relative to the number, by 2^-24 at most.
    assert np.all(lost <= errors + 1e-6 * np.linalg.norm(rows, axis=1))
    assert np.all(np.abs(rows - decoded) <= 0.5001 * scales[:, np.newaxis])
    centre = rows.mean(0) if count else np.zeros(dims, np.float32)
    bits = agree(hamming.sign_bits, hamming_twin.sign_bits, rows, centre)
    assert bits.shape == (count, -(-dims // 64))
    for i in range(dims):
        assert np.array_equal(
            bits[:, i // 64] >> np.uint64(i % 64) & np.uint64(1) != 0, rows[:, i] > centre[i]
        )


@pytest.mark.parametrize("dims", [0, *DIMS])
def test_query_codes(agree: Agree, dims: int) -> None:
    for query in (*vectors(dims, 5, dims), np.ones(dims, np.float32), np.zeros(dims, np.float32)):
        codes, scale = sketch.query_codes(query)
        assert scale == twin.query_codes(query)[1]
        agree(lambda q: sketch.query_codes(q)[0], lambda q: twin.query_codes(q)[0], query)
        assert np.abs(codes.astype(np.int64)).sum() * 255 < 2**31
        assert np.abs(codes).sum(dtype=np.int64) * scale == pytest.approx(
            np.abs(query).sum(dtype=np.float64), rel=1e-3
        )


def test_numbers_too_small_for_a_scale(agree: Agree) -> None:
    tiny = np.full((3, 40), 1.4e-45, np.float32) * np.arange(60, 63, dtype=np.float32)[:, None]
    tiny[2] *= 3
    _, _, scales, errors = agree(sketch.encode, twin.encode, tiny)
    assert scales[0] == 0
    assert np.all(errors > 0)


@pytest.mark.parametrize("words", [1, 2, 6, 7, 8, 9, 16, 24])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 500, 5000])
def test_hamming_nearest(agree: Agree, count: int, words: int) -> None:
    random = np.random.default_rng(count + words)
    bits = random.integers(0, 2**64, (count, words), np.uint64)
    if count > 100:
        bits[random.random(count) < 0.1] = bits[50]
    query = bits[count // 2].copy() if count else np.zeros(words, np.uint64)
    owners = random.integers(0, count + 1, count).astype(np.uint32)
    reference = (
        np.array(
            [[int(a ^ b).bit_count() for a, b in zip(row, query, strict=True)] for row in bits],
            np.int64,
        )
        .reshape(count, words)
        .sum(1)
    )
    for k, margin, limit in ((1, 2**16, 7), (1, 0, 1), (7, 3, 100), (2, 20, 2**70), (5, 0, 2**70)):
        for allowed in (None, random.random(count) < 0.5, random.random(count // 2) < 0.1):
            for owner in (None, owners):
                distances = np.full(count, 9, np.uint16)
                found = agree(
                    hamming.hamming_nearest,
                    hamming_twin.hamming_nearest,
                    bits,
                    query,
                    allowed,
                    owner,
                    k,
                    margin,
                    limit,
                    distances,
                )
                assert distances.tolist() == reference.tolist()
                rows = np.arange(count) if owner is None else owner
                counts = (
                    np.ones(count, bool)
                    if allowed is None
                    else np.array([r < len(allowed) and bool(allowed[r]) for r in rows], bool)
                )
                expected = np.flatnonzero(counts)
                expected = expected[np.argsort(reference[expected], kind="stable")[:limit]]
                if len(expected) > k:
                    edge = reference[expected[k - 1]] + margin
                    expected = expected[reference[expected] <= edge]
                assert found.tolist() == sorted(expected.tolist())


def test_hamming_nearest_where_the_sample_misleads(agree: Agree) -> None:
    """Every row that the bound is judged by is near, or none is."""
    bits = np.zeros((64_000, 1), np.uint64)
    query, distances = np.zeros(1, np.uint64), np.empty(64_000, np.uint16)
    for near, far in ((0, 2**64 - 1), (2**64 - 1, 0)):
        bits[:] = far
        bits[::32] = near
        found = agree(
            hamming.hamming_nearest,
            hamming_twin.hamming_nearest,
            bits,
            query,
            None,
            None,
            3000,
            2**16,
            3000,
            distances,
        )
        assert len(found) == 3000


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("grouped", [False, True])
def test_coarse_nearest(agree: Agree, dims: int, grouped: bool) -> None:
    rows = vectors(dims, 400, dims)
    high, _, scales, _ = sketch.encode(rows)
    query, _ = sketch.query_codes(vectors(dims + 1, 400, dims)[-1])
    owners = owners_of(dims, 400) if grouped else None
    for listed in (np.arange(400), np.arange(0, 400, 3), np.array([5]), np.array([])):
        for limit in (1, 10, 100, 2**70):
            found = agree(
                sketch.coarse_nearest,
                twin.coarse_nearest,
                high,
                scales,
                query,
                listed.astype(np.uint32),
                owners,
                limit,
            )
            if not grouped:
                assert len(found) == min(limit, len(listed))
            else:
                assert len(np.unique(owners[found])) == min(
                    limit, len(np.unique(owners[listed.astype(np.int64)]))
                )


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("grouped", [False, True])
def test_code_candidates(agree: Agree, dims: int, grouped: bool) -> None:
    random = np.random.default_rng(dims)
    rows = vectors(dims, 300, dims)
    codes = sketch.encode(rows)
    owners = owners_of(dims, 300) if grouped else None
    for query in (rows[7] + 0.1, np.ones(dims, np.float32), np.zeros(dims, np.float32)):
        for listed in (None, np.flatnonzero(random.random(300) < 0.3), np.array([])):
            for allowed in (None, random.random(300) < 0.5, random.random(20) < 0.5):
                for k, certainty in ((1, 1.0), (10, 0.3), (2**70, 0.0)):
                    agree(
                        sketch.code_candidates,
                        twin.code_candidates,
                        *codes,
                        *sketch.query_codes(query.astype(np.float32)),
                        None if listed is None else listed.astype(np.uint32),
                        allowed,
                        owners,
                        k,
                        certainty,
                    )


def test_no_rows(agree: Agree) -> None:
    codes = sketch.encode(np.empty((0, 40), np.float32))
    query = sketch.query_codes(np.ones(40, np.float32))
    none = np.empty(0, np.uint32)
    for owners in (None, none):
        for listed in (None, none):
            rows, similarities = agree(
                sketch.code_candidates,
                twin.code_candidates,
                *codes,
                *query,
                listed,
                None,
                owners,
                3,
                1.0,
            )
            assert rows.shape == similarities.shape == (0,)
        agree(
            sketch.coarse_nearest,
            twin.coarse_nearest,
            codes[0],
            codes[2],
            query[0],
            none,
            owners,
            3,
        )


@deterministic
@given(
    st.integers(0, 2**32),
    st.sampled_from(DIMS),
    st.integers(1, 200),
    st.integers(1, 20),
    st.booleans(),
    st.booleans(),
)
def test_candidates_hold_the_nearest(
    seed: int, dims: int, count: int, k: int, grouped: bool, clustered: bool
) -> None:
    rows = vectors(seed, count, dims)
    if clustered:  # so near to each other that codes alone cannot tell
        rows = unit(seed, count, dims) * np.float32(1e-3) + unit(seed, 1, dims)
    query = vectors(seed + 1, 1, dims)[0]
    owners = owners_of(seed, count) if grouped else np.arange(count, dtype=np.uint32)
    allowed = np.random.default_rng(seed).random(count) < 0.8
    found, similarities = sketch.code_candidates(
        *sketch.encode(rows), *sketch.query_codes(query), None, allowed, owners, k, 1.0
    )
    counting = np.flatnonzero(allowed[owners])
    exact = rows.astype(np.float64) @ query.astype(np.float64)
    best = {
        owner: max(exact[r] for r in counting if owners[r] == owner)
        for owner in owners[counting].tolist()
    }
    least = sorted(best.values())[-k] if k <= len(best) else -np.inf
    assert {r for r in counting.tolist() if exact[r] >= least} <= set(found.tolist())
    np.testing.assert_allclose(
        similarities,
        exact[found],
        atol=float(np.linalg.norm(query)) * 0.5 * (1 + np.abs(rows).max()),
    )
    if len(counting):
        wide = owners.astype(np.int64)
        everything = scan.top_k(rows, query, wide, counting, k)
        candidates = scan.top_k(rows, query, wide, found.astype(np.int64), k)
        assert [a.tolist() for a in everything] == [a.tolist() for a in candidates]


def test_few_candidates_remain_where_vectors_differ() -> None:
    rows = unit(3, 20_000, 384)
    query = rows[9] + 0.5 * unit(4, 1, 384)[0]
    found, _ = sketch.code_candidates(
        *sketch.encode(rows), *sketch.query_codes(query), None, None, None, 1, 1.0
    )
    assert found.tolist() == [9]


ROWS = unit(0, 4, 40)
QUERY = sketch.query_codes(ROWS[0])
GOOD: dict[str, Any] = {
    **dict(zip(("high", "low", "scales", "errors"), sketch.encode(ROWS), strict=True)),
    "query": QUERY[0],
    "query_scale": QUERY[1],
    "rows": np.array([0, 2], np.uint32),
    "allowed": np.ones(4, bool),
    "owners": np.arange(4, dtype=np.uint32),
    "k": 2,
    "certainty": 1.0,
}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("high", GOOD["high"].astype(np.int8), TypeError),
        ("high", GOOD["high"][:, :24].copy(), ValueError),
        ("low", GOOD["low"][:3], ValueError),
        ("low", GOOD["low"].tolist(), TypeError),
        ("scales", GOOD["scales"][:3], ValueError),
        ("errors", GOOD["errors"][:3], ValueError),
        ("errors", GOOD["errors"].astype(np.float64), TypeError),
        ("query", GOOD["query"][:32].copy(), ValueError),
        ("query", GOOD["query"].astype(np.int32), TypeError),
        ("query_scale", np.nan, ValueError),
        ("rows", np.array([2, 2], np.uint32), ValueError),
        ("rows", np.array([2, 4], np.uint32), ValueError),
        ("rows", np.array([1, 2]), TypeError),
        ("allowed", np.ones(4, np.uint8), TypeError),
        ("owners", np.array([3, 2, 1, 0], np.uint32), ValueError),
        ("owners", np.arange(3, dtype=np.uint32), ValueError),
        ("k", 0, ValueError),
        ("k", 1.0, TypeError),
        ("certainty", -0.1, ValueError),
        ("certainty", "1", TypeError),
    ],
)
def test_a_wrong_argument_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    changed = GOOD | {name: value}
    if name in {"high", "query"} and error is ValueError:
        changed["low"] = changed["high"]
    kind, message = refuse(sketch.code_candidates, twin.code_candidates, *changed.values())
    assert kind is error
    assert message.startswith(name)


def test_a_query_whose_sums_could_exceed_32_bits_is_refused(refuse: Refuse) -> None:
    high, low, scales, errors = sketch.encode(unit(1, 2, 384))
    query = np.full(384, 32767, np.int16)
    _, message = refuse(
        sketch.code_candidates,
        twin.code_candidates,
        high,
        low,
        scales,
        errors,
        query,
        1.0,
        None,
        None,
        None,
        1,
        1.0,
    )
    assert message.startswith("query")
    rows = np.arange(2, dtype=np.uint32)
    refuse(sketch.coarse_nearest, twin.coarse_nearest, high, scales, query, rows, None, 1)
    refuse(
        sketch.coarse_nearest, twin.coarse_nearest, high, scales, query, rows[::-1].copy(), None, 1
    )


def test_bits_and_codes_refuse_what_does_not_fit(refuse: Refuse) -> None:
    bits, query, rows = np.zeros((4, 2), np.uint64), np.zeros(2, np.uint64), ROWS
    distances = np.zeros(4, np.uint16)
    for case in (
        (bits, query[:1], None, None, 1, 0, 1, distances),
        (bits, query, None, None, 0, 0, 1, distances),
        (bits, query, None, None, 1, -1, 1, distances),
        (bits, query, None, None, 2, 0, 1, distances),
        (bits, query, None, None, 1, 0, 1, distances[:2]),
        (bits, query, np.ones(4), None, 1, 0, 1, distances),
        (bits, query, None, np.zeros(3, np.uint32), 1, 0, 1, distances),
        (bits[:, :0].copy(), query[:0], None, None, 1, 0, 1, distances),
        (
            np.zeros((1, 1024), np.uint64),
            np.zeros(1024, np.uint64),
            None,
            None,
            1,
            0,
            1,
            distances[:1],
        ),
    ):
        refuse(hamming.hamming_nearest, hamming_twin.hamming_nearest, *case)
    refuse(sketch.encode, twin.encode, rows.astype(np.float64))
    refuse(hamming.sign_bits, hamming_twin.sign_bits, rows, rows[0, :3])
    refuse(sketch.query_codes, twin.query_codes, rows)
    high, low, scales, _ = sketch.encode(rows)
    refuse(sketch.decode, twin.decode, high, low, scales, 65)
    refuse(sketch.decode, twin.decode, high, low, scales[:1], 40)
