"""Servers of a store, each with a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_wire import DETERMINISTIC, MEMORY, client
from tool_client import AGENT, InnerClient, ToolClient


@pytest.fixture
def serve(tmp_path: Path, path: Path) -> Iterator[Callable[..., ToolClient]]:
    """Start a server of the test's store; all are ended with the test."""
    with ExitStack() as stack:
        homes = 0

        def served(
            *arguments: str, agent: str | None = AGENT, db: Path | None = path, **variables: str
        ) -> ToolClient:
            nonlocal homes
            homes += 1
            home = tmp_path / f"home{homes}"
            home.mkdir()
            identity = () if agent is None else ("--agent-id", agent)
            store = () if db is None else ("--db", str(db))
            return stack.enter_context(
                ToolClient(*store, *identity, *arguments, home=home, **variables)
            )

        yield served


@pytest.fixture
def inside(path: Path) -> Iterator[Callable[..., InnerClient]]:
    """Start a server of the test's store in this process; all are closed with the test."""
    with ExitStack() as stack:

        def served(**options: object) -> InnerClient:
            given = {"db": str(path), "agent_id": AGENT, **options}
            return stack.enter_context(InnerClient(**given))

        yield served


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolClient]:
    """A server that the tests of a module share; each looks at what it made itself."""
    home = tmp_path_factory.mktemp("shared")
    store = str(home / "memory.engram")
    with ToolClient("--db", store, "--agent-id", AGENT, home=home) as client:
        yield client


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., None]:
    """Run a coroutine function with a client of a server of a project's memories."""

    def run(
        use: Callable[[Client], Coroutine[Any, Any, None]],
        arguments: tuple[str, ...] = MEMORY,
        **variables: str,
    ) -> None:
        async def main() -> None:
            async with client(tmp_path, arguments, **DETERMINISTIC, **variables) as connected:
                await use(connected)

        asyncio.run(main())

    return run
