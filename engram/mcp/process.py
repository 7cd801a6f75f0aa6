"""The process: stdin and stdout are the client's alone, and it ends when the client does."""

from __future__ import annotations

import gc
import logging
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from engram.channel import claim
from engram.errors import MissingExtra
from engram.mcp.client import Client
from engram.mcp.options import IN_MEMORY, PROJECT, say

if TYPE_CHECKING:
    from engram.mcp.options import Options

__all__ = ["serve"]


def serve(options: Options) -> None:
    """Serve the client at stdin and stdout until it says no more or is gone, and exit.

    Args:
        options: How the server was started.

    Raises:
        MissingExtra: The MCP SDK is not installed.
    """
    if find_spec("mcp") is None:
        message = "the MCP server needs the MCP SDK"
        raise MissingExtra(message, "pip install 'engram-embedded[mcp]'")
    channel = claim()
    # Before the SDK's own, which prints what it was given.
    logging.basicConfig(level=logging.WARNING, handlers=[_Terse()])
    agents = options.profile != PROJECT
    if agents and options.db == IN_MEMORY:
        say("warning: the store is in memory and lost at the end (--db keeps it in a file)")
    if agents and options.agent_id is None:
        say("warning: no --agent-id: the whole file is served as one tenant's")
    client = Client(channel)
    # What is imported stays: looking for garbage in it would take a tenth of the start.
    gc.disable()
    # After the claim, for a library may print when it is imported.
    from engram.mcp.serving import run  # noqa: PLC0415

    gc.enable()
    run(options, client)
    sys.exit(client.code)


class _Terse(logging.Handler):
    """Prints what a library says without what it says it about."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print where a record is from and what kind of failure it is about."""
        kind = record.exc_info[0] if record.exc_info else None
        said = record.msg if isinstance(record.msg, str) and record.args else record.name
        say(f"{said}: {kind.__name__}" if kind else said)
