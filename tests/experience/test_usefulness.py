"""What is estimated without a model follows the documented formula."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.cognition.usefulness import usefulness


@pytest.mark.parametrize(
    ("query", "text", "days", "used", "score", "reason"),
    [
        ("", "anything", 0, 0, 0.30, "keyword:0.00 recency:1.00 frequency:0.00"),
        ("auth retry", "Auth-token, expired", 0, 0, 0.50,
         "keyword:0.50 recency:1.00 frequency:0.00"),
        ("auth auth x", "auth", 30, 5, 0.4 * 2 / 3 + 0.3 / math.e + 0.15,
         "keyword:0.67 recency:0.37 frequency:0.50"),
        ("snake_case", "case", 0, 99, 0.2 + 0.3 + 0.3, "keyword:0.50 recency:1.00 frequency:1.00"),
        ("ПРИВЕТ", "привет, мир", 1e9, 0, 0.4, "keyword:1.00 recency:0.00 frequency:0.00"),
        ("?!", "x", -1e9, 10, 0.6, "keyword:0.00 recency:1.00 frequency:1.00"),
    ],
)  # fmt: skip
def test_words_age_and_use_make_the_score(query, text, days, used, score, reason):
    assert usefulness(query, text, days, used) == (pytest.approx(score), reason)


@given(st.text(), st.text(), st.floats(allow_nan=False), st.integers(0))
def test_a_score_is_a_share(query, text, days, used):
    assert 0.0 <= usefulness(query, text, days, used)[0] <= 1.0
