"""Find the constants of `engram/retrieval/confidence.py` on judged questions.

Run from a checkout with an environment that has engram and the extra `train`:

    python benchmarks/fit_confidence.py features.jsonl

Each line of the file is one question with its candidates, those that a recall returned:

    {"question": "q1", "group": "conversation 3",
     "similarity": [0.61, 0.40], "coverage": [0.8, 0.1], "relevant": [1, 0]}

What answers a question has `relevant` 1; a question without an answer has only zeros. Questions of
one `group` share memories, so they are never divided between training and test; without one each
question is its own.

The formula is confidence = 1 / (1 + exp(-(bias + s * similarity + c * coverage))), and bias, s and
c are those of the greatest likelihood, without regularisation: three numbers cannot overfit to
thousands of candidates. Prints one JSON object: the constants from all questions, those of each
fold's training part, and of the confidences that each fold's test part got from the others:

* `log_loss`, `brier`: of candidates, and the same of a constant, their share of relevant ones;
* `auroc`: a relevant candidate of any question above an irrelevant one of any other;
* `auroc_abstention`: the surest candidate of a question that has a relevant one above that of a
  question that has none; null where all questions are of one kind.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """All candidates of all questions, in step.

    Attributes:
        features: float64[n, 2], similarity and coverage.
        relevant: int64[n], 1 or 0.
        question: int64[n], the number of each one's question.
        group: int64[n], the number of its question's group.
    """

    features: Floats
    relevant: NDArray[np.int64]
    question: NDArray[np.int64]
    group: NDArray[np.int64]


def read(file: Path) -> Candidates:
    features, relevant, question, group = [], [], [], []
    groups: dict[str, int] = {}
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            asked = json.loads(line)
            rows = list(zip(asked["similarity"], asked["coverage"], strict=True))
            features += rows
            relevant += asked["relevant"]
            question += [number] * len(rows)
            name = asked.get("group", asked["question"])
            group += [groups.setdefault(name, len(groups))] * len(rows)
    return Candidates(np.array(features), np.array(relevant), np.array(question), np.array(group))


def fit(features: Floats, relevant: NDArray[np.int64]) -> Floats:
    """Return bias, weight of similarity and weight of coverage."""
    model = LogisticRegression(C=np.inf).fit(features, relevant)
    return np.concatenate((model.intercept_, model.coef_[0]))


def confidences(constants: Floats, features: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-(constants[0] + features @ constants[1:])))


def figures(found: Candidates, sure: Floats) -> dict[str, Any]:
    share = np.full(len(sure), found.relevant.mean())
    surest = np.zeros(found.question.max() + 1)
    np.maximum.at(surest, found.question, sure)
    answered = np.zeros(len(surest), dtype=int)
    np.maximum.at(answered, found.question, found.relevant)
    return {
        "log_loss": log_loss(found.relevant, sure),
        "log_loss_of_constant": log_loss(found.relevant, share),
        "brier": brier_score_loss(found.relevant, sure),
        "brier_of_constant": brier_score_loss(found.relevant, share),
        "auroc": roc_auc_score(found.relevant, sure),
        "auroc_abstention": (roc_auc_score(answered, surest) if 0 < answered.mean() < 1 else None),
    }


def cross_validate(found: Candidates, folds: int) -> dict[str, Any]:
    sure = np.zeros(len(found.relevant))
    constants = []
    for train, test in GroupKFold(folds).split(found.features, groups=found.group):
        fold = fit(found.features[train], found.relevant[train])
        sure[test] = confidences(fold, found.features[test])
        constants.append(fold)
    return {
        "constants": named(fit(found.features, found.relevant)),
        "constants_of_folds": [named(fold) for fold in constants],
        "questions": int(found.question.max()) + 1,
        "candidates": len(sure),
        "relevant": int(found.relevant.sum()),
        "held_out": figures(found, sure),
    }


def named(constants: Floats) -> dict[str, float]:
    return dict(zip(("bias", "similarity", "coverage"), constants.tolist(), strict=True))


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--folds", default=5, show_default=True, type=click.IntRange(2))
def main(file: Path, folds: int) -> None:
    """Print the constants that fit FILE best, and what they are worth on unseen questions."""
    click.echo(json.dumps(cross_validate(read(file), folds), indent=1))


if __name__ == "__main__":
    main()
