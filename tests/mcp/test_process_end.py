"""The end of the client's input: what came before it is answered, and nothing waits for more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from fcntl import F_SETPIPE_SZ, fcntl

import pytest
from mcp_wire import COMMAND, LIMIT, PROFILES, STATUS, Wire
from workers import PATIENCE, environment, planted

profiles = pytest.mark.parametrize("profile", PROFILES)

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
MESSAGES = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"tests","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
)


def program(tmp_path, code):
    """A process with a client and, in place of the SDK, some code."""
    begin = """
        import select, sys, threading
        from engram.channel import claim
        from engram.mcp.client import Client

        def say(text):
            print(text, file=sys.stderr, flush=True)

        client = Client(claim())
        client.serve(lambda: say("closed"))
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(begin) + textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    )


@profiles
@pytest.mark.parametrize("source", ["pipe", "file"])
def test_who_pipes_messages_in_is_answered(profile, source, tmp_path):
    (tmp_path / "messages").write_bytes(MESSAGES)
    with (tmp_path / "messages").open("rb") as file:
        done = subprocess.run(
            [*COMMAND, *PROFILES[profile]],
            **({"input": MESSAGES} if source == "pipe" else {"stdin": file}),
            capture_output=True,
            cwd=tmp_path,
            env=environment(tmp_path),
            timeout=PATIENCE,
        )
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["id"], second["id"]) == (1, 2)
    assert second["result"]["tools"]


def test_what_is_under_way_is_answered_before_the_store_is_closed(tmp_path):
    os.mkfifo(gate := tmp_path / "gate")
    code = f"""
        client.requests.readline()
        open({str(gate)!r}).read()
        say("answered")
        client.answer(b'{{"jsonrpc":"2.0","id":1,"result":{{}}}}\\n')
        assert client.requests.read() == b""
        threading.Event().wait()
    """
    with program(tmp_path, code) as process:
        process.stdin.write(PING)
        process.stdin.flush()
        with gate.open("w"):  # opened when the request was read at the other end
            process.stdin.close()
        assert json.loads(process.stdout.read()) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert process.stderr.read() == b"answered\nclosed\n"
        assert process.wait(LIMIT) == 0


def test_the_end_is_noticed_behind_what_nobody_reads(tmp_path):
    """Whatever has come: what is not read yet is no reason to stay."""
    with program(tmp_path, "threading.Event().wait()") as process:
        os.set_blocking(process.stdin.fileno(), False)
        while process.stdin.raw.write(PING * 1000):
            pass
        process.stdin.raw.close()
        assert process.wait(LIMIT) == 0


# Nothing can be opened: each call fails for a reason that is told on stderr.
BROKEN = """
    import sys

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "apsw":
                raise RuntimeError

    sys.meta_path.insert(0, Finder())
"""


@profiles
def test_nobody_has_to_read_its_diagnostics(profile, tmp_path):
    with Wire(tmp_path, PROFILES[profile], **planted(tmp_path, BROKEN)) as wire:
        # Two pages: a pipe with one counts as full when anything is in it.
        fcntl(wire.process.stderr, F_SETPIPE_SZ, 8192)
        wire.shake()
        for _ in range(300):
            assert wire.call(STATUS[profile])["isError"]
        assert wire.ask("ping") == {}
        status, said = wire.finish()
        assert status == 0
        lines = said.splitlines()
        # What nobody takes is not said; and one profile says the same but rarely.
        assert 2 <= len(lines) < 300
        assert all("RuntimeError" in line for line in lines)
        assert all(line.startswith("engram-mcp: ") for line in lines)
        assert (len(said) > 4000) is (profile == "engram")
