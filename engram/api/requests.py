"""Requests: what a line asks for, and why it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from engram.api.frames import decode
from engram.api.operations import CATALOGUE

if TYPE_CHECKING:
    from engram.api.operations import Arguments

__all__ = [
    "OPERATION_FAILED",
    "REFUSED_VALUE",
    "TOO_LARGE",
    "Failure",
    "Identifier",
    "RequestError",
    "read_call",
    "read_identifier",
    "read_object",
]

Code = Literal[
    "invalid_json",
    "invalid_request",
    "invalid_params",
    "request_too_large",
    "unknown_operation",
    "operation_failed",
]
Identifier = str | int | None
"""What names a request; its answer has the same."""

_MAX_ID = 200
_MEMBERS = frozenset({"id", "operation", "params"})


class Failure(NamedTuple):
    """What a client is told when there is no result: a sentence that never quotes anything."""

    code: Code
    message: str


_NOT_UTF8: Final = Failure("invalid_json", "The line is not UTF-8.")
_NOT_JSON: Final = Failure(
    "invalid_json",
    "The line is not one JSON value with finite numbers, distinct names and bounded nesting.",
)
_BAD_ID: Final = Failure(
    "invalid_request", "id must be null, an integer, or a string of at most 200 characters."
)
_BAD_SHAPE: Final = Failure(
    "invalid_request",
    "A request is an object with id, operation (a string) and, if wanted, params (an object).",
)
_BAD_ARGUMENTS: Final = Failure(
    "invalid_params", "The arguments do not fit the operation's inputSchema; see operations."
)
REFUSED_VALUE: Final = Failure(
    "invalid_params", "An argument's value is refused, or what it names is not in that state."
)
TOO_LARGE: Final = Failure(
    "request_too_large", "The line is longer than max_request_bytes; see operations."
)
_UNKNOWN: Final = Failure(
    "unknown_operation", "There is no operation of that name; operations lists them all."
)
OPERATION_FAILED: Final = Failure(
    "operation_failed", "The operation could not be done; the store or a model is not usable."
)


class RequestError(Exception):
    """A line is no request that can be carried out.

    Args:
        failure: What the client is told.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


def read_object(line: bytes) -> dict[str, Any] | None:
    """Return the object on a line; None when there is nothing but space on it.

    Raises:
        RequestError: There is something else.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise RequestError(_NOT_UTF8) from None
    if not text.strip():
        return None
    try:
        document = decode(text)
    except ValueError:
        raise RequestError(_NOT_JSON) from None
    if not isinstance(document, dict):
        raise RequestError(_BAD_SHAPE)
    return document


def read_identifier(document: dict[str, Any]) -> Identifier:
    """Return the id of a request, None where there is none.

    Raises:
        RequestError: It is nothing that an id may be.
    """
    identifier = document.get("id")
    if isinstance(identifier, str):
        fits = len(identifier) <= _MAX_ID
    else:
        fits = identifier is None or type(identifier) is int
    if not fits:
        raise RequestError(_BAD_ID)
    return identifier


def read_call(document: dict[str, Any]) -> tuple[str, Arguments]:
    """Return the operation that a request names, and its arguments, checked against their types.

    Raises:
        RequestError: It is no request, or there is no such operation with such arguments.
    """
    operation, arguments = document.get("operation"), document.get("params", {})
    if (
        "id" not in document
        or not document.keys() <= _MEMBERS
        or not isinstance(operation, str)
        or not isinstance(arguments, dict)
    ):
        raise RequestError(_BAD_SHAPE)
    if operation not in CATALOGUE:
        raise RequestError(_UNKNOWN)
    try:
        return operation, msgspec.convert(arguments, CATALOGUE[operation].arguments)
    # A lone surrogate where none may be has msgspec fail while it says so.
    except (msgspec.ValidationError, UnicodeEncodeError):
        raise RequestError(_BAD_ARGUMENTS) from None
