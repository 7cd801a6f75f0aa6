"""The importance kernel against its twin and against a plain reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram._native.decay import decay as native_decay
from engram._native.twins.decay import decay as twin_decay

if TYPE_CHECKING:
    from numpy.typing import NDArray

Refuse = Callable[..., tuple[type[Exception], str]]
Row = tuple[float, float, int, int]

deterministic = settings(deadline=None, derandomize=True)

decay: Callable[..., NDArray[np.float64]] = native_decay
twin: Callable[..., NDArray[np.float64]] = twin_decay

DAY = 86_400_000_000
NOW = 1_790_000_000_000_000
INT64 = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(-1e6, 1e6)
ROWS = st.lists(
    st.tuples(
        REAL,
        REAL,
        st.integers(0, 600) | st.integers(0, 2**63 - 1),
        st.integers(NOW - 1000 * DAY, NOW + DAY) | INT64,
    ),
    max_size=20,
)


def columns(rows: list[Row]) -> Any:
    salience, valence, count, baseline = zip(*rows, strict=True) if rows else ((), (), (), ())
    return (
        np.array(salience, np.float64),
        np.array(valence, np.float64),
        np.array(count, np.int64),
        np.array(baseline, np.int64),
    )


def terms(row: Row, now: int, lambda_: float, alpha: float, beta: float) -> tuple[float, ...]:
    salience, valence, count, baseline = row
    days = float(max(Fraction(0), Fraction(now - baseline, DAY)))
    return salience * math.exp(-lambda_ * days), alpha * math.log1p(count), beta * valence


def assert_close(found: NDArray[np.float64], rows: list[Row], *config: Any) -> None:
    """Within a few ulp of the largest term: the terms may cancel."""
    for value, row in zip(found.tolist(), rows, strict=True):
        parts = terms(row, *config)
        # A rounded exponent λ·days of up to 745 moves its exponential by as many half ulp.
        slack = 8 * max(map(math.ulp, parts)) + 1e-13 * abs(parts[0])
        assert value == pytest.approx(math.fsum(parts), rel=0, abs=slack)


@deterministic
@given(ROWS, st.integers(NOW - DAY, NOW + DAY) | INT64, st.floats(0, 100), REAL, REAL)
def test_kernel_and_twin_match_the_reference(
    rows: list[Row], now: int, lambda_: float, alpha: float, beta: float
) -> None:
    config = (now, lambda_, alpha, beta)
    ours, theirs = decay(*columns(rows), *config), twin(*columns(rows), *config)
    assert ours.dtype == theirs.dtype == np.float64
    assert_close(ours, rows, *config)
    assert_close(theirs, rows, *config)
    for left, right, row in zip(ours.tolist(), theirs.tolist(), rows, strict=True):
        assert abs(left - right) <= 8 * max(map(math.ulp, terms(row, *config)))


def test_the_exponential_is_within_two_ulp() -> None:
    days = np.concatenate([np.linspace(0, 760, 40_001), np.geomspace(1e-9, 1, 2001)])
    baseline = NOW - (days * DAY).astype(np.int64)
    count = len(days)
    found = decay(
        np.ones(count), np.zeros(count), np.zeros(count, np.int64), baseline, NOW, 1.0, 0.0, 0.0
    )
    for value, start in zip(found.tolist(), baseline.tolist(), strict=True):
        expected = math.exp(-((NOW - start) / DAY))
        assert abs(value - expected) <= 2 * math.ulp(expected)
    assert np.all(np.diff(found[:40_001]) <= 0)


@pytest.mark.parametrize("count", [1, 3, 4, 255, 256, 257, 1000])
def test_the_place_of_a_row_does_not_change_its_bits(count: int) -> None:
    random = np.random.default_rng(count)
    case = (
        random.random(count),
        random.random(count) - 0.5,
        random.integers(0, 400, count),
        NOW - random.integers(0, 400 * DAY, count),
    )
    whole = decay(*case, NOW, 0.1, 0.2, 0.1)
    alone = [decay(*(a[i : i + 1] for a in case), NOW, 0.1, 0.2, 0.1)[0] for i in range(count)]
    assert whole.tolist() == alone


def test_a_known_importance() -> None:
    rows: list[Row] = [(0.5, 0.0, 0, NOW), (0.5, 1.0, 3, NOW - 10 * DAY), (0.5, -1.0, 0, NOW + DAY)]
    expected = [0.5, 0.5 / math.e + 0.2 * math.log(4) + 0.1, 0.4]
    for function in (decay, twin):
        assert function(*columns(rows), NOW, 0.1, 0.2, 0.1).tolist() == pytest.approx(expected)


def test_the_widest_distance_of_two_times_does_not_overflow() -> None:
    rows: list[Row] = [(1.0, 0.0, 0, -(2**63)), (1.0, 0.0, 0, 2**63 - 1)]
    for function in (decay, twin):
        assert function(*columns(rows), 2**63 - 1, 1e-9, 0.0, 0.0).tolist() == pytest.approx(
            [math.exp(-1e-9 * 2**64 / DAY), 1.0], rel=1e-15
        )
        assert function(*columns(rows), -(2**63), 1.0, 0.0, 0.0).tolist() == [1.0, 1.0]
        assert function(*columns(rows), 2**63 - 1, 1e308, 0.0, 0.0).tolist() == [0.0, 1.0]


def test_a_salience_that_is_not_a_number_stays_in_its_row() -> None:
    rows: list[Row] = [(math.nan, 0.0, 0, NOW), (0.5, 0.0, 0, NOW)]
    for function in (decay, twin):
        found = function(*columns(rows), NOW, 0.1, 0.2, 0.1)
        assert math.isnan(found[0])
        assert found[1] == 0.5


def test_no_episodes_give_no_importances() -> None:
    for function in (decay, twin):
        assert function(*columns([]), NOW, 0.1, 0.2, 0.1).shape == (0,)


def test_read_only_columns_are_accepted() -> None:
    case = columns([(0.5, 0.1, 2, NOW - DAY)])
    for array in case:
        array.setflags(write=False)
    for function in (decay, twin):
        assert len(function(*case, NOW, 0.1, 0.2, 0.1)) == 1


GOOD: dict[str, Any] = {
    "salience": np.array([0.5, 0.5]),
    "valence": np.array([0.0, 0.1]),
    "access_count": np.array([0, 3]),
    "baseline": np.array([NOW, NOW - DAY]),
    "now": NOW,
    "lambda_": 0.1,
    "alpha": 0.2,
    "beta": 0.1,
}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("salience", [0.5, 0.5], TypeError),
        ("salience", np.array([0.5, 0.5], np.float32), TypeError),
        ("salience", np.arange(4.0)[::2], ValueError),
        ("valence", np.array([0.5]), ValueError),
        ("access_count", np.array([1.0, 2.0]), TypeError),
        ("access_count", np.array([0, -1]), ValueError),
        ("access_count", np.array([-(2**63), 0]), ValueError),
        ("access_count", np.array([1, 2, 3]), ValueError),
        ("baseline", np.array([[NOW, NOW]]), ValueError),
        ("baseline", np.array([NOW]), ValueError),
        ("now", 2**63, ValueError),
        ("now", -(2**63) - 1, ValueError),
        ("now", 1.0, TypeError),
        ("lambda_", -0.1, ValueError),
        ("lambda_", np.inf, ValueError),
        ("alpha", np.nan, ValueError),
        ("alpha", "0.2", TypeError),
        ("beta", -np.inf, ValueError),
        ("beta", 1j, TypeError),
    ],
)
def test_a_wrong_argument_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    kind, message = refuse(decay, twin, *(GOOD | {name: value}).values())
    assert kind is error
    assert message.startswith(name)
