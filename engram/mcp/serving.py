"""The server: a profile's tools behind the SDK, over two streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio
from mcp.server import MCPServer

from engram._version import __version__
from engram.mcp.profile import chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from engram.mcp.options import Options
    from engram.mcp.profile import Profile

__all__ = ["run", "server"]

_HANDSHAKE = ("initialize", "server/discover", "ping")


_Lifespan = Callable[[MCPServer[Any]], AbstractAsyncContextManager[None]]


def server(profile: Profile, lifespan: _Lifespan | None = None) -> MCPServer[Any]:
    """Return the server of a profile; it opens the store once the client was answered.

    Args:
        profile: Its tools.
        lifespan: What is entered when it begins to serve.
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


def run(options: Options, requests: BinaryIO, answers: int) -> None:
    """Serve a client until its requests end.

    Args:
        options: How the server was started.
        requests: What the client sends.
        answers: The file descriptor of the other direction.
    """
    profile = chosen(options)
    # The SDK takes the two from here, and leaves alone what has other numbers than 0 and 1.
    reading = sys.stdin = TextIOWrapper(requests, encoding="utf-8")
    writing = sys.stdout = TextIOWrapper(os.fdopen(answers, "wb", closefd=False), encoding="utf-8")
    try:
        anyio.run(server(profile, _away).run_stdio_async)
    except* OSError:
        # Nobody reads any more.
        pass
    finally:
        profile.store.close()
        # Kept until here, for their buffers close with them.
        del reading, writing
