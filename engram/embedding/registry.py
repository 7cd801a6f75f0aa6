"""The models engram knows by name, read from `registry.toml` beside this module."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

import msgspec

__all__ = [
    "PACKAGED",
    "PREFERRED",
    "Calibration",
    "Kind",
    "Model",
    "ModelFile",
    "Source",
    "known",
    "registered",
    "short",
]

Kind = Literal["embedding", "cross_encoder"]
"""What a model does: make vectors of texts, or score a query and a text together."""

PREFERRED = "BAAI/bge-small-en-v1.5"
"""What a new store uses if it is on this machine."""
PACKAGED = "all-MiniLM-L6-v2-int8"
"""What a new store uses otherwise; it is always there."""


class ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a model: its path inside the source, and its sha256 if that is known."""

    path: str
    sha256: str = ""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A repository on the model hub, at one revision: a commit, or `main` where none is known."""

    repo: str
    revision: str


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How late interaction with a model's token vectors becomes a score in 0..1.

    The logistic function of `slope * (standing - centre)`; `standing` is 0 for a text that is as
    near to the query as any, and 1 for one that repeats it.
    """

    slope: float
    centre: float


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything about one exact model but where its files lie on this machine.

    `dim` is 0 where only the ONNX file itself can tell, and for a cross-encoder, which makes no
    vectors; nor does it pool. `max_tokens` is what the model can read, special tokens included;
    `chunk_tokens` is what it is given at a time, where it searches better with less.
    `late_interaction` was measured where it is given.
    """

    name: str
    max_tokens: int
    onnx: ModelFile
    tokenizer: ModelFile
    kind: Kind = "embedding"
    dim: int = 0
    pooling: Literal["cls", "mean"] = "mean"
    chunk_tokens: int = 0
    licence: str = ""
    query_prefix: str = ""
    source: Source | None = None
    mirrors: tuple[str, ...] = ()
    original: str = ""
    distribution: str = ""
    late_interaction: Calibration | None = None

    @property
    def window(self) -> int:
        """Tokens of a chunk, special tokens included."""
        return self.chunk_tokens or self.max_tokens


class _Registry(msgspec.Struct, forbid_unknown_fields=True):
    models: tuple[Model, ...]


@cache
def known() -> tuple[Model, ...]:
    """Return every model of the registry, in its order."""
    text = resources.files("engram.embedding").joinpath("registry.toml").read_bytes()
    return msgspec.toml.decode(text, type=_Registry).models


def short(name: str) -> str:
    """Return a model's name without its organisation: `bge-small-en-v1.5`."""
    return name.rpartition("/")[2]


def registered(name: str) -> Model | None:
    """Return the model with this full name, or with this short name if only one has it.

    Case does not matter, as on the hub.
    """
    wanted = name.casefold()
    full = [model for model in known() if model.name.casefold() == wanted]
    found = full or [model for model in known() if short(model.name).casefold() == wanted]
    return found[0] if len(found) == 1 else None
