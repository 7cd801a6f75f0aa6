"""The process of both profiles: how late it loads, how it ends, and what it says meanwhile."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from engram_server import texts
from fake_trainer import COMPLETE, FakeTrainer, insight
from mcp_wire import COMMAND, LIMIT, PROFILES, STATUS, STORES, WRITE, Wire
from workers import PATIENCE, SHOUTING, environment, planted

from engram import Engram, lifetime
from engram.mcp import client

# Importing the engine's numbers or its model waits until the test says so.
WAITING = """
    import os, sys

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name in {names!r}:
                sys.meta_path.remove(self)
                open({gate!r}).read()

    sys.meta_path.insert(0, Finder())
"""

profiles = pytest.mark.parametrize("profile", PROFILES)


@contextmanager
def held(folder: Path, *names: str) -> Iterator[tuple[dict[str, str], Path]]:
    """The variables that hold a process up where it imports, and the pipe to let it go on."""
    gate = folder / "gate"
    os.mkfifo(gate)
    yield planted(folder, WAITING.format(names=names, gate=str(gate))), gate


def kept(folder: Path, profile: str) -> int:
    """How many memories a store has that is whole."""
    with Engram(folder / STORES[profile]) as memory:
        assert memory.check() == []
        return memory.counts().episodes


def maps(process: int) -> str:
    return Path(f"/proc/{process}/maps").read_text(encoding="utf-8")


def test_its_watch_leaves_it_less_than_two_seconds():
    assert lifetime._LOOK / 1000 + lifetime._GRACE < 2
    assert client._ANSWERING < client._ENDING < 2


@profiles
def test_the_client_is_answered_before_anything_heavy_loads(profile, tmp_path):
    with (
        held(tmp_path, "numpy", "onnxruntime", "engram.engine", "apsw") as (variables, gate),
        Wire(tmp_path, PROFILES[profile], **variables) as wire,
    ):
        assert wire.shake()["serverInfo"]["name"] == "engram"
        assert wire.ask("tools/list")["tools"]
        # Nothing of it can have been needed: it would still wait for the gate.
        for heavy in ("numpy", "onnxruntime", "apsw", ".onnx", "hnswlib"):
            assert heavy not in maps(wire.process.pid)
        gate.open("w").close()
        wire.done(STATUS[profile])
        assert "apsw" in maps(wire.process.pid)
        assert "onnxruntime" not in maps(wire.process.pid)
        wire.done(*WRITE[profile])
        assert "onnxruntime" in maps(wire.process.pid)
        assert wire.finish()[0] == 0


@profiles
def test_it_ends_with_its_input(profile, tmp_path):
    with Wire(tmp_path, PROFILES[profile]) as wire:
        wire.shake()
        wire.done(*WRITE[profile])
        wire.process.stdin.close()
        assert wire.process.wait(LIMIT) == 0
        assert (wire.process.stdout.read(), wire.process.stderr.read()) == (b"", b"")
    assert kept(tmp_path, profile) == 1


def test_it_ends_when_nothing_was_said(tmp_path):
    with Wire(tmp_path) as wire:
        wire.process.stdin.close()
        assert wire.process.wait(LIMIT + PATIENCE) == 0
        assert wire.process.stdout.read() == b""


@pytest.mark.parametrize(
    ("profile", "number"), [("engram", signal.SIGTERM), ("memory", signal.SIGINT)]
)
def test_it_ends_at_a_signal(profile, number, tmp_path):
    with Wire(tmp_path, PROFILES[profile]) as wire:
        wire.shake()
        wire.done(*WRITE[profile])
        wire.process.send_signal(number)
        assert wire.process.wait(LIMIT) == 128 + number
        assert wire.process.stderr.read() == b""
    assert kept(tmp_path, profile) == 1


# Native code that goes on whatever signal comes, so that no handler of Python's gets to run.
BUSY = """
    import hashlib, os, sys

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "onnxruntime":
                os.write(2, b"busy\\n")
                hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

    sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("profile", "how"),
    [("engram", "eof"), ("memory", "eof"), ("engram", "signal"), ("memory", "unread")],
)
def test_a_call_under_way_does_not_keep_it(profile, how, tmp_path):
    with Wire(tmp_path, PROFILES[profile], **planted(tmp_path, BUSY)) as wire:
        wire.shake()
        tool, arguments = WRITE[profile]
        wire.begin("tools/call", {"name": tool, "arguments": arguments})
        assert wire.process.stderr.readline() == b"busy\n"
        if how == "eof":
            wire.process.stdin.close()
        elif how == "signal":
            wire.process.send_signal(signal.SIGTERM)
        else:
            wire.process.stdout.close()
        assert wire.process.wait(LIMIT) == (0 if how == "eof" else 128 + signal.SIGTERM)


