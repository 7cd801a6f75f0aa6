"""The server: a profile's tools behind the SDK, over two streams."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from io import BufferedIOBase, TextIOWrapper
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server import MCPServer

from engram._version import __version__
from engram.mcp.profile import chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from _typeshed import ReadableBuffer
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from engram.mcp.client import Client
    from engram.mcp.options import Options
    from engram.mcp.profile import Profile

__all__ = ["run", "server"]

_HANDSHAKE = ("initialize", "server/discover", "ping")


_Lifespan = Callable[[MCPServer[Any]], AbstractAsyncContextManager[None]]


def server(profile: Profile, lifespan: _Lifespan | None) -> MCPServer[Any]:
    """Return the server of a profile; it opens the store once the client was answered.

    Args:
        profile: Its tools.
        lifespan: What is entered when it begins to serve; None is nothing.
    """

    async def opening(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        answer = await call_next(ctx)
        if ctx.method not in _HANDSHAKE:
            profile.store.start()
        return answer

    return MCPServer(
        "engram",
        version=__version__,
        instructions=profile.instructions,
        tools=profile.tools,
        log_level="WARNING",
        lifespan=lifespan,
        middleware=[opening],
        subscriptions=False,
    )


@asynccontextmanager
async def _away(_: MCPServer[Any]) -> AsyncIterator[None]:
    """Take the client's stream away from whoever prints: the SDK has it now."""
    sys.stdin, sys.stdout = sys.__stdin__, sys.stderr
    yield


class _Answers(BufferedIOBase):
    """Where the SDK writes: a message at a time, for it flushes the stream after each."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write a message.

        Raises:
            BrokenPipeError: It cannot be written.
        """
        message = bytes(data)
        self._client.answer(message)
        return len(message)


def run(options: Options, client: Client) -> None:
    """Serve a client until it sends no more.

    Args:
        options: How the server was started.
        client: The client.
    """
    profile = chosen(options)
    # What a call waits for may end with the store, as a trainer does: it is not waited for first.
    client.serve(profile.store.close)
    # The SDK takes the two from here, and leaves alone what has other numbers than 0 and 1.
    reading = sys.stdin = TextIOWrapper(client.requests, encoding="utf-8")
    writing = sys.stdout = TextIOWrapper(_Answers(client), encoding="utf-8")
    try:
        anyio.run(server(profile, _away).run_stdio_async)
    except* BrokenPipeError:
        # Nobody reads any more.
        pass
    finally:
        profile.store.close()
        # Kept until here, for their buffers close with them.
        del reading, writing
