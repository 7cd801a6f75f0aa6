"""Trained models as ONNX files: written whole or not at all, the same bytes for the same model.

A run writes its models under names of their own, beside those of the run before, then the manifest,
which is what makes them count, and then what is left of earlier runs goes. Wherever it is killed,
all that the manifest lists is there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType

from engram.embedding.session import open_session
from engram.errors import EngramError
from engram.storage.files import replacing
from engram.training.manifest import MANIFEST, Manifest, Model, Tensor, encode, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

LEAST_JUDGED: Final = 50
"""With fewer rows nothing is held out, and no model passes."""

HELD_OUT: Final = 0.2
"""The share of rows that a model is judged by and does not learn from."""

# What onnxruntime 1.17, the oldest one supported, knows.
_OPSETS: Final = {"": 17, "ai.onnx.ml": 1}

_KEPT: Final = re.compile(r"(mode_classifier|ranking_model)-[0-9a-f]{16}\.onnx")
# What `engram.storage.files.replacing` makes beside the file that it writes.
_PARTIAL: Final = re.compile(
    r"\.((mode_classifier|ranking_model)(-[0-9a-f]{16})?\.onnx|manifest\.json)\.\w{8}"
)


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

    @property
    def promised(self) -> Path:
        """Where a copy is, once all is done, under the name that a model has in every run."""
        return self.path.with_name(f"{name_of(self.model)}.onnx")


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


def copy_to_promised_names(artifacts: Sequence[Artifact]) -> None:
    """Copy the models of a run to the names that models have in every run.

    Raises:
        TrainingFailed: A copy cannot be written.
    """
    for artifact in artifacts:
        try:
            content = artifact.path.read_bytes()
        except OSError as error:
            message = "copies_failed: a model cannot be read"
            raise TrainingFailed(message) from error
        _write(artifact.promised, content, "copies_failed")


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other run writes to a folder, and hold it; it is made where it is missing.

    Where it cannot be made or held this does nothing: writing to it says why.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def remove_leftovers(folder: Path, artifacts: Sequence[Artifact]) -> None:
    """Remove the models of earlier runs, and what runs that were killed have left in a folder.

    What cannot be removed stays until the next run. Nothing but what a trainer writes is removed.
    """
    listed = {artifact.path.name for artifact in artifacts}
    with suppress(OSError):
        for path in folder.iterdir():
            if _PARTIAL.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)
            elif _KEPT.fullmatch(path.name) and path.name not in listed:
                with suppress(OSError):
                    path.unlink()


def _write(path: Path, content: bytes, failure: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(content)
    except (OSError, EngramError) as error:
        message = f"{failure}: the folder of models cannot be written to"
        raise TrainingFailed(message) from error
