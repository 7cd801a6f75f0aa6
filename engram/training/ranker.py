"""The model of whether a memory that a search shows will be found useful."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from engram.training.features import FEATURES, LEAST_ROWS, ranking_features
from engram.training.manifest import Held, RankingModel, file_name
from engram.training.onnx_models import (
    HELD_OUT,
    LEAST_JUDGED,
    TrainingFailed,
    converted,
    write_model,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engram.training.onnx_models import Artifact, Converted
    from engram.training.rows import Row

NAME: Final = "ranking_model"
FAILURE: Final = "ranker_training_failed"

USEFUL: Final = 0.5
"""The score from which a memory that was judged counts as useful."""

LEAST_OF_EACH: Final = 5
"""How many rows of each label it takes to hold some out."""

LEAST_AUC: Final = 0.6
"""The area under the ROC curve of the rows held out that it takes to pass."""

_TREES: Final = 50
_DEPTH: Final = 3
_RATE: Final = 0.1
_MOST: Final = float(np.finfo(np.float32).max)


def train_ranker(rows: Sequence[Row], folder: Path, seed: int) -> Artifact | None:
    """Train the ranking model and write it to a folder.

    Its label is whether a memory was judged after a search had shown it, with a score of `USEFUL`
    or more. Those found of less use have the label of those never judged: being judged alone is
    nothing to be raised for.

    With `LEAST_JUDGED` rows or more, `LEAST_OF_EACH` of each label, a fifth is held out, with the
    same share of each label, and the model passes with `LEAST_AUC` there. The one written is the
    one that was judged.

    Args:
        rows: The memories; those that lack a value it learns from are left out.
        folder: Where the file goes.
        seed: Chooses what is held out, and splits among equals.

    Returns:
        The file; None: there are fewer than `LEAST_ROWS` rows.

    Raises:
        TrainingFailed: All rows have the same label, or the file cannot be written.
    """
    known = [(seen, _useful(row)) for row in rows if (seen := _seen(row)) is not None]
    if len(known) < LEAST_ROWS:
        return None
    features = np.array([seen for seen, _ in known], dtype=np.float32)
    labels = np.array([useful for _, useful in known], dtype=np.int64)
    each = np.bincount(labels, minlength=2)
    if not each.all():
        message = f"{FAILURE}: every memory has the same label, {labels[0]}"
        raise TrainingFailed(message)
    learned, held = _split(labels, each, seed)
    fitted = GradientBoostingClassifier(
        n_estimators=_TREES, max_depth=_DEPTH, learning_rate=_RATE, random_state=seed
    ).fit(features[learned], labels[learned])
    made = converted(fitted, NAME, len(FEATURES), "int64")
    quality = _quality(made, features[held], labels[held])
    model = RankingModel(
        file=file_name(NAME, made.sha256),
        sha256=made.sha256,
        size_bytes=len(made.content),
        opset=made.opset,
        inputs=made.inputs,
        outputs=made.outputs,
        rows=len(learned),
        held_out=quality,
        passed=quality.passed,
        features=FEATURES,
    )
    return write_model(folder, model, made.content, FAILURE)


def _useful(row: Row) -> bool:
    return row.judged and row.score is not None and row.score >= USEFUL


def _seen(row: Row) -> tuple[float, ...] | None:
    """Return what the model sees of a memory; None where a part of it could not be read."""
    last = row.updated if row.last_used is None else row.last_used
    if row.score is None or row.used_count is None or row.created is None or last is None:
        return None
    characters = len(row.context) + len(row.action)
    seen = ranking_features(
        row.score, row.used_count, row.created, last, characters, has_tags=bool(row.tags)
    )
    # Beyond single precision there is nothing to learn from.
    return seen if max(map(abs, seen)) < _MOST else None


def _split(labels: Any, each: Any, seed: int) -> tuple[Any, Any]:
    rows = np.arange(len(labels))
    if len(labels) < LEAST_JUDGED or each.min() < LEAST_OF_EACH:
        return rows, rows[:0]
    learned, held = train_test_split(rows, test_size=HELD_OUT, random_state=seed, stratify=labels)
    return np.sort(learned), np.sort(held)


def _quality(made: Converted, features: Any, labels: Any) -> Held:
    if not len(labels):
        return Held(0, "auc")
    _, probabilities = made.run(features)
    likely = np.array([row[1] for row in probabilities])
    # A model that cannot tell says what one without an opinion does.
    area = float(roc_auc_score(labels, np.nan_to_num(likely, nan=0.5)))
    return Held(len(labels), "auc", area, LEAST_AUC)
