"""Framing as a client meets it: one real process, one real store, real methods."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from engram_server import COMMAND, RefusedError, Server
from socket_server import ANOTHER_USER, Peer, request

STATUS = request("memory_status", None, "last")
UNREAD = ("", 4000)
FRAMES = {
    "blank": (b"\n", UNREAD),
    "syntax": (b'{"id":"a","method":}\n', UNREAD),
    "two values": (b'{"id":"a","method":"memory_status","params":{}} {}\n', UNREAD),
    "BOM": (b'\xef\xbb\xbf{"id":"a","method":"memory_status","params":{}}\n', UNREAD),
    "array": (b'["a","memory_status",{}]\n', UNREAD),
    "NaN": (b'{"id":"a","method":"memory_status","params":{"x":NaN}}\n', UNREAD),
    "lone surrogate": (b'{"id":"a","method":"memory_status","params":{"x":"\\ud800"}}\n', UNREAD),
    "member twice": (b'{"id":"a","id":"b","method":"memory_status"}\n', UNREAD),
    "129 levels": (
        b'{"id":"a","method":"memory_status","params":' + b"[" * 128 + b"]" * 128 + b"}\n",
        UNREAD,
    ),
    "bad UTF-8": (b'{"id":"a","method":"\xff"}\n', UNREAD),
    "id is a number": (b'{"id":7,"method":"memory_status","params":{}}\n', UNREAD),
    "no id": (b'{"method":"memory_status","params":{}}\n', UNREAD),
    "no method": (b'{"id":"a","params":{}}\n', ("a", 4000)),
    "unknown method": (b'{"id":"a","method":"memory_x","params":{}}\n', ("a", 6007)),
    "params missing": (b'{"id":"a","method":"memory_status"}\n', ("a", "ok")),
    "params null": (b'{"id":"a","method":"memory_status","params":null}\n', ("a", "ok")),
    "more members": (b'{"id":"a","method":"memory_status","params":{},"x":1}\n', ("a", "ok")),
    "empty id": (b'{"id":"","method":"memory_status","params":{}}\n', ("", "ok")),
    "CRLF": (b'{"id":"a","method":"memory_status","params":{}}\r\n', ("a", "ok")),
    "1 MiB": (
        b'{"id":"a","method":"memory_status","params":{"x":"%s"}}\n' % (b"x" * 2**20),
        ("a", "ok"),
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = '[embedding]\nprovider = "deterministic"\n[server]\nmax_line_bytes = 2097152\n'
    with Server(tmp_path_factory.mktemp("s"), settings) as running:
        yield running


@pytest.fixture
def peer(server: Server) -> Iterator[Peer]:
    with Peer(server.socket) as connected:
        yield connected


@pytest.mark.parametrize("name", FRAMES)
def test_a_line_has_one_reply_and_the_next_one_is_answered(peer, name):
    line, (request_id, outcome) = FRAMES[name]
    peer.send(line + STATUS)
    reply = peer.reply()
    told = "ok" if reply["ok"] else reply["error"]["code"]
    assert (reply["id"], told) == (request_id, outcome)
    assert peer.reply()["id"] == "last"


def test_a_line_that_is_too_long_is_passed_over(peer):
    peer.send(b"x" * (3 * 2**20) + b"\n" + STATUS)
    assert peer.reply()["error"]["code"] == 4000
    assert peer.reply()["id"] == "last"


def test_a_last_line_without_its_end_is_answered(peer):
    peer.send(STATUS.rstrip(b"\n"))
    peer.finish()
    assert peer.reply()["id"] == "last"
    assert peer.rest() == b""


def test_a_hundred_requests_at_once_are_answered_in_order(peer):
    asked = [(f"r{number}", f"text {number} of many") for number in range(100)]
    peer.send(
        b"".join(
            request("memory_store", {"context": text, "action": "a", "result": "r"}, request_id)
            for request_id, text in asked
        )
    )
    assert [peer.reply()["id"] for _ in asked] == [request_id for request_id, _ in asked]


def test_twenty_clients_get_their_own_replies(server):
    def converse(client: int) -> None:
        with Peer(server.socket) as peer:
            for number in range(10):
                asked = f"{client}.{number}"
                assert peer.ask("memory_search", {"query": asked}, asked)["ok"]

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(converse, range(20)))


def test_who_leaves_amid_a_request_harms_nobody_and_is_obeyed(server, peer):
    stored = {"context": "left at once", "action": "stored all the same", "result": "found"}
    with Peer(server.socket) as gone:
        gone.send(request("memory_store", stored, "gone") + b'{"id":"half')
    # Requests of one project wait for each other at the store, and this one asks until it is there.
    for _ in range(1000):
        found = peer.ask("memory_search", {"query": "left at once", "limit": 1})["data"]["memories"]
        if found and found[0]["context"] == "left at once":
            break
    else:
        pytest.fail("what was sent whole was not carried out")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_gets_no_word(server):
    # As if no mode kept them away.
    server.socket.parent.chmod(0o755)
    server.socket.chmod(0o666)
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_USER], cwd=server.socket.parent, capture_output=True
    )
    assert done.stdout == b"b''\n", done.stderr


def test_a_store_that_is_damaged_while_it_runs_is_a_failure_of_storage(start):
    place = start()
    for number in range(200):
        text = {"context": f"text {number}", "action": "a" * 500, "result": "r"}
        assert place.ask("memory_store", **text)["id"]
    place.__exit__()
    with place:
        size = place.store.stat().st_size
        with place.store.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        with pytest.raises(RefusedError) as refusal:
            place.ask("memory_export")
        assert refusal.value.code == 1000
        assert refusal.value.message.startswith("[1000] ")
        assert place.ask("memory_config")["server"]["workers"] == 8


@pytest.mark.parametrize(
    ("arguments", "folder", "code"),
    [(["--config", "missing.toml"], "work", 6001), ([], "home/nowhere", 6016)],
)
def test_a_start_without_its_files_is_refused(tmp_path, arguments, folder, code):
    idle = Server(tmp_path)
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (idle.home / ".engram/engram.toml").unlink()
    (idle.home / ".engram").rmdir()
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=tmp_path / folder,
        env=idle.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"engram: [{code}] ")
