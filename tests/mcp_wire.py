"""Drive the real `engram-mcp` process: over its pipes, or through the SDK's client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from workers import PATIENCE, Piped

# Seconds in which a process must have ended, plus what a busy machine takes to see it.
LIMIT = 2 + 10

COMMAND = (sys.executable, "-m", "engram.mcp_server")

STORES = {"engram": "agent.engram", "memory": "project.engram"}
"""The store of each profile, in the working folder."""

ENGRAM = ("--db", STORES["engram"], "--agent-id", "agent", "--provenance", "user")
"""An agent's."""

MEMORY = ("--profile", "memory", "--db", STORES["memory"])
"""A project's."""

DETERMINISTIC = {"ENGRAM_EMBEDDING_PROVIDER": "deterministic"}
"""The variables of a project's server that needs no model."""

PROFILES = {"engram": ENGRAM, "memory": MEMORY}

WRITE = {
    "engram": ("remember", {"content": "The deploy key is in the safe."}),
    "memory": (
        "memory_store",
        {"context": "A deploy.", "action": "The key was put away.", "result": "In the safe."},
    ),
}
"""A call of each profile that keeps something."""

STATUS = {"engram": "stats", "memory": "memory_status"}
"""A tool of each profile that needs the store and no model."""


class Wire(Piped):
    """A running process; what it says is read message by message.

    Args:
        folder: Working folder and home.
        arguments: Of `engram-mcp`.
        before: Programs that start it.
        variables: Of the environment.
    """

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str] = ENGRAM,
        *,
        before: Sequence[str] = (),
        **variables: str,
    ) -> None:
        super().__init__([*before, *COMMAND, *arguments], folder, variables)
        self._last = 0

    def begin(self, method: str, params: Mapping[str, object] = {}) -> int:
        """Send a request and return its id."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self.send(json.dumps(message).encode() + b"\n")
        return self._last

    def answer(self, number: int | str | None) -> Any:
        """The answer to a request; notifications that come before it are passed over."""
        while True:
            line = self.line()
            assert line, self.process.stderr.read().decode()
            message = json.loads(line)
            if "method" not in message:
                assert message["id"] == number, message
                return message

    def ask(self, method: str, params: Mapping[str, object] = {}) -> Any:
        """The result of a request."""
        return self.answer(self.begin(method, params))["result"]

    def shake(self) -> Any:
        """What the server says of itself, once it has been told that it was understood."""
        client = {"name": "tests", "version": "1"}
        said = self.ask(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return said

    def call(self, tool: str, arguments: Mapping[str, object] = {}) -> Any:
        """What a tool returns, its error or not."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def done(self, tool: str, arguments: Mapping[str, object] = {}) -> Any:
        """What a tool returns that does not fail."""
        result = self.call(tool, arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def finish(self) -> tuple[int, str]:
        """Say no more; its exit code and what it wrote to stderr."""
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err.decode()


@asynccontextmanager
async def client(
    folder: Path, arguments: Sequence[str] = ENGRAM, **variables: str
) -> AsyncIterator[Client]:
    """The SDK's client of a process, with the environment that hosts give it."""
    started = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], *arguments],
        cwd=folder,
        env={"HOME": str(folder), "PYTHONSAFEPATH": "1"} | variables,
    )
    async with Client(stdio_client(started, errlog=subprocess.DEVNULL)) as connected:
        yield connected


async def done(connected: Client, tool: str, **arguments: object) -> Any:
    """What a tool returns that does not fail."""
    result = await connected.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def failed(connected: Client, tool: str, **arguments: object) -> str:
    """What a tool of a project's memories says that fails."""
    result = await connected.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    (block,) = result.content
    return block.text
