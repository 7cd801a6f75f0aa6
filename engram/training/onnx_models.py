"""Trained models as ONNX files: written whole or not at all, the same bytes for the same model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType

from engram.embedding.session import open_session
from engram.errors import EngramError
from engram.storage.files import replacing
from engram.training.manifest import MANIFEST, Manifest, Model, Tensor, encode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

LEAST_JUDGED: Final = 50
"""With fewer rows nothing is held out, and no model passes."""

HELD_OUT: Final = 0.2
"""The share of rows that a model is judged by and does not learn from."""

# What onnxruntime 1.17, the oldest one supported, knows.
_OPSETS: Final = {"": 17, "ai.onnx.ml": 1}


class TrainingFailed(Exception):  # noqa: N818 - what became of the stage
    """A model could not be trained; the message is what a stage that failed is called."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A model as ONNX.

    Attributes:
        content: The bytes of its file.
        opset: The version of each operator set; "" is ONNX's own.
        inputs: What it takes.
        outputs: What it returns.
    """

    content: bytes
    opset: dict[str, int]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @property
    def sha256(self) -> str:
        """The checksum of its file."""
        return hashlib.sha256(self.content).hexdigest()

    def run(self, rows: NDArray[np.float32]) -> tuple[NDArray[Any], list[dict[Any, float]]]:
        """Return the label of each row, and the probability of each label, as a user gets them."""
        labels, probabilities = open_session(self.content, 1).run(None, {"float_input": rows})
        return labels, probabilities


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file of a trained model.

    Attributes:
        path: Where it is, absolute.
        size_bytes: How large it is.
        model: What the manifest says of it.
    """

    path: Path
    size_bytes: int
    model: Model


def converted(model: Any, name: str, columns: int, label: str) -> Converted:
    """Return a fitted scikit-learn classifier as ONNX, checked.

    Args:
        model: The classifier.
        name: The name of its graph.
        columns: How many features it takes.
        label: The type of its labels: "string" or "int64".
    """
    given = [("float_input", FloatTensorType([None, columns]))]
    # What single precision cannot hold is judged as it then is.
    with np.errstate(over="ignore"):
        made = convert_sklearn(model, name, given, target_opset=_OPSETS)
    # The converter lists them in the order of a set.
    opsets = sorted(made.opset_import, key=lambda one: one.domain)
    del made.opset_import[:]
    made.opset_import.extend(opsets)
    onnx.checker.check_model(made, full_check=True)
    return Converted(
        made.SerializeToString(deterministic=True),
        {one.domain: one.version for one in opsets},
        (Tensor("float_input", "tensor(float)", columns),),
        (
            Tensor("output_label", f"tensor({label})"),
            Tensor("output_probability", f"seq(map({label},tensor(float)))"),
        ),
    )


def write_model(folder: Path, model: Model, content: bytes, failure: str) -> Artifact:
    """Write a model's file into a folder, made where it is missing.

    Raises:
        TrainingFailed: It cannot be written; `failure` and why.
    """
    path = folder.absolute() / model.file
    _write(path, content, failure)
    return Artifact(path, len(content), model)


def write_manifest(folder: Path, artifacts: Sequence[Artifact]) -> Path:
    """Say in a folder which models of a run are in it; models of earlier runs count no longer.

    Returns:
        The manifest's path.

    Raises:
        TrainingFailed: It cannot be written.
    """
    path = folder.absolute() / MANIFEST
    manifest = Manifest(1, tuple(artifact.model for artifact in artifacts))
    _write(path, encode(manifest), "manifest_failed")
    return path


def _write(path: Path, content: bytes, failure: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(content)
    except (OSError, EngramError) as error:
        message = f"{failure}: the folder of models cannot be written to"
        raise TrainingFailed(message) from error
