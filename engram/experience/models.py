"""What the trainer's models say while a server searches; without ones that passed, nothing."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engram.embedding.session import open_session
from engram.errors import EngramError
from engram.experience.regular_file import file_content
from engram.training.features import FEATURES, digest, tokens
from engram.training.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    MAX_MODEL_BYTES,
    ModeClassifier,
    decode,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.training.manifest import Model

MODES: Final = {
    "bugfix": "debug",
    "decision": "architecture",
    "pattern": "coding",
    "antipattern": "review",
    "context": "routine",
}
"""The mode of a task that is like memories of a type."""

LEAST_PROBABILITY: Final = 0.5
"""Below or at this the classifier says nothing."""

INFLUENCE: Final = 0.2
"""How much the ranking model may change a score: by half of this share, up or down."""

LEAST_TO_MOST: Final = (1 - INFLUENCE / 2) / (1 + INFLUENCE / 2)
"""What it multiplies a score by at least, as a share of what it multiplies another by at most."""

_LOG = logging.getLogger("engram.experience")


class TrainedModels:
    """The models of a folder, as its manifest lists them; a newer one is noticed when asked.

    A model is used if it passed, and its file is the one that the manifest speaks of. What is
    wrong with a folder is logged and never raised. Nothing is read before it is asked. One
    instance may be used from many threads.

    Args:
        folder: Where a trainer wrote its models; it need not be there yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: tuple[object, _Loaded] = (None, _Loaded())

    def mode_of(self, text: str) -> str | None:
        """Return the mode of a task by what memories its text is like; None if unsure."""
        classifier = self._current().classifier
        return None if classifier is None else classifier.mode_of(text)

    @property
    def ranks(self) -> bool:
        """Whether there is a ranking model to ask."""
        return self._current().ranker is not None

    def weights(self, features: NDArray[np.float32]) -> NDArray[np.float64] | None:
        """Return how likely memories are to be of use, each 0 to 1.

        Args:
            features: float32[n, 5], see `engram.training.features.FEATURES`.

        Returns:
            float64[n]; None: there is no model to ask, or it fails.
        """
        ranker = self._current().ranker
        return None if ranker is None else ranker.weights(features)

    def _current(self) -> _Loaded:
        # Threads that come at once read the folder twice; what they find is the same.
        found = self._state()
        state, loaded = self._loaded
        if state != found:
            loaded = _Loaded() if found is None else _read(self._folder)
            self._loaded = (found, loaded)
        return loaded

    def _state(self) -> object:
        """Return what changes with the manifest; None where there is none."""
        try:
            status = (self._folder / MANIFEST).stat()
        except (OSError, ValueError):
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size


class _Loaded:
    """The models that may be used."""

    def __init__(
        self, classifier: _Classifier | None = None, ranker: _Ranker | None = None
    ) -> None:
        self.classifier = classifier
        self.ranker = ranker


def factors(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the scores of memories are multiplied by: 0.9 to 1.1."""
    changed: NDArray[np.float64] = 1.0 + INFLUENCE * (probabilities - 0.5)
    return changed


class _Classifier:
    def __init__(self, model: ModeClassifier, session: Any) -> None:
        self._session = session
        self._columns = {word: column for column, word in enumerate(model.vocabulary)}
        self._idf = np.array(model.idf)

    def mode_of(self, text: str) -> str | None:
        row = self.transform(text).astype(np.float32)[np.newaxis]
        answer = _run(self._session, row)
        if answer is None:
            return None
        likely, probability = max(answer[0].items(), key=lambda item: (item[1], item[0]))
        return MODES.get(likely) if probability > LEAST_PROBABILITY else None

    def transform(self, text: str) -> NDArray[np.float64]:
        """Return the weight of each word, float64[words], as scikit-learn's TfidfVectorizer."""
        row = np.zeros(len(self._idf))
        for word, count in Counter(tokens(text)).items():
            column = self._columns.get(digest(word))
            if column is not None:
                row[column] = count
        row *= self._idf
        length = np.sqrt(row @ row)
        return row / length if length else row


class _Ranker:
    def __init__(self, session: Any) -> None:
        self._session = session

    def weights(self, features: NDArray[np.float32]) -> NDArray[np.float64] | None:
        answer = _run(self._session, features)
        if answer is None:
            return None
        found = np.array([row.get(1, 0.5) for row in answer], np.float64)
        return np.clip(np.nan_to_num(found, nan=0.5), 0.0, 1.0)


def _run(session: Any, rows: NDArray[np.float32]) -> list[dict[Any, float]] | None:
    """Return the probability of each label for each row; None if that fails."""
    try:
        [answer] = session.run(["output_probability"], {"float_input": rows})
    except Exception as error:  # noqa: BLE001 - each failure has a class of its own, under Exception
        _LOG.warning("a trained model failed: %s", type(error).__name__)
        return None
    return list(answer) if len(answer) == len(rows) else None


def _read(folder: Path) -> _Loaded:
    """Return the models of a folder that may be used."""
    try:
        manifest = decode(file_content(folder / MANIFEST, MAX_MANIFEST_BYTES))
    except (OSError, ValueError) as error:
        _LOG.warning("the manifest of trained models is ignored: %s", type(error).__name__)
        return _Loaded()
    loaded = _Loaded()
    for model in manifest.models:
        if not model.passed:
            continue
        try:
            session = _session(folder, model)
        except (OSError, ValueError, EngramError) as error:
            _LOG.warning("the trained model %s is ignored: %s", model.file, type(error).__name__)
            continue
        if isinstance(model, ModeClassifier):
            loaded.classifier = _Classifier(model, session)
        else:
            loaded.ranker = _Ranker(session)
    return loaded


def _session(folder: Path, model: Model) -> Any:
    """Return a session with a model's file.

    Raises:
        OSError: The file cannot be read.
        ValueError, ModelCorrupt: It is not what the manifest says.
    """
    content = file_content(folder / model.file, MAX_MODEL_BYTES)
    if hashlib.sha256(content).hexdigest() != model.sha256:
        message = "the file has another checksum"
        raise ValueError(message)
    # What was checked is what is opened: the file may be replaced meanwhile.
    session = open_session(content, 1)
    columns = len(model.vocabulary) if isinstance(model, ModeClassifier) else len(FEATURES)
    label = "string" if isinstance(model, ModeClassifier) else "int64"
    inputs = [(one.name, one.type, one.shape[1:]) for one in session.get_inputs()]
    outputs = {one.name: one.type for one in session.get_outputs()}
    if (
        inputs != [("float_input", "tensor(float)", [columns])]
        or outputs.get("output_probability") != f"seq(map({label},tensor(float)))"
    ):
        message = "the model takes or returns something else"
        raise ValueError(message)
    return session
