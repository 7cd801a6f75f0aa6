"""The process: how it starts, what reaches its client, and when it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tool_client import AGENT, server
from workers import PATIENCE, environment, planted

from engram import Engram, lifetime
from engram.mcp.calls import TICK

INITIALIZE = {
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

# Native code that goes on whatever signal comes, so that no handler of Python's gets to run.
BUSY = """
import hashlib
import os
import engram.engine

def counts(memory):
    os.write(2, b"busy\\n")
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

engram.engine.Engram.counts = counts
"""

# Whoever is imported prints, and so does whoever opens the store and whoever is called.
NOISY = """
import os
import sys

def say(text):
    print(text)
    os.write(1, text.encode())
    os.system("echo child " + text)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp.server":
            say("import")
        if name == "engram.engine":
            say("opening")

sys.meta_path.insert(0, Finder())
"""


class Raw:
    """A process that is spoken to in lines."""

    def __init__(self, home: Path, *arguments: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            server(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env=environment(home, **variables),
            bufsize=0,
        )

    def send(self, **message: object) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        self.process.stdin.write(line.encode())

    def ask(self, **message: object) -> dict:
        self.send(id=1, **message)
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == 1
        return answer["result"]

    def shake_hands(self) -> None:
        assert self.ask(**INITIALIZE)["serverInfo"]["name"] == "engram"
        self.send(method="notifications/initialized")

    def tool(self, name: str, **arguments: object) -> dict:
        return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}

    def call(self, name: str, **arguments: object) -> dict:
        result = self.ask(**self.tool(name, **arguments))
        assert not result.get("isError"), result
        return result["structuredContent"]

    def keep_busy(self) -> None:
        self.send(id=2, **self.tool("stats"))
        line = b""
        while line != b"busy\n":
            line = self.process.stderr.readline()
            assert line, "it ended"

    def ended(self) -> int:
        """The exit code, which has to be there long before anybody would lose patience."""
        return self.process.wait(timeout=PATIENCE)


@pytest.fixture
def raw(tmp_path, path) -> Iterator[object]:
    started: list[Raw] = []

    def start(*arguments: str, **variables: str) -> Raw:
        started.append(
            Raw(tmp_path, "--db", str(path), "--agent-id", AGENT, *arguments, **variables)
        )
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            stream.close()


def test_its_watch_leaves_it_less_than_two_seconds():
    assert lifetime._LOOK / 1000 + lifetime._GRACE < 2


def test_the_end_of_input_ends_it(raw):
    one = raw()
    one.shake_hands()
    uid = one.call("remember", content="It is committed.")["id"]
    one.process.stdin.close()
    assert one.ended() == 0
    assert one.process.stdout.read() == b""
    assert one.process.stderr.read() == b""
    with Engram(one.process.args[4], agent_id=AGENT) as memory:
        assert memory.get(uid).content == "It is committed."


def test_it_may_end_before_it_was_greeted(raw):
    one = raw()
    one.process.stdin.close()
    assert (one.ended(), one.process.stdout.read()) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_waits(raw, number):
    one = raw()
    one.shake_hands()
    one.call("stats")
    one.process.send_signal(number)
    assert (one.ended(), one.process.stderr.read()) == (128 + number, b"")


@pytest.mark.parametrize("how", ["input", "signal", "answers"])
def test_it_ends_with_a_call_in_flight(raw, tmp_path, how):
    one = raw(**planted(tmp_path, BUSY))
    one.shake_hands()
    one.keep_busy()
    if how == "input":
        one.process.stdin.close()
    elif how == "signal":
        one.process.terminate()
    else:
        one.process.stdout.close()
    assert one.ended() == (0 if how == "input" else 128 + signal.SIGTERM)


PARENT = """
import signal, subprocess, sys
worker = subprocess.Popen(sys.argv[1:])
print(worker.pid, file=sys.stderr, flush=True)
signal.pause()
"""


def test_it_ends_with_its_parent(tmp_path, path):
    """Also when somebody else keeps both of its pipes open, as this test does."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *server("--db", str(path), "--agent-id", AGENT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        bufsize=0,
    ) as parent:
        watched = os.pidfd_open(int(parent.stderr.readline()))
        parent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, **INITIALIZE}).encode() + b"\n")
        assert b'"serverInfo"' in parent.stdout.readline()
        parent.kill()
        gone = select.poll()
        gone.register(watched, select.POLLIN)
        assert gone.poll(PATIENCE * 1000)
        os.close(watched)


def test_only_the_protocol_reaches_the_client(raw, tmp_path):
    one = raw(**planted(tmp_path, NOISY))
    one.shake_hands()
    one.call("stats")
    one.process.stdin.close()
    assert (one.ended(), one.process.stdout.read()) == (0, b"")
    said = one.process.stderr.read().decode()
    for text in ("import", "opening"):
        assert said.count(f"child {text}") == 1


