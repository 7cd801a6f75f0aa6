"""Which number of the protocol an error of the engine has."""

from __future__ import annotations

from typing import Final

from engram.errors import (
    Busy,
    Closed,
    EngramError,
    InvalidArgument,
    InvalidType,
    LLMCallError,
    LLMReplyError,
    MissingExtra,
    ModelCorrupt,
    ModelMismatch,
    ModelMissing,
    NotFound,
    ScopeError,
    TimedOut,
    TrainerFailed,
    TrainerReplyError,
)
from engram.server.failures import (
    DATABASE_UNAVAILABLE,
    DISPATCH,
    EMBEDDING_UNAVAILABLE,
    LLM_UNAVAILABLE,
    MODEL_MISMATCH,
    NOT_FOUND,
    STORAGE,
    TRAINER_FAILED,
    TRAINER_OUTPUT,
    TRAINER_TIMEOUT,
    Failure,
)

_KINDS: Final[tuple[tuple[type[EngramError], int, str], ...]] = (
    (NotFound, NOT_FOUND, "not found"),
    (ModelMismatch, MODEL_MISMATCH, "embedding model mismatch"),
    (ModelMissing, EMBEDDING_UNAVAILABLE, "embedding api unavailable"),
    (ModelCorrupt, EMBEDDING_UNAVAILABLE, "embedding api unavailable"),
    (MissingExtra, EMBEDDING_UNAVAILABLE, "embedding api unavailable"),
    (LLMCallError, LLM_UNAVAILABLE, "llm api unavailable"),
    (LLMReplyError, LLM_UNAVAILABLE, "llm api unavailable"),
    (InvalidArgument, DISPATCH, "dispatch error"),
    (InvalidType, DISPATCH, "dispatch error"),
    (ScopeError, DISPATCH, "dispatch error"),
    (TrainerFailed, TRAINER_FAILED, "trainer failed"),
    (TimedOut, TRAINER_TIMEOUT, "trainer timeout"),
    (TrainerReplyError, TRAINER_OUTPUT, "trainer malformed output"),
    (Busy, DATABASE_UNAVAILABLE, "database unavailable"),
    (Closed, DATABASE_UNAVAILABLE, "database unavailable"),
    (EngramError, STORAGE, "sqlite error"),
)


def failure_of(error: EngramError) -> Failure:
    """Return what a client is told of an error: its sentence, which quotes nothing."""
    code, kind = next((code, kind) for known, code, kind in _KINDS if isinstance(error, known))
    return Failure(code, f"{kind}: {error.message}{f' ({error.hint})' if error.hint else ''}")
