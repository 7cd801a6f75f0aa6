"""The classifier of memories by their type, from the words of context and action."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from engram.training.features import LEAST_ROWS, classified_text, digest, tokens
from engram.training.manifest import MAX_WORDS, Held, ModeClassifier, file_name
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

    from engram.training.onnx_models import Artifact
    from engram.training.rows import Row

NAME: Final = "mode_classifier"
FAILURE: Final = "classifier_training_failed"
SYNTHETIC: Final = "__synthetic__"
"""The type of a row without words that stands in where all rows are of one type."""

BETTER_BY: Final = 0.05
"""How much more often than the most frequent type the classifier must be right, to pass."""

_ITERATIONS: Final = 200
_LEAST_TEXTS: Final = 2
"""In how many memories a word must be to be known: one in a single memory may be a name."""


def train_classifier(rows: Sequence[Row], folder: Path, seed: int) -> Artifact | None:
    """Train the classifier and write it to a folder.

    With `LEAST_JUDGED` rows or more a fifth is held out, and the model passes if it is right about
    that more often, by `BETTER_BY`, than whoever always says the most frequent type. The model
    that is written is the one that was judged.

    Args:
        rows: The memories.
        folder: Where the file goes.
        seed: Chooses what is held out.

    Returns:
        The file; None: there are fewer than `LEAST_ROWS` rows.

    Raises:
        TrainingFailed: There are no words, or the file cannot be written.
    """
    if len(rows) < LEAST_ROWS:
        return None
    texts = np.array([classified_text(row.context, row.action) for row in rows], dtype=object)
    labels = np.array([row.memory_type for row in rows], dtype=object)
    held = np.zeros(len(rows), np.bool_)
    if len(rows) >= LEAST_JUDGED:
        order = np.random.default_rng(seed).permutation(len(rows))
        held[order[: int(HELD_OUT * len(rows))]] = True
    words, order, fitted = _learned(texts[~held], labels[~held], seed)
    vocabulary = tuple(digest(word) for word in words.get_feature_names_out()[order])
    made = converted(fitted, NAME, len(vocabulary), "string")
    quality = Held(0, "accuracy")
    if held.any():
        said, _ = made.run(words.transform(texts[held])[:, order].toarray().astype(np.float32))
        quality = _quality(said, labels[held], labels[~held])
    model = ModeClassifier(
        file=file_name(NAME, made.sha256),
        sha256=made.sha256,
        size_bytes=len(made.content),
        opset=made.opset,
        inputs=made.inputs,
        outputs=made.outputs,
        rows=int(np.count_nonzero(~held)),
        held_out=quality,
        passed=quality.passed,
        vocabulary=vocabulary,
        idf=tuple(map(float, words.idf_[order])),
        labels=tuple(map(str, fitted.classes_)),
    )
    return write_model(folder, model, made.content, FAILURE)


def _learned(texts: Any, labels: Any, seed: int) -> tuple[Any, Any, Any]:
    """Return what turns texts into rows, the order of its columns, and the classifier of rows.

    The order is that of the digests: that of the words would tell something of them.
    """
    words = TfidfVectorizer(max_features=MAX_WORDS, min_df=_LEAST_TEXTS, analyzer=tokens)
    try:
        matrix = words.fit_transform(texts)
    except ValueError as error:  # what it raises where there is no such word
        message = f"{FAILURE}: no word is in {_LEAST_TEXTS} memories"
        raise TrainingFailed(message) from error
    order = np.argsort([digest(word) for word in words.get_feature_names_out()])
    matrix = matrix[:, order]
    if len(set(labels)) == 1:
        # An empty text has no word: a row of zeros.
        matrix = words.transform([*texts, ""])[:, order]
        labels = np.append(labels, SYNTHETIC)
    model = LogisticRegression(max_iter=_ITERATIONS, random_state=seed)
    with warnings.catch_warnings():
        # What it has learned by then is judged as it is.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return words, order, model.fit(matrix, labels)


def _quality(said: Any, labels: Any, learned: Any) -> Held:
    kinds, counts = np.unique(learned.astype(str), return_counts=True)
    frequent = kinds[np.argmax(counts)]
    needed = float((labels == frequent).mean()) + BETTER_BY
    accuracy = float((said == labels).mean())
    return Held(len(labels), "accuracy", accuracy, needed)
