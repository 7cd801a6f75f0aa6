"""Lines as messages: what is none is refused here, for the SDK passes over it in silence."""

from __future__ import annotations

import json
import math
from typing import Any, Final, Literal, NoReturn

import msgspec
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter
from msgspec import UNSET, Struct, UnsetType

__all__ = ["LONGEST", "RefusedError", "answered_id", "request_id"]

LONGEST: Final = 64 << 20
"""Bytes that a line may have."""

_NO_JSON: Final = "Parse error: the line is no JSON in UTF-8, or nested too deeply"
_NO_MESSAGE: Final = (
    "Invalid Request: the line is no message of JSON-RPC 2.0, or nested too deeply; its id has to"
    " be a string or an integer, and messages come one by one"
)
_NO_TEXT: Final = "Invalid params: a text has half of a surrogate pair, so it is no Unicode text"


class RefusedError(Exception):
    """A line is no message.

    Args:
        answer: The line to answer with; None where nobody waits for one.
    """

    def __init__(self, answer: bytes | None) -> None:
        super().__init__()
        self.answer = answer


class _Request(Struct):
    """What the SDK is lenient about: it takes a request with another id for a notification."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType = UNSET
    method: str | UnsetType = UNSET


class _Answer(Struct):
    id: int | str | None = None
    method: str | None = None


_REQUEST: Final = msgspec.json.Decoder(_Request)
_ANSWER: Final = msgspec.json.Decoder(_Answer)


def request_id(line: bytes) -> int | str | None:
    """Return the id of the request in a line; None for a message that nobody answers.

    Args:
        line: At most `LONGEST` bytes are looked at.

    Raises:
        RefusedError: The SDK would not take it.
    """
    if len(line) > LONGEST:
        raise RefusedError(_error(None, INVALID_REQUEST, f"{_NO_MESSAGE}: {LONGEST} bytes at most"))
    try:
        head = _REQUEST.decode(line)
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        _refuse(line)
    return head.id if head.id is not UNSET and head.method is not UNSET else None


def answered_id(line: bytes) -> int | str | None:
    """Return the id of the request that a line of the SDK answers; None where it answers none."""
    try:
        answer = _ANSWER.decode(line)
    except msgspec.MsgspecError:
        return None
    return answer.id if answer.method is None else None


def _refuse(line: bytes) -> NoReturn:
    """Say what is wrong with a line, quoting nothing of it but its id."""
    try:
        document = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise RefusedError(_error(None, PARSE_ERROR, _NO_JSON)) from None
    if not isinstance(document, dict):
        raise RefusedError(_error(None, INVALID_REQUEST, _NO_MESSAGE))
    is_answer = "method" not in document and ("result" in document or "error" in document)
    if is_answer or ("method" in document and "id" not in document):
        raise RefusedError(None)
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RefusedError(_error(document.get("id"), INVALID_PARAMS, _NO_TEXT)) from None
    raise RefusedError(_error(document.get("id"), INVALID_REQUEST, _NO_MESSAGE))


def _no_number(constant: str) -> NoReturn:
    raise ValueError


def _error(request: Any, code: int, message: str) -> bytes:
    known = isinstance(request, int | str) and not isinstance(request, bool)
    if not known and not (isinstance(request, float) and math.isfinite(request)):
        request = None
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request, "error": error}).encode() + b"\n"
