"""Confidence is one scale, and its constants can be found again from judged questions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from fit_confidence import main
from hypothesis import given
from hypothesis import strategies as st

from engram.retrieval.confidence import confidence

similarities = st.floats(-1, 1)
shares = st.floats(0, 1)


def sure(similarity: float, coverage: float) -> float:
    return float(confidence(np.array([similarity]), np.array([coverage]))[0])


@given(similarities, similarities, shares, shares)
def test_grows_with_meaning_and_with_words(one, other, share, other_share):
    lesser = sure(min(one, other), min(share, other_share))
    greater = sure(max(one, other), max(share, other_share))
    assert 0 < lesser <= greater < 1


def test_unrelated_is_improbable_and_the_same_text_is_not():
    assert sure(0.0, 0.0) < 0.1
    assert sure(1.0, 1.0) > 0.9


def test_is_of_each_by_itself():
    similarity, coverage = np.array([0.9, 0.1, 0.4]), np.array([0.0, 1.0, 0.5])
    each = [sure(*pair) for pair in zip(similarity, coverage, strict=True)]
    assert confidence(similarity, coverage).tolist() == pytest.approx(each, abs=1e-15)
    assert len(confidence(np.array([]), np.array([]))) == 0


def test_constants_that_made_judgements_are_found(tmp_path):
    chance = np.random.default_rng(7)
    lines = []
    for number in range(3000):
        features = chance.uniform((-0.2, 0.0), (0.9, 1.0), (10, 2))
        if number % 5 == 0:  # nothing answers it
            features -= (0.6, 0.4)
        probable = 1 / (1 + np.exp(-(-4.0 + features @ (6.0, 3.0))))
        judged = {
            "question": f"q{number}",
            "group": f"g{number % 50}",
            "similarity": features[:, 0].tolist(),
            "coverage": features[:, 1].tolist(),
            "relevant": (chance.random(10) < probable).astype(int).tolist(),
        }
        lines.append(json.dumps(judged))
    (tmp_path / "features.jsonl").write_text("\n".join(lines))
    done = CliRunner().invoke(main, [str(tmp_path / "features.jsonl")], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert list(found["constants"].values()) == pytest.approx([-4, 6, 3], rel=0.06)
    assert len(found["constants_of_folds"]) == 5
    for fold in found["constants_of_folds"]:
        assert list(fold.values()) == pytest.approx([-4, 6, 3], rel=0.1)
    held_out = found["held_out"]
    assert held_out["log_loss"] < held_out["log_loss_of_constant"]
    assert held_out["brier"] < held_out["brier_of_constant"]
    assert held_out["auroc"] > 0.8
    assert held_out["auroc_abstention"] > 0.8