def test_a_broken_line_is_no_reason_to_end(raw):
    one = raw()
    one.shake_hands()
    one.process.stdin.write(b'canary-47 {"jsonrpc": \xff}\n')
    assert one.call("stats")["agent_id"] == AGENT
    one.process.stdin.close()
    assert one.ended() == 0
    assert b"canary" not in one.process.stderr.read()


# Nothing of these can be imported before somebody says so.
GATE = """
import os
import sys
import time

class Finder:
    def find_spec(self, name, path=None, target=None):
        while name in {heavy!r} and not os.path.exists({go!r}):
            time.sleep(0.01)

sys.meta_path.insert(0, Finder())
"""
HEAVY = ("numpy", "apsw", "onnxruntime", "engram.engine", "engram.storage")


def test_neither_the_handshake_nor_the_list_of_tools_waits_for_the_store(raw, tmp_path):
    go = tmp_path / "go"
    one = raw(**planted(tmp_path, GATE.format(heavy=HEAVY, go=str(go))))
    one.shake_hands()
    assert len(one.ask(method="tools/list", params={})["tools"]) == 8
    go.touch()
    assert one.call("stats")["counts"]["episodic"] == 0


def test_progress_is_told_to_who_asks(serve, tmp_path):
    """The call goes on until the client was told: only the passing of time tells it."""
    go = tmp_path / "go"
    code = f"""
        import os, time
        import engram.engine

        def contradictions(memory, *, limit):
            while not os.path.exists({str(go)!r}):
                time.sleep(0.01)
            return []

        engram.engine.Engram.contradictions = contradictions
    """
    client = serve(**planted(tmp_path, code))
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))
        if len(told) == 2:
            go.touch()

    assert client.result("contradictions", progress=progress) == {"pairs": [], "more": False}
    (first, total, message), (second, *_) = told[:2]
    assert TICK <= first < second
    assert (total, message) == (None, "at work")


def test_several_servers_share_a_file(serve):
    first, second = serve("--provenance", "user"), serve("--provenance", "user")
    for turn in range(3):
        for client in (first, second):
            client.result("remember", content=f"Turn {turn}.", tags=[str(turn)])
        for client in (first, second):
            assert len(client.result("recall", query="Turn", tags=[str(turn)])) == 2


def test_calls_run_at_the_same_time(serve):
    client = serve()
    many = [("remember", {"content": f"Number {n}."}) for n in range(20)]
    uids = {done.structured_content["id"] for done in client.at_once(many)}
    assert len(uids) == 20
    assert client.result("stats")["counts"]["episodic"] == 20


def test_help_and_version_need_no_sdk(tmp_path):
    code = "import sys, engram.mcp_server as s\ntry: s.main(['{}'])\nfinally: print(*sys.modules)"
    for flag in ("--help", "--version"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(flag)],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
        )
        loaded = set(done.stdout.splitlines()[-1].split())
        assert done.returncode == 0
        assert not loaded & {"mcp", "pydantic", "numpy", "engram.engine"}


def test_without_the_sdk_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['mcp'] = None\nfrom engram.mcp_server import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        input="",
    )
    assert (done.returncode, done.stdout) == (1, "")
    why = "the MCP server needs the MCP SDK (pip install 'engram-embedded[mcp]')"
    assert done.stderr == f"Error: {why}\n"


def test_an_encrypted_store_needs_its_key(serve, tmp_path, path):
    key = tmp_path / "key"
    key.write_text("a passphrase\n", encoding="utf-8")
    key.chmod(0o600)
    with Engram(path, key="a passphrase", agent_id=AGENT) as memory:
        memory.observe("Locked away.", provenance="user")
    client = serve("--key-file", str(key))
    assert client.result("recall", query="locked")[0]["content"] == "Locked away."
    locked = serve()
    for _ in range(2):
        assert "is not an engram store" in locked.refusal("stats")
    assert "the store cannot be opened" in locked.err


def test_a_store_that_could_not_be_opened_is_tried_again(serve, tmp_path):
    place = tmp_path / "later" / "memory.engram"
    client = serve(db=place)
    why = "the folder of --db does not exist (make it, or name a file in another)"
    assert client.refusal("stats") == why
    assert f"the store cannot be opened: {why}" in client.err
    place.parent.mkdir()
    assert client.result("stats")["counts"]["episodic"] == 0


def test_events_are_logged_where_it_is_told(serve, tmp_path):
    log = tmp_path / "events.ndjson"
    client = serve("--events", str(log))
    uid = client.result("remember", content="x")["id"]
    client.result("forget", memory_id=uid)
    types = [json.loads(line)["type"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(types) == 2


def test_nothing_that_is_stored_reaches_stderr(serve, tmp_path):
    client = serve()
    client.result("remember", content="canary-47", tags=["canary-48"])
    client.result("recall", query="canary-49")
    client.refusal("recall", query="canary-50", limit="canary-51")
    client.refusal("why", memory_id="canary-52")
    assert client.err == ""
