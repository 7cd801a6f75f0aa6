"""What the server says on stderr: where something failed, at most now and then, never waiting."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import F_SETPIPE_SZ, fcntl

from engram_server import COMMAND, DETERMINISTIC, Server, texts
from socket_server import PATIENCE, SECRET, Peer

from engram.reporting import Repeats

UNREACHABLE = DETERMINISTIC + '[llm]\nprovider = "ollama"\nmodel = "m"\n'
NOWHERE = "http://127.0.0.1:1"


@contextmanager
def full_pipe() -> Iterator[int]:
    """The end to write to of a pipe of 4 KiB that is full, and that nobody reads."""
    reading, writing = os.pipe()
    try:
        size = fcntl(writing, F_SETPIPE_SZ, 4096)
        assert os.write(writing, b"x" * size) == size
        yield writing
    finally:
        os.close(reading)
        os.close(writing)


def test_a_server_whose_messages_nobody_reads_serves_and_ends(tmp_path):
    server = Server(tmp_path, UNREACHABLE, {"ENGRAM_OLLAMA_HOST": NOWHERE})
    with full_pipe() as stderr:
        process = subprocess.Popen(
            COMMAND, cwd=server.root, env=server.environment(), stderr=stderr
        )
        try:
            server.wait(process)
            with Peer(server.socket) as peer:
                memory_id = peer.ask("memory_store", texts(1))["data"]["id"]
                for _ in range(3):
                    # The engine has to say that the language model did not answer.
                    reply = peer.ask("memory_judge", {"memory_id": memory_id})
                    assert reply["data"]["degraded"]
                assert peer.ask("memory_status")["ok"]
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()


WRITES = """
import logging, threading, warnings
from engram.reporting import report, say, take_over
take_over()
logging.getLogger("engram.search").warning("logged")
warnings.warn("warned")
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
say("said" * 10_000)
report(OSError(5, "secret"))
print("done")
"""


def test_nothing_that_a_process_has_to_say_waits():
    with full_pipe() as stderr:
        done = subprocess.run(
            [sys.executable, "-c", WRITES], stdout=subprocess.PIPE, stderr=stderr, timeout=PATIENCE
        )
    assert done.stdout == b"done\n"
    done = subprocess.run([sys.executable, "-c", WRITES], capture_output=True, text=True)
    logged, warned, failed, said, reported, *rest = done.stderr.split("\n")
    assert (logged, rest) == ("engram: logged", [""])
    assert "UserWarning: warned" in warned
    assert failed == "engram: ZeroDivisionError"
    assert said.startswith("engram: saidsaid")
    assert len(said) < 4096
    assert reported == "engram: OSError EIO"


def test_a_line_that_comes_again_and_again_is_said_once_in_a_while_with_how_often():
    now = 1000.0
    repeats = Repeats(lambda: now)
    assert repeats.due("a") == "a"
    assert repeats.due("b") == "b"
    now += 59.9
    assert [repeats.due("a") for _ in range(3)] == [None] * 3
    now += 0.1
    assert repeats.due("a") == "a (3 more since the last time)"
    assert repeats.due("a") is None
    assert repeats.due("b") == "b"
    now += 60
    assert repeats.due("a") == "a (1 more since the last time)"


def test_lines_that_are_all_different_do_not_add_up():
    repeats = Repeats(lambda: 1000.0)
    assert all(repeats.due(str(n)) == str(n) for n in range(5000))
    assert repeats.due("4999") is None
    assert repeats.due("0") == "0"  # that long ago is not known any more


def test_a_failure_says_where_and_nothing_of_what_is_stored(serve, place, capfd):
    serve()
    with Peer(place) as peer:
        for _ in range(3):
            said = peer.ask("broken")["error"]["message"]
            assert said == "[6006] socket error: the request failed unexpectedly"
    said = capfd.readouterr().err
    assert SECRET not in said
    assert re.fullmatch(r"engram: RuntimeError at engram\.server\.workers:\d+\n", said)
