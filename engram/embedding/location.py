"""Where models lie on this machine. Nothing here opens a socket, or reads more than folders."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

from engram.embedding.registry import Model, known, short
from engram.paths import at_home

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "MODEL_DIR_VARIABLE",
    "LocalModel",
    "cache_folder",
    "in_folder",
    "locate",
    "model_cache",
    "named_folder",
]

MODEL_DIR_VARIABLE = "ENGRAM_MODEL_DIR"

_TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class LocalModel:
    """A model and its two files here.

    `source` says which of the places it was found in: `path`, `ENGRAM_MODEL_DIR`, `cache`,
    `huggingface`, `fastembed` or `package`.
    """

    model: Model
    onnx: Path
    tokenizer: Path
    source: str


def locate(model: Model) -> LocalModel | None:
    """Find the files of a registered model.

    Looks in `ENGRAM_MODEL_DIR`, engram's model cache, the Hugging Face and fastembed caches, and
    the installed packages, in this order. The first place that has both files is taken; whether
    they are the right ones is checked when they are loaded.
    """
    for source, folder in _folders(model):
        found = in_folder(model, folder, source)
        if found is not None:
            return found
    return _packaged(model)


def in_folder(model: Model, folder: Path, source: str) -> LocalModel | None:
    """Return the model if `folder` holds its ONNX file, as published or flat, and its tokenizer."""
    tokenizer = folder / _TOKENIZER
    published = Path(model.onnx.path)
    for onnx in (folder / published, folder / published.name):
        if onnx.is_file() and tokenizer.is_file():
            return LocalModel(model, onnx, tokenizer, source)
    return None


def named_folder(name: str) -> tuple[str, Path] | None:
    """Return where a model that is in no registry lies by its folder's name, and that place's name.

    Only the two places that are engram's own are looked at.
    """
    relative = Path(name)
    if relative.is_absolute() or not relative.parts or ".." in relative.parts:
        return None
    for source, root in _own_roots():
        if (root / relative).is_dir():
            return source, root / relative
    return None


def model_cache() -> Path:
    """Return the folder that `engram models pull` fills."""
    return user_cache_path("engram", appauthor=False) / "models"


def cache_folder(model: Model) -> Path:
    """Return the folder of one model inside `model_cache()`."""
    return model_cache() / model.name.replace("/", "--")


def _folders(model: Model) -> Iterator[tuple[str, Path]]:
    for source, root in _own_roots():
        yield source, root / model.name
        yield source, root / model.name.replace("/", "--")
        if _owns_short_name(model):
            yield source, root / short(model.name)
            if root.name == short(model.name):
                yield source, root
    repos = [model.source.repo, *model.mirrors] if model.source else []
    revision = model.source.revision if model.source else ""
    for source, cache in (("huggingface", _hub_cache()), ("fastembed", _fastembed_cache())):
        for repo in repos:
            for snapshot in _snapshots(cache, repo, revision):
                yield source, snapshot


def _own_roots() -> Iterator[tuple[str, Path]]:
    chosen = os.environ.get(MODEL_DIR_VARIABLE, "")
    if chosen:
        yield MODEL_DIR_VARIABLE, Path(at_home(chosen))
    yield "cache", model_cache()


def _owns_short_name(model: Model) -> bool:
    return sum(short(other.name) == short(model.name) for other in known()) == 1


def _snapshots(cache: Path | None, repo: str, revision: str) -> list[Path]:
    """Return a repository's snapshots in a hub cache: the pinned, then `main`, then the others.

    Case of the repository's name does not matter: programs spell it differently.
    """
    wanted = f"models--{repo.replace('/', '--')}".casefold()
    found: list[Path] = []
    for folder in _children(cache):
        if folder.name.casefold() == wanted:
            first = [name for name in (revision, _content(folder / "refs" / "main")) if name]
            others = [path.name for path in _children(folder / "snapshots")]
            names = dict.fromkeys([*first, *others])
            found += [folder / "snapshots" / name for name in names]
    return found


def _children(folder: Path | None) -> list[Path]:
    try:
        return sorted(folder.iterdir()) if folder else []
    except OSError:  # not there, or not ours to read
        return []


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):  # not there, or not ours to read
        return ""


def _hub_cache() -> Path:
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if chosen := os.environ.get(variable, ""):
            return Path(at_home(chosen))
    if home := os.environ.get("HF_HOME", ""):
        return Path(at_home(home)) / "hub"
    caches = os.environ.get("XDG_CACHE_HOME", "") or "~/.cache"
    return Path(at_home(caches)) / "huggingface" / "hub"


def _fastembed_cache() -> Path | None:
    """Return fastembed's cache; nowhere if it lies in the common folder and another user made it.

    Checksums would expose a planted model, but the right one would no longer be found.
    """
    chosen = os.environ.get("FASTEMBED_CACHE_PATH", "")
    if chosen:
        return Path(at_home(chosen))
    common = Path(tempfile.gettempdir()) / "fastembed_cache"
    return common if common.is_dir() and common.stat().st_uid == os.getuid() else None


def _packaged(model: Model) -> LocalModel | None:
    if not model.distribution:
        return None
    from importlib import metadata  # noqa: PLC0415 - brings half of the e-mail package

    try:
        onnx = Path(str(metadata.distribution(model.distribution).locate_file(model.onnx.path)))
    except metadata.PackageNotFoundError:
        return None
    tokenizer = Path(str(resources.files("engram.embedding"))) / model.tokenizer.path
    if not (onnx.is_file() and tokenizer.is_file()):
        return None
    return LocalModel(model, onnx, tokenizer, "package")
