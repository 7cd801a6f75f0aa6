"""The process: answers one line after the other until there are no more."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from typing import TYPE_CHECKING

from engram.api.frames import encode, read_lines
from engram.api.requests import (
    OPERATION_FAILED,
    REFUSED_VALUE,
    TOO_LARGE,
    Failure,
    Identifier,
    RequestError,
    read_call,
    read_identifier,
    read_object,
)
from engram.api.service import Service
from engram.errors import InvalidArgument, InvalidType, NotFound
from engram.lifetime import Lifetime

if TYPE_CHECKING:
    from engram.channel import Channel
    from engram.config import Loaded

__all__ = ["respond", "serve"]


def serve(loaded: Loaded, channel: Channel, key: str | None = None) -> None:
    """Answer requests until the client sends no more, or is gone.

    Args:
        loaded: The settings; they stay as they are.
        channel: Where the client is.
        key: Passphrase of an encrypted store.
    """
    lifetime = Lifetime(channel.answers)
    with channel.requests, Service(loaded, key=key) as service, suppress(BrokenPipeError):
        for line in read_lines(channel.requests):
            answer = respond(line, service)
            if answer is not None:
                channel.send(answer)
        lifetime.end()


def respond(line: bytes | None, service: Service) -> bytes | None:
    """Return the line that answers a line; None when that was blank.

    Args:
        line: What the client sent; None for a line that is too long.
        service: What carries out requests.
    """
    identifier: Identifier = None
    try:
        if line is None:
            return _refusal(None, TOO_LARGE)
        document = read_object(line)
        if document is None:
            return None
        # From here on every answer has it, whatever happens.
        identifier = read_identifier(document)
        result = service.call(*read_call(document))
        return encode({"id": identifier, "result": result})
    except RequestError as error:
        return _refusal(identifier, error.failure)
    except (InvalidArgument, InvalidType, NotFound):
        return _refusal(identifier, REFUSED_VALUE)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client gets one answer
        _report(error)
        return _refusal(identifier, OPERATION_FAILED)


def _refusal(identifier: Identifier, failure: Failure) -> bytes:
    return encode({"id": identifier, "error": failure._asdict()})


def _report(error: Exception) -> None:
    """Say on stderr what kind of failure it was: its message may quote what is stored."""
    # Whether anybody reads that or not, the client gets its answer.
    with suppress(OSError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"engram api: {type(error).__name__}\n".encode())
