"""Adapters that talk, through the real SDKs, to a server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from llm_wires import KEY, VARIABLES, AnthropicWire, GeminiWire, Handler, OpenAIWire, Server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[Server]:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    # No profile of whoever runs the tests is read.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("engram.llm.gemini.FIRST_DELAY", 0.0)
    monkeypatch.setattr("engram.llm.gemini.JITTER", 0.0)
    script = Server()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.script = script
        script.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield script
        script.released.set()
        http.shutdown()
        thread.join()


@pytest.fixture(params=[AnthropicWire, OpenAIWire, GeminiWire], ids=lambda wire: wire.extra)
def wire(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def adapted(server: Server) -> Iterator[Callable[..., Any]]:
    """Make adapters that talk to the server; every client is closed at the end."""
    with ExitStack() as stack:

        def adapter(kind: type, **options: Any) -> Any:
            made = kind(**{"base_url": server.url, "api_key": KEY, **options})
            stack.callback(made.close)
            return made

        yield adapter


@pytest.fixture
def ask(server: Server, wire: Any, adapted: Callable[..., Any]) -> Callable[..., Any]:
    """Script the server and return an adapter that will get those answers."""

    def scripted(*answers: Any, **options: Any) -> Any:
        server.answers = list(answers)
        return adapted(wire.adapter, **options)

    return scripted
