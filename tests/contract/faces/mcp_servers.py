"""The real `engram-mcp` process, asked through the SDK's client: an agent's tools, a project's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from contract.faces.face import Face, Memory
from contract.faces.library import Loop
from contract.faces.processes import HALVES, SETTINGS, SocketFace

if TYPE_CHECKING:
    from mcp import Client

_INVALID = "Invalid params"


class ToolRefusedError(Exception):
    """A tool failed; its text is what the client is told."""


class Connection:
    """A process of its own, connected to for as long as the tests need it.

    Args:
        folder: Its home and working folder.
        arguments: Of `engram-mcp`.
    """

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        # Here, so that the tests of other faces do not wait for it.
        from mcp import StdioServerParameters

        self._folder, self._arguments = folder, arguments
        self._pid = folder / "pid"
        self._log = (folder / "stderr").open("w")
        # The shell becomes the server, so that its number is known.
        line = f'echo $$ > "{self._pid}" && exec "$@"'
        started = [sys.executable, "-m", "engram.mcp_server", *arguments]
        self._server = StdioServerParameters(
            command="/bin/sh",
            args=["-c", line, "sh", *started],
            cwd=folder,
            env={"HOME": str(folder), "PYTHONSAFEPATH": "1"},
        )
        self._loop = Loop()
        self._loop.run(self._begin())

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Return what a tool returns.

        Raises:
            ToolRefusedError: It failed.
        """
        try:
            json.dumps(arguments, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ToolRefusedError(self._escaped(tool, arguments)) from None
        result = self._loop.run(self._client.call_tool(tool, dict(arguments)))
        if result.is_error:
            raise ToolRefusedError(result.content[0].text)
        return result

    def _escaped(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the error of a line that the SDK's client does not write, and others do."""
        from mcp_wire import Wire

        with Wire(self._folder, self._arguments) as wire:
            wire.shake()
            number = wire.begin("tools/call", {"name": tool, "arguments": arguments})
            return str(wire.answer(number)["error"]["message"])

    def kill(self) -> None:
        os.kill(int(self._pid.read_text()), signal.SIGKILL)

    def close(self) -> None:
        self._loop.run(self._end())
        self._loop.close()
        self._log.close()

    async def _begin(self) -> None:
        self._over = asyncio.Event()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # Whoever opens the client has to be the one who closes it.
        self._task = asyncio.create_task(self._stay(ready))
        self._client = await ready

    async def _stay(self, ready: asyncio.Future[Client]) -> None:
        from mcp import Client
        from mcp.client.stdio import stdio_client

        try:
            async with Client(stdio_client(self._server, errlog=self._log)) as client:
                ready.set_result(client)
                await self._over.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def _end(self) -> None:
        self._over.set()
        await self._task


class McpFace(Face):
    about = "MCP"
    lacks: ClassVar[Mapping[str, str]] = {
        "find.project": "It has no tool for that.",
        "filter.provenance": "Its searches leave out all but the user's own words, or nothing.",
        "filter.quarantine": "Its searches leave out all but the user's own words, or nothing.",
        "filter.value": "What is kept with a text is not searched.",
        "trust.declared": "A caller can only lower what the server was started with.",
        "erase.name": "It has no tool for that.",
        "hide": "It has no tool for that.",
        "unicode.question": HALVES,
        "limits.empty": "A memory must have content.",
        "limits.beyond": "Texts have no limit.",
    }
    sessions = True
    most = 4096
    error = ToolRefusedError
    codes: ClassVar[Mapping[str, object]] = {
        **dict.fromkeys(("value", "choice", "type", "missing"), "Error executing tool"),
        "halves": _INVALID,
    }

    def __init__(self, place: Any, agent: str | None = None) -> None:
        super().__init__(place, agent)
        identity = [] if agent is None else ["--agent-id", agent]
        self.connection = Connection(
            Path(tempfile.mkdtemp(dir=place.folder)),
            ["--db", str(place.store), "--provenance", "user", *identity],
        )

    def remember(self, text: str, **details: Any) -> str:
        names = {"at": "timestamp", "quarantined": "read_untrusted"}
        given = {names.get(name, name): _sent(value) for name, value in details.items()}
        return str(self._ask("remember", content=text, **given)["id"])

    def find(self, query: str, k: int = 5, **filters: Any) -> list[Memory]:
        given = {name: _sent(value) for name, value in filters.items()}
        found = self._ask("recall", query=query, limit=k, **given)["result"]
        return [_memory(one) for one in found]

    def get(self, uid: str) -> Memory:
        return _memory(self._ask("why", memory_id=uid))

    def erase(self, uid: str) -> None:
        self._ask("forget", memory_id=uid)

    def code(self, error: Any) -> object:
        begin = str(error).partition(":")[0]
        return begin if begin == _INVALID else begin.rpartition(" ")[0]

    def kill(self) -> None:
        self.connection.kill()

    def close(self) -> None:
        self.connection.close()

    def _ask(self, tool: str, **arguments: Any) -> Any:
        return self.connection.call(tool, arguments).structured_content


class McpProjectFace(SocketFace):
    about = "MCP, `--profile memory`"

    def __init__(self, place: Any, agent: str | None = None) -> None:
        Face.__init__(self, place, agent)
        folder = place.folder / "mcp-project"
        (folder / ".engram").mkdir(parents=True, exist_ok=True)
        (folder / ".engram/engram.toml").write_text(SETTINGS, encoding="utf-8")
        self.connection = Connection(folder, ["--profile", "memory", "--db", str(place.store)])

    def ask(self, method: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return json.loads(self.connection.call(method, given).content[0].text)

    def code(self, error: Any) -> object:
        begin = str(error).partition(":")[0]
        return begin if begin == _INVALID else int(str(error).partition("[")[2].partition("]")[0])

    error = ToolRefusedError
    codes: ClassVar[Mapping[str, object]] = {**SocketFace.codes, "halves": _INVALID}

    def kill(self) -> None:
        self.connection.kill()

    def close(self) -> None:
        self.connection.close()


def _sent(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _memory(row: dict[str, Any]) -> Memory:
    at = datetime.fromisoformat(row["timestamp"])
    told = {name: row[name] for name in ("tags", "actors", "provenance", "quarantined")}
    return Memory(row["id"], row["content"], at=at, **told)
