"""The SDK's own client, over stdio, at the real `engram-mcp` process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, Tool
from mcp_wire import COMMAND
from workers import environment

from engram.mcp.options import Options
from engram.mcp.profile import chosen
from engram.mcp.serving import server

AGENT = "agent://acme.example/alice"


class Caller:
    """The SDK's client, used from plain functions."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def _connection(self, stack: ExitStack) -> object:
        """What the client connects to; the stack is left with it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            connection = self._connection(stack)
            self._portal = stack.enter_context(start_blocking_portal())
            client = self._portal.wrap_async_context_manager(Client(connection))
            self._client = stack.enter_context(client)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave, and wait until the server has ended."""
        self._stack.close()

    @property
    def instructions(self) -> str | None:
        return self._client.instructions

    @property
    def info(self) -> Any:
        return self._client.server_info

    def tools(self) -> list[Tool]:
        return self._portal.call(self._client.list_tools).tools

    def call(
        self, tool: str, /, *, progress: ProgressFnT | None = None, **arguments: object
    ) -> CallToolResult:
        asked = partial(self._client.call_tool, tool, arguments, progress_callback=progress)
        return self._portal.call(asked)

    def at_once(self, calls: Sequence[tuple[str, dict[str, object]]]) -> list[CallToolResult]:
        """The results of calls that do not wait for each other."""
        pending = [
            self._portal.start_task_soon(self._client.call_tool, tool, arguments)
            for tool, arguments in calls
        ]
        return [one.result() for one in pending]

    def result(self, tool: str, /, **arguments: object) -> Any:
        """The structured result; its text says the same."""
        done = self.call(tool, **arguments)
        texts = [block.text for block in done.content]
        assert not done.is_error, texts
        whole = done.structured_content
        if whole.keys() == {"result"}:
            whole = whole["result"]
            assert [json.loads(text) for text in texts] == whole
        else:
            assert [json.loads(text) for text in texts] == [whole]
        return whole

    def refusal(self, tool: str, /, **arguments: object) -> str:
        """What a call is refused with, after the words that every refusal begins with."""
        done = self.call(tool, **arguments)
        assert done.is_error, done
        [block] = done.content
        begin = f"Error executing tool {tool}: "
        assert block.text.startswith(begin), block.text
        return block.text.removeprefix(begin)


class ToolClient(Caller):
    """A client with a server process of its own.

    Args:
        arguments: Of the command line.
        home: The process's working directory and home.
        variables: Of its environment.
    """

    def __init__(self, *arguments: str, home: Path, **variables: str) -> None:
        super().__init__()
        command, *rest = (*COMMAND, *arguments)
        self._parameters = StdioServerParameters(
            command=command, args=rest, cwd=home, env=environment(home, **variables)
        )
        self._log = home / "stderr"

    def _connection(self, stack: ExitStack) -> object:
        errors = stack.enter_context(self._log.open("w", encoding="utf-8"))
        return stdio_client(self._parameters, errlog=errors)

    @property
    def err(self) -> str:
        """What the process has written to stderr."""
        return self._log.read_text(encoding="utf-8")


class InnerClient(Caller):
    """A client of a server in this process: the same tools, without pipes and start.

    Args:
        options: What the command line would say.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = Options(**options)

    def _connection(self, stack: ExitStack) -> object:
        profile = chosen(self._options)
        stack.callback(profile.store.close)
        return server(profile, None)
