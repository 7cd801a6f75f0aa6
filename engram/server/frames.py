"""Frames: a line read as a request, and the line that answers it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from engram.server.failures import INVALID_JSON, Failure
from engram.transfer.strict_json import parse_unambiguous

__all__ = [
    "MAX_DEPTH",
    "Request",
    "UnreadableLineError",
    "decode",
    "encode",
    "id_at_start",
    "refusal",
]

MAX_DEPTH: Final = 128
"""Objects and arrays that may be open at one place of a line, the outermost counted."""

# Only an escape can bring half of a surrogate pair into text that came as UTF-8.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

_START: Final = 4096
"""Bytes of a line in which its id is looked for where the whole is not read."""

_ID = re.compile(rb'\s*+\{\s*+"id"\s*+:\s*+("(?:[^"\\]|\\.)*+")', re.DOTALL)


class UnreadableLineError(Failure):
    """A line is no request.

    Args:
        detail: What is wrong with it, quoting nothing of it.
        request_id: Its id, if that much of it could be read.
    """

    def __init__(self, detail: str, request_id: str = "") -> None:
        super().__init__(INVALID_JSON, f"invalid json: {detail}")
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for.

    Attributes:
        id: Its own name for the request, any text.
        method: What is to be done.
        params: With what: an object by contract, but that is for the method to judge.
    """

    id: str
    method: str
    params: object


def decode(line: bytes | bytearray) -> Request:
    """Return the request in a line; parameters that are missing or null are none.

    Raises:
        UnreadableLineError: There is none in it.
    """
    document = _document(line)
    if not isinstance(document, dict):
        message = "a request is an object"
        raise UnreadableLineError(message)
    request_id = document.get("id")
    if not isinstance(request_id, str):
        message = "id must be a string"
        raise UnreadableLineError(message)
    method = document.get("method")
    if not isinstance(method, str):
        message = "method must be a string"
        raise UnreadableLineError(message, request_id)
    params = document.get("params")
    return Request(request_id, method, {} if params is None else params)


def id_at_start(line: bytes | bytearray) -> str:
    """Return the id of a request whose first member it is, without reading the line; else ""."""
    found = _ID.match(line[:_START])
    if found is None:
        return ""
    try:
        return decode(b'{"method":"","id":%b}' % found[1]).id
    except UnreadableLineError:
        return ""


def _document(line: bytes | bytearray) -> Any:
    try:
        text = line.decode()
        document = parse_unambiguous(text, MAX_DEPTH)
        if _SURROGATE.search(text):
            json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        message = f"{error.msg}, at character {error.pos}"
    except UnicodeDecodeError:
        message = "the line is not UTF-8"
    except UnicodeEncodeError:
        message = "a text holds half of a surrogate pair"
    except ValueError as error:
        message = str(error)
    else:
        return document
    raise UnreadableLineError(message) from None


def encode(request_id: str, data: object) -> bytes:
    """Return the line for a result: ASCII, so that no reader finds a newline inside.

    Raises:
        ValueError, TypeError, RecursionError: The result has no form in JSON.
    """
    return _line({"id": request_id, "ok": True, "data": data, "error": None})


def refusal(request_id: str, failure: Failure) -> bytes:
    """Return the line for a request that has no result."""
    error = {"code": failure.code, "message": failure.message}
    return _line({"id": request_id, "ok": False, "data": None, "error": error})


def _line(document: dict[str, object]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
