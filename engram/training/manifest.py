"""What a folder of trained models says about them: how to ask each, and whether it is any good."""

from __future__ import annotations

import math
from typing import Annotated, Final

import msgspec

from engram.training.features import FEATURES

MANIFEST: Final = "manifest.json"
"""The name of the file."""

MAX_MANIFEST_BYTES: Final = 1 << 20
MAX_MODEL_BYTES: Final = 16 << 20
MAX_WORDS: Final = 500

_Version = Annotated[int, msgspec.Meta(ge=1, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the manifest; a member that it does not know makes it invalid."""


class Tensor(_Strict, frozen=True):
    """An input or output of a model.

    Attributes:
        name: Its name.
        type: What onnxruntime calls its type.
        columns: How many values each row has; None: one, or a map.
    """

    name: str
    type: str
    columns: _Count | None = None


class Held(_Strict, frozen=True):
    """How a model did on rows that it had not learned from.

    Attributes:
        rows: How many there were; 0: too few to hold any back.
        measure: "accuracy" or "auc"; what `value` is.
        value: 0 to 1; None: not measured.
        needed: What the value must reach.
    """

    rows: _Count
    measure: str
    value: float | None = None
    needed: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the model did well enough to be used."""
        return self.value is not None and self.needed is not None and self.value >= self.needed


class Entry(_Strict, frozen=True, kw_only=True):
    """A model: its file, and how to ask it.

    Attributes:
        file: The name of its file, beside the manifest; see `file_name`.
        sha256: Of the file.
        size_bytes: Likewise.
        opset: The version of each operator set; "" is ONNX's own.
        inputs: What it takes.
        outputs: What it returns.
        rows: How many it learned from.
        held_out: How it did on others.
        passed: Whether that is enough to be used.
    """

    file: str
    sha256: _Sha256
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=MAX_MODEL_BYTES)]
    opset: dict[str, int]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    rows: _Count
    held_out: Held
    passed: bool


class ModeClassifier(Entry, frozen=True, kw_only=True, tag_field="name", tag="mode_classifier"):
    """The classifier of memories by type.

    Attributes:
        vocabulary: The digest of each column's word, see `engram.training.features.digest`.
        idf: What the count of each word is multiplied by, before rows are scaled to length one.
        labels: The types that it tells apart.
    """

    vocabulary: Annotated[tuple[_Digest, ...], msgspec.Meta(min_length=1, max_length=MAX_WORDS)]
    idf: Annotated[tuple[float, ...], msgspec.Meta(max_length=MAX_WORDS)]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.idf) != len(self.vocabulary) or not all(map(math.isfinite, self.idf)):
            message = "idf must have a finite number for each word"
            raise ValueError(message)


class RankingModel(Entry, frozen=True, kw_only=True, tag_field="name", tag="ranking_model"):
    """The model of whether a memory that is shown will be found useful.

    Attributes:
        features: The name of each column.
    """

    features: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.features != FEATURES:
            message = "features are not those known here"
            raise ValueError(message)


Model = ModeClassifier | RankingModel
"""What a manifest lists."""


class Manifest(_Strict, frozen=True):
    """The models of a folder; one of each at most."""

    version: _Version
    models: Annotated[tuple[Model, ...], msgspec.Meta(max_length=2)]

    def __post_init__(self) -> None:
        if len({type(model) for model in self.models}) != len(self.models):
            message = "a model is listed twice"
            raise ValueError(message)


def name_of(model: Model) -> str:
    """Return the name of a model."""
    return str(type(model).__struct_config__.tag)


def file_name(name: str, sha256: str) -> str:
    """Return the name of a model's file: another one for other bytes, so none is ever replaced."""
    return f"{name}-{sha256[:16]}.onnx"


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest: the same for the same one."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=1)


def decode(content: bytes) -> Manifest:
    """Return the manifest that bytes are.

    Raises:
        ValueError: They are none, or one that this version does not know.
    """
    if len(content) > MAX_MANIFEST_BYTES:
        message = "the manifest is too large"
        raise ValueError(message)
    manifest = msgspec.json.decode(content, type=Manifest)
    for model in manifest.models:
        # No name leads out of the folder.
        if model.file != file_name(name_of(model), model.sha256):
            message = "a model's file has another name than the model and its checksum"
            raise ValueError(message)
        if model.passed and not model.held_out.passed:
            message = "a model is said to have passed, and did not"
            raise ValueError(message)
    return manifest
