"""The models of a run: each is trained by itself, then the manifest names those that were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engram.training.classifier import train_classifier
from engram.training.failures import reason
from engram.training.messages import Artifact, Message, Progress
from engram.training.onnx_models import (
    TrainingFailed,
    alone_in,
    copy_to_promised_names,
    remove_leftovers,
    write_manifest,
)
from engram.training.ranker import train_ranker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from engram.training.onnx_models import Artifact as ModelFile
    from engram.training.rows import Row

PERCENT: Final = 70.0
_TRAINERS: Final = {
    "classifier_training": train_classifier,
    "ranker_training": train_ranker,
}


def train_models(rows: Sequence[Row], folder: Path, seed: int) -> list[Message]:
    """Train what can be trained; return the files, and what failed.

    A run that is killed leaves the models that were in use, or the new ones, never a part of both.

    Args:
        rows: The memories.
        folder: Where the files go, absolute. Without a single new one those in it are left.
        seed: What chance begins with.
    """
    said: list[Message] = []
    made: list[ModelFile] = []
    with alone_in(folder):
        for name, train in _TRAINERS.items():
            try:
                artifact = train(rows, folder, seed)
            except TrainingFailed as error:
                said.append(Progress(str(error), PERCENT))
            except Exception as error:  # noqa: BLE001 - the other model has nothing to do with it
                said.append(Progress(f"{name}_failed: {reason(error)}", PERCENT))
            else:
                if artifact is not None:
                    made.append(artifact)
        if made:
            said += _put_to_use(folder, made)
    return said


def _put_to_use(folder: Path, made: Sequence[ModelFile]) -> Iterator[Message]:
    """Have a folder's models be those of this run; yield where they are, or what failed."""
    try:
        write_manifest(folder, made)
        copy_to_promised_names(made)
    except TrainingFailed as error:
        yield Progress(str(error), PERCENT)
        return
    remove_leftovers(folder, made)
    for one in made:
        yield Artifact(str(one.promised), one.size_bytes)
