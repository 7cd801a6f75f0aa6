"""The models of a run: each is trained by itself, then the manifest names those that were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engram.training.classifier import train_classifier
from engram.training.failures import reason
from engram.training.messages import Artifact, Message, Progress
from engram.training.onnx_models import TrainingFailed, write_manifest
from engram.training.ranker import train_ranker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engram.training.rows import Row

PERCENT: Final = 70.0
_TRAINERS: Final = {
    "classifier_training": train_classifier,
    "ranker_training": train_ranker,
}


def train_models(rows: Sequence[Row], folder: Path, seed: int) -> list[Message]:
    """Train what can be trained; return the files, and what failed.

    Args:
        rows: The memories.
        folder: Where the files go, absolute. Without a single new one it is left as it is.
        seed: What chance begins with.
    """
    said: list[Message] = []
    made = []
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
                said.append(Artifact(str(artifact.path), artifact.size_bytes))
    if made:
        try:
            write_manifest(folder, made)
        except TrainingFailed as error:
            said.append(Progress(str(error), PERCENT))
    return said
