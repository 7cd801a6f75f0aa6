"""How the process of the server ends: on which signals, in which order, and how soon."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from engram_server import COMMAND, Server, ended, texts
from socket_server import PATIENCE, Peer, request, until

IMPATIENT = """
import engram.server.process as process
process._GRACE, process._ENDING = 0.2, 0.4
"""
SERVER = """
from engram.cli import main
main(["server"])
"""
STAND_IN = f"""
import sys
from pathlib import Path
sys.path.append({str(Path(__file__).parents[1])!r})
from socket_server import StandIn
from engram.server.limits import Limits
from engram.server.sections import Process, Trainer
process.run(Path(sys.argv[1]), Limits.of(Process(), Trainer()), StandIn)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_in_good_order(idle, number):
    process = idle.run()
    with Peer(idle.socket) as peer:
        assert peer.ask("memory_store", texts(1))["ok"]
        assert ended(process, number) == ("", "engram: ready\n")
        assert peer.rest() == b""
    assert not idle.socket.exists()


def test_it_outlives_its_terminal_where_it_was_told_to(idle):
    command = f"trap '' HUP; exec {shlex.join(COMMAND)}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=idle.root,
        env=idle.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    idle.wait(process)
    status = Path(f"/proc/{process.pid}/status").read_text()
    ignored = int(re.search(r"^SigIgn:\s*(\w+)$", status, re.MULTILINE)[1], 16)
    assert ignored & 1 << signal.SIGHUP - 1
    assert ended(process) == ("", "engram: ready\n")


@contextmanager
def impatient(server: Server, program: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A server that waits for next to nothing when it is to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT + program, str(server.socket)],
        cwd=server.root,
        env=server.environment() | variables,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr.readline() == "engram: ready\n"
        yield process
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert not server.socket.exists()
    finally:
        process.kill()
        process.communicate()


def test_a_trainer_ends_with_the_server(idle, tmp_path, trainer):
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    program = trainer(
        f"said = open({str(alive)!r}, 'w')\nsaid.write('.')\nsaid.flush()\ntime.sleep(999)"
    )
    with ExitStack() as stack:
        with impatient(idle, SERVER, ENGRAM_TRAINER_BINARY=program):
            peer = stack.enter_context(Peer(idle.socket))
            peer.send(request("memory_train_generate"))
            said = stack.enter_context(alive.open())
            assert said.read(1) == "."
        assert said.read() == ""  # nobody has it open any more
        assert peer.rest() == b""


def test_work_that_never_ends_does_not_keep_the_process(idle):
    with ExitStack() as stack:
        with impatient(idle, STAND_IN):
            busy = stack.enter_context(Peer(idle.socket))
            busy.send(request("hold"))
            with Peer(idle.socket) as other:
                assert other.ask("echo", 1)["ok"]
        assert busy.rest() == b""


ENDING_ONCE = """
process._ENDING, closed = 3.0, process._closed

def told(methods, workers, seconds):
    print(f"{seconds:.3f}", file=sys.stderr, flush=True)
    return closed(methods, workers, 0.1)

process._closed = told
"""


def test_answering_and_closing_have_one_time_together(idle):
    program = "import sys\n" + ENDING_ONCE + STAND_IN
    with ExitStack() as stack:
        process = stack.enter_context(impatient(idle, program))
        busy = stack.enter_context(Peer(idle.socket))
        busy.send(request("hold"))
        with Peer(idle.socket) as other:
            assert other.ask("echo", 1)["ok"]
        process.terminate()
        assert 0.0 <= float(process.stderr.readline()) <= 2.8  # of three, 0.2 are gone


ON_THE_WAY = """
import os, signal
from contextlib import contextmanager
from pathlib import Path

import engram.server.service
from engram.cli import main

bound, Service = process.bound, engram.server.service.Service

def signalled(phase):
    if phase == sys.argv[2]:
        os.kill(os.getpid(), int(sys.argv[3]))

@contextmanager
def telling(path):
    with bound(path) as listening:
        assert path.exists()
        signalled("bound")
        yield listening

class Telling(Service):
    def __init__(self, settings):
        signalled("opening")
        super().__init__(settings)

    def close(self):
        assert not Path(sys.argv[1]).exists()
        signalled("closing")
        super().close()

process.bound, engram.server.service.Service = telling, Telling
main(["server"])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("phase", ["opening", "bound", "closing"])
def test_a_signal_on_the_way_ends_it_in_good_order(idle, phase, number):
    program = "import sys\nimport engram.server.process as process\n" + ON_THE_WAY
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(idle.socket), phase, str(int(number))],
        cwd=idle.root,
        env=idle.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if phase == "closing":
            assert process.stderr.readline() == "engram: ready\n"
            process.terminate()
        err = process.communicate(timeout=PATIENCE)[1]
        assert (process.returncode, err.replace("engram: ready\n", "")) == (0, "")
    finally:
        process.kill()
        process.communicate()
    assert not idle.socket.exists()
    with idle:
        assert idle.ask("memory_status")["memory_count"] == 0


def test_further_signals_change_nothing(idle):
    process = idle.run()
    process.send_signal(signal.SIGINT)

    def is_over() -> bool:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        return process.poll() is not None

    until(is_over)
    assert (process.returncode, *process.communicate()) == (0, "", "engram: ready\n")
    assert not idle.socket.exists()
