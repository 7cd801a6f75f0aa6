"""Every error engram raises on purpose, as one tree under `EngramError`.

Each error carries a stable `code` for programs, a `message` that never quotes stored text or keys,
and a `hint` that says the way out. Where the documented interface promises a built-in type
(`ValueError`, `KeyError`, `PermissionError`, the `sqlite3` errors), the class derives from it too.
"""

from __future__ import annotations

import sqlite3

__all__ = [
    "Busy",
    "CannotOpen",
    "Closed",
    "CorruptStore",
    "EngramError",
    "FactIncomplete",
    "Forked",
    "InvalidArgument",
    "InvalidSettings",
    "InvalidType",
    "LLMCallError",
    "LLMReplyError",
    "MissingExtra",
    "ModelCorrupt",
    "ModelMismatch",
    "ModelMissing",
    "NotAStore",
    "NotFound",
    "ProcessLost",
    "RequestFailed",
    "ScopeError",
    "StoreFull",
    "StoreTooNew",
    "TimedOut",
]


class EngramError(Exception):
    """The root of everything engram raises on purpose.

    Args:
        message: What is wrong, naming the argument and the type of the value, never its contents.
        hint: What to do about it; empty when the message already says so.
    """

    code: str = "engram_error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidArgument(EngramError, ValueError):
    """An argument has the right type and a value that is refused."""

    code = "invalid_argument"


class InvalidType(EngramError, TypeError):
    """An argument has the wrong type."""

    code = "invalid_type"


class InvalidSettings(EngramError, ValueError):
    """A setting breaks its rule, or the file of settings cannot be read; no value is quoted."""

    code = "invalid_settings"


class NotFound(EngramError, KeyError):
    """Nothing visible has this id; another agent's episodes and private facts are not visible."""

    code = "not_found"


class ScopeError(EngramError, PermissionError):
    """The agent may see this and not change it: another agent wrote it, or none that is known."""

    code = "scope_error"

    def __str__(self) -> str:
        return EngramError.__str__(self)


class Closed(EngramError, sqlite3.ProgrammingError):
    """The instance was closed before this call, or its file was taken away from a server."""

    code = "closed"


class Forked(EngramError, RuntimeError):
    """The instance was opened in another process; SQLite connections do not survive a fork."""

    code = "forked"


class Busy(EngramError, sqlite3.OperationalError):
    """Another connection held the write lock for longer than the busy timeout."""

    code = "busy"


class CannotOpen(EngramError, sqlite3.OperationalError):
    """The file cannot be opened or written: a missing folder, a missing permission, a bad path."""

    code = "cannot_open"


class StoreFull(EngramError, sqlite3.OperationalError):
    """The disk is full; nothing of the refused write was kept."""

    code = "store_full"


class NotAStore(EngramError, sqlite3.DatabaseError):
    """The file is no engram store, or the key is wrong: an encrypted file gives no way to tell."""

    code = "not_a_store"


class CorruptStore(EngramError, sqlite3.DatabaseError):
    """SQLite found the file damaged."""

    code = "corrupt_store"


class StoreTooNew(EngramError, sqlite3.DatabaseError):
    """A newer engram wrote this store; this one would not understand it."""

    code = "store_too_new"


class ModelMismatch(EngramError, ValueError):
    """The embedder is not the one whose vectors the store holds."""

    code = "model_mismatch"


class ModelMissing(EngramError, FileNotFoundError):
    """The embedding model is not on this machine."""

    code = "model_missing"

    def __str__(self) -> str:
        return EngramError.__str__(self)


class ModelCorrupt(EngramError, ValueError):
    """A model file does not have the checksum the registry names."""

    code = "model_corrupt"


class MissingExtra(EngramError, ImportError):
    """An optional dependency is not installed."""

    code = "missing_extra"


class LLMCallError(EngramError, RuntimeError):
    """A language model could not be asked: refused, unreachable or too slow, after all retries."""

    code = "llm_call"


class LLMReplyError(EngramError, ValueError):
    """A language model's reply is cut off, refused, blank or not in the form asked for."""

    code = "llm_reply"


class FactIncomplete(LLMReplyError, KeyError):
    """A fact that an adapter returned lacks its subject, predicate or object."""


class TrainerFailed(EngramError, RuntimeError):
    """The trainer cannot be started, or ended with a failure; nothing of it was kept."""

    code = "trainer_failed"


class TrainerReplyError(EngramError, ValueError):
    """The trainer printed something that is none of its messages; nothing of it was kept."""

    code = "trainer_reply"


class RequestFailed(EngramError):
    """The process answered that there is no result.

    Args:
        code: One of the protocol's codes, such as "invalid_params" or "operation_failed"; where
            they are numbers, as text.
        message: The process's sentence about it.

    Attributes:
        number: The code, where the protocol's are numbers.
    """

    def __init__(self, code: str | int, message: str) -> None:
        super().__init__(message)
        self.code = str(code)
        self.number = code if isinstance(code, int) else None


class ProcessLost(EngramError, ConnectionError):
    """The process cannot be started, ended before it answered, or does not speak the protocol.

    Whether it did what was asked is not known.
    """

    code = "process_lost"


class TimedOut(EngramError, TimeoutError):
    """The process took too long and was ended; whether it did what was asked is not known."""

    code = "timed_out"
