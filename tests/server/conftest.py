from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from engram_server import DETERMINISTIC, Server
from socket_server import StandIn, serving

from engram.reporting import Repeats

Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start servers, each in a project and with a home of its own unless it is told otherwise."""
    with ExitStack() as stack:

        def started(settings: str = DETERMINISTIC, place: Path | None = None, **variables: str):
            where = place or tmp_path_factory.mktemp("s")
            return stack.enter_context(Server(where, settings, variables))

        yield started


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test had said is said anew."""
    monkeypatch.setattr("engram.reporting._REPEATS", Repeats())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a socket may be."""
    return tmp_path / "engram.sock"


@pytest.fixture
def methods() -> Iterator[StandIn]:
    stand_in = StandIn()
    yield stand_in
    stand_in.gate.set()


@pytest.fixture
def serve(place: Path, methods: StandIn) -> Iterator[Callable[..., None]]:
    """Serve a socket in this process, within the limits that are given."""
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(serving(place, methods, **limits))
        # Before the server is told to stop: it waits for what is under way.
        methods.gate.set()


@pytest.fixture
def server(start: Start) -> Server:
    return start()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for tests that leave nothing behind."""
    with Server(tmp_path_factory.mktemp("s")) as running:
        yield running


@pytest.fixture
def trainer(tmp_path: Path) -> Callable[[str], str]:
    """Make a program that ignores its arguments and does what the body, in Python, says."""
    file = tmp_path / "fake-trainer"

    def made(body: str) -> str:
        file.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
        file.chmod(0o700)
        return str(file)

    return made


@pytest.fixture
def idle(tmp_path: Path) -> Server:
    """A project whose server is not running yet."""
    return Server(tmp_path)
