"""The store files that commands are given, checked before the engine opens or makes them."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli.failures import MissingFileError
from engram.errors import CannotOpen, NotAStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram import Engram
    from engram.experience import ExperienceMemory
    from engram.llm import LLMAdapter

__all__ = ["MEMORY", "open_existing", "open_experiences", "open_or_make", "size_of"]

MEMORY = ":memory:"


def open_existing(
    path: str,
    *,
    agent_id: str | None = None,
    model: str | None = None,
    key: str | None = None,
    llm: LLMAdapter | None = None,
) -> Engram:
    """Open a store that must be there; ":memory:" always is.

    Raises:
        MissingFileError: Nothing is at `path`, and nothing is made there.
        CannotOpen, EngramError: As for `open_or_make`.
    """
    _must_exist(path)
    return open_or_make(path, agent_id=agent_id, model=model, key=key, llm=llm)


def open_experiences(
    path: str,
    *,
    agent_id: str | None = None,
    key: str | None = None,
    llm: LLMAdapter | None = None,
) -> ExperienceMemory:
    """Open the experiences of a store that must be there; arguments are those of `open_existing`.

    Raises:
        MissingFileError, CannotOpen, EngramError: As for `open_existing`.
    """
    _must_exist(path)
    with _opening(path):
        from engram.experience import ExperienceMemory  # noqa: PLC0415

        return ExperienceMemory(path, agent_id=agent_id, key=key, llm=llm)


def _must_exist(path: str) -> None:
    if path != MEMORY and not Path(path).exists():
        message = f"file not found: {path}"
        raise MissingFileError(message)


def open_or_make(
    path: str,
    *,
    agent_id: str | None = None,
    model: str | None = None,
    key: str | None = None,
    llm: LLMAdapter | None = None,
) -> Engram:
    """Open a store, a new one when nothing is at `path`.

    Raises:
        CannotOpen: `path` is a folder.
        EngramError: As `Engram` does.
    """
    # The engine, NumPy and SQLite load here and not at the start of every `engram --help`.
    with _opening(path):
        from engram import Engram  # noqa: PLC0415

        return Engram(path, agent_id=agent_id, embedder_model=model, key=key, llm=llm)


@contextmanager
def _opening(path: str) -> Iterator[None]:
    """Refuse a folder, and name the option by which an encrypted store is opened."""
    if path != MEMORY and Path(path).is_dir():
        message = f"not a file: {path or '(an empty path)'}"
        raise CannotOpen(message, "give the path of a store file")
    try:
        yield
    except NotAStore as error:
        error.hint = error.hint.replace("as key=", "by --key-file")
        raise


def size_of(path: str) -> int:
    """Return the bytes of the store's main file, 0 for one in memory."""
    return 0 if path == MEMORY else Path(path).stat().st_size