def test_it_ends_with_its_parent(tmp_path):
    """Also while somebody else holds its input open."""
    parent = textwrap.dedent(
        f"""
        import subprocess, sys
        subprocess.Popen({[*COMMAND, *PROFILES["engram"]]!r}).wait()
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment(tmp_path),
        bufsize=0,
    ) as process:
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert json.loads(process.stdout.readline())["id"] == 1
        process.kill()
        process.wait()
        # Our end of its input is open; the end of its output says that it is gone.
        ready, _, _ = select.select([process.stdout], [], [], LIMIT)
        assert ready
        assert process.stdout.read() == b""


@pytest.mark.parametrize("how", ["eof", "signal"])
def test_a_trainer_under_way_ends_with_it(how, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    trainer = FakeTrainer(tmp_path)
    variables = {"ENGRAM_TRAINER_BINARY": trainer.does(f"open({str(gate)!r}).read()")}
    with Wire(tmp_path, PROFILES["memory"], **variables) as wire:
        wire.shake()
        wire.begin("tools/call", {"name": "memory_train_generate", "arguments": {}})
        with gate.open("w") as held:
            if how == "eof":
                wire.process.stdin.close()
            else:
                wire.process.send_signal(signal.SIGTERM)
            assert wire.process.wait(LIMIT) == (0 if how == "eof" else 128 + signal.SIGTERM)
            # Nobody has the other end of it any more.
            unread = select.poll()
            unread.register(held, 0)
            assert unread.poll(LIMIT * 1000)
    # And the next one may train.
    trainer.says(insight("one", **texts(1)), COMPLETE)
    with Wire(tmp_path, PROFILES["memory"], **variables) as wire:
        wire.shake()
        assert wire.done("memory_train_generate", {})["generated"] == 1


def test_it_ends_when_it_cannot_answer(tmp_path):
    """As where a file takes the answers, and the disk is full."""
    with (
        Path("/dev/full").open("wb") as full,
        subprocess.Popen(
            [*COMMAND, *PROFILES["engram"]],
            stdin=subprocess.PIPE,
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment(tmp_path),
        ) as process,
    ):
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert process.wait(LIMIT + PATIENCE) == 128 + signal.SIGTERM
        said = "engram-mcp: the client cannot be answered: No space left on device\n"
        assert process.stderr.read().decode() == said


# Prints by every way there is: at an import, and in the process's thread that opens the store.
NOISY = (
    SHOUTING
    + """
    import atexit

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name in ("mcp.server", "pydantic", "msgspec", "apsw", "numpy", "onnxruntime"):
                shout("import " + name)
                if name == "apsw":
                    atexit.register(shout, "exit")

    sys.meta_path.insert(0, Finder())
"""
)


@profiles
def test_only_messages_are_on_stdout(profile, tmp_path):
    with Wire(tmp_path, PROFILES[profile], **planted(tmp_path, NOISY)) as wire:
        wire.shake()
        wire.done(*WRITE[profile])
        wire.begin("ping")
        out, err = wire.process.communicate(timeout=PATIENCE)
        assert wire.process.returncode == 0
    for line in (wire._unread + out).splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    noise = err.decode()
    for name in ("pydantic", "apsw", "numpy", "onnxruntime"):
        for way in ("flushed", "puts", "write", "os.write", "system", "child"):
            assert f"{way} import {name}\n" in noise


def test_who_reads_stdin_takes_no_request(tmp_path):
    code = """
        import os, subprocess, sys

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name == "onnxruntime":
                    assert os.read(0, 100) == b""
                    subprocess.run(["cat"], check=True)

        sys.meta_path.insert(0, Finder())
    """
    with Wire(tmp_path, **planted(tmp_path, code)) as wire:
        wire.shake()
        write = wire.begin(
            "tools/call", dict(zip(("name", "arguments"), WRITE["engram"], strict=True))
        )
        ping = wire.begin("ping")
        answers = {json.loads(wire.line())["id"] for _ in range(2)}
        assert answers == {write, ping}


def test_it_works_without_stderr(tmp_path):
    with Wire(tmp_path, before=["sh", "-c", 'exec "$@" 2>&-', "sh"]) as wire:
        wire.shake()
        wire.done(*WRITE["engram"])
        assert wire.finish()[0] == 0
