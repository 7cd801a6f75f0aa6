"""The complete blend, against the formula in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram import Blending
from engram.index import WordWeights
from engram.retrieval.complete import Signals, complete
from engram.storage import TurnColumns

shares = st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0])


@st.composite
def signals(draw: st.DrawFn) -> Signals:
    count, extra, terms = draw(st.integers(0, 8)), draw(st.integers(0, 2)), draw(st.integers(0, 3))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Signals(
        similarities=np.round(chance.random(count) * chance.integers(0, 2), 2),
        words=WordWeights(
            chance.integers(0, 3, (count + extra, terms)).astype(np.float32),
            chance.integers(1, 9, count + extra).astype(np.float64),
            chance.random(terms),
            4.0,
        ),
        near=np.round(chance.random((count + extra, terms)), 1) if draw(st.booleans()) else None,
        questions=chance.integers(-1, max(count + extra, 1), count) if count else np.empty(0, int),
        turns=TurnColumns(
            chance.integers(0, 3, count), np.zeros(count, dtype=int), chance.random(count) < 0.3
        ),
        named=np.round(chance.random(count), 1) if draw(st.booleans()) else None,
        nearness=chance.random(count) if draw(st.booleans()) else None,
    )


def plainly(found: Signals, blending: Blending, text_share: float) -> list[float]:
    """The documented formula, a candidate at a time."""
    rows = range(len(found.similarities))
    often = found.words.frequencies.astype(float)
    if found.near is not None:
        for row, term in np.argwhere(often == 0):
            often[row, term] = blending.near_words * found.near[row, term]
    weights = found.words._replace(frequencies=often).scores().tolist()
    most = max(weights, default=0.0) or 1.0
    nearest = max(found.similarities.tolist(), default=0.0) or 1.0

    def conversation(one: int) -> float:
        total = 0.0
        for term, rarity in enumerate(found.words.rarity.tolist()):
            f = sum(often[row, term] for row in rows if found.turns.conversation[row] == one)
            total += rarity * f * 2.2 / (f + 1.2)
        return total

    told = max((conversation(one) for one in found.turns.conversation if one), default=0.0) or 1.0
    strength = min(1.0, 2.0 * text_share)
    scores = []
    for row in rows:
        words = weights[row] / most
        if found.questions[row] >= 0:
            words += blending.answers * weights[found.questions[row]] / most
        if one := found.turns.conversation[row]:
            share = blending.conversation
            words = (1.0 - share) * words + share * conversation(one) / told
        score = (1.0 - text_share) * found.similarities[row] / nearest + text_share * words
        if found.turns.assistant[row]:
            score *= 1.0 - strength * (1.0 - blending.assistant)
        for weight, share in (blending.named, found.named), (blending.dates, found.nearness):
            score *= 1.0 if share is None else 1.0 + strength * weight * share[row]
        scores.append(float(score))
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]


blendings = st.builds(
    Blending,
    near_words=shares,
    conversation=shares,
    answers=shares,
    assistant=shares,
    named=shares,
    dates=shares,
)


@given(signals(), shares, blendings)
def test_a_score_is_what_the_formula_says(found, text_share, blending):
    scores = complete(found, blending, text_share)
    assert scores.tolist() == pytest.approx(plainly(found, blending, text_share), abs=1e-12)
    assert ((scores >= 0.0) & (scores <= 1.0)).all()


@given(signals(), blendings)
def test_without_words_only_the_cosine_is_left(found, blending):
    scores = complete(found, blending, 0.0)
    best = found.similarities.max(initial=0.0) or 1.0
    np.testing.assert_allclose(scores, found.similarities / best, rtol=1e-15)


@given(st.integers(5, 64), st.integers(10, 60), st.integers(0, 2**32 - 1))
def test_equal_candidates_score_equally_wherever_they_stand(count, terms, seed):
    chance = np.random.default_rng(seed)
    equal, others = chance.integers(0, 3, terms), chance.integers(0, 3, (2, terms))
    frequencies = np.vstack([np.tile(equal, (count, 1)), others]).astype(np.float32)
    rows = len(frequencies)
    found = Signals(
        similarities=np.append(np.full(count, 0.6), chance.random(2)),
        words=WordWeights(frequencies, np.full(rows, 20.0), 6.0 * chance.random(terms), 20.0),
        near=chance.random(terms) * (frequencies == 0),
        questions=np.full(rows, -1),
        turns=TurnColumns(np.arange(1, rows + 1), np.zeros(rows, int), np.zeros(rows, bool)),
        named=None,
        nearness=None,
    )
    assert len(set(complete(found, Blending(), 0.5)[:count].tolist())) == 1
