"""Chains by likeness: the same as whoever looks at every pair finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.training import chains
from engram.training.rows import Corpus, Row

HOUR = 3_600_000_000


def corpus(times, vectors):
    rows = [
        Row(
            f"m{at}",
            "decision",
            "",
            "",
            "",
            None,
            0.0,
            (),
            None,
            int(time),
            None,
            None,
            0,
            judged=False,
        )
        for at, time in enumerate(times)
    ]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return Corpus(rows, unit.astype(np.float32), np.arange(len(rows)), [])


def plain(made: Corpus) -> list[list[int]]:
    """Every pair, one after the other."""
    order = sorted(range(len(made.rows)), key=lambda at: made.rows[at].created)
    whole = made.vectors.astype(np.float64)
    visited: set[int] = set()
    found = []
    for place, start in enumerate(order):
        if start in visited:
            continue
        chain = [start]
        for other in order[place + 1 :]:
            if made.rows[other].created - made.rows[chain[-1]].created > 6 * HOUR:
                break
            if other not in visited and whole[chain[-1]] @ whole[other] >= 0.7:
                chain.append(other)
        if len(chain) > 1:
            visited |= set(chain)
            found.append(chain)
    return found


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 60),
    spread=st.sampled_from([0.0, 1.0, 20.0, 500.0]),
    groups=st.integers(1, 12),
    noise=st.sampled_from([0.0, 0.3, 0.6]),
)
def test_chains_are_those_of_every_pair(seed, count, spread, groups, noise):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(groups, 6))
    vectors = centres[random.integers(groups, size=count)] + noise * random.normal(size=(count, 6))
    made = corpus(random.uniform(0, spread * HOUR, size=count), vectors)
    assert chains.implicit_chains(made, set()) == plain(made)


@pytest.mark.parametrize("sketched", [False, True])
@pytest.mark.parametrize("noise", [0.02, 0.05, 0.2])
def test_all_at_once_in_blocks(monkeypatch, sketched, noise):
    monkeypatch.setattr(chains, "_SKETCHED_FROM", 0 if sketched else 10**12)
    monkeypatch.setattr(chains, "_BLOCK", 16)
    monkeypatch.setattr(chains, "_KEPT", 3)
    monkeypatch.setattr(chains, "_FIRST_COLUMNS", 8)
    monkeypatch.setattr(chains, "_MOST_COLUMNS", 64)
    random = np.random.default_rng(5)
    centres = random.normal(size=(25, 160)) / np.sqrt(160)
    members = random.integers(25, size=600)
    vectors = centres[members] + noise * random.normal(size=(600, 160))
    made = corpus(random.uniform(0, 10 * HOUR, size=600), vectors)
    expected = plain(made)
    assert chains.implicit_chains(made, set()) == expected
    assert any(len(chain) > 3 for chain in expected) or noise == 0.2
