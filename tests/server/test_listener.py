"""Clients beside each other: order, time limits, and those who vanish, stall or are too many."""

from __future__ import annotations

import errno
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from socket_server import PATIENCE, Peer, StandIn, request, serving

from engram.server.listener import Listener

NO_ROOM = "[4000] invalid json: there is no room for a line so long"


@pytest.fixture
def methods() -> Iterator[StandIn]:
    stand_in = StandIn()
    yield stand_in
    stand_in.gate.set()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "engram.sock"


@pytest.fixture
def start(place: Path, methods: StandIn) -> Iterator[Callable[..., Listener]]:
    with ExitStack() as stack:
        # Before the server is told to stop: it waits for what is under way.
        yield lambda **limits: stack.enter_context(serving(place, methods, **limits))
        methods.gate.set()


def entered(methods: StandIn) -> None:
    assert methods.entered.acquire(timeout=PATIENCE)


def text_of(reply: dict) -> str:
    assert not reply["ok"]
    return reply["error"]["message"]


def test_a_hundred_requests_at_once_are_answered_in_order(start, place):
    start()
    with Peer(place) as peer:
        peer.send(b"".join(request("echo", n, f"r{n}") for n in range(100)))
        replies = [peer.reply() for _ in range(100)]
    assert [(r["id"], r["data"]) for r in replies] == [(f"r{n}", n) for n in range(100)]


def test_the_next_request_waits_for_the_one_before(start, place, methods):
    start()
    with Peer(place) as peer:
        peer.send(request("hold", 1, "first") + request("echo", 2, "second"))
        entered(methods)
        with Peer(place) as other:
            assert other.ask("echo", "meanwhile")["ok"]
        assert methods.carried_out == ["meanwhile"]
        methods.gate.set()
        assert [peer.reply()["id"] for _ in range(2)] == ["first", "second"]


def test_twenty_clients_do_not_mix(start, place):
    start()
    failures = []

    def converse(name: int) -> None:
        try:
            with Peer(place) as peer:
                for n in range(30):
                    assert peer.ask("echo", [name, n], f"{name}-{n}")["data"] == [name, n]
        except (AssertionError, OSError) as error:
            failures.append(error)

    threads = [threading.Thread(target=converse, args=(name,)) for name in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []


def test_requests_of_different_clients_overlap(start, place, methods):
    start(workers=3)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(place)) for _ in range(3)]
        for peer in peers:
            peer.send(request("hold"))
        for _ in peers:
            entered(methods)  # all three are in the method at the same time
        methods.gate.set()
        assert all(peer.reply()["data"] == "held" for peer in peers)


def test_a_line_of_a_mebibyte(start, place):
    start()
    text = "x" * 2**20
    with Peer(place) as peer:
        assert peer.ask("echo", text)["data"] == text
        assert peer.ask("echo", 1)["data"] == 1


def test_lines_that_never_end_have_bounded_room_together(start, place):
    listener = start(max_line_bytes=300_000)
    with ExitStack() as stack:
        hoarders = [stack.enter_context(Peer(place)) for _ in range(5)]
        for hoarder in hoarders:
            hoarder.send(b'"' + b"x" * 299_998)
        with Peer(place) as peer:
            while listener._room._left > 30_000:
                assert peer.ask("echo", "small")["ok"]
            assert text_of(peer.ask("echo", "y" * 290_000, "")) == NO_ROOM
            assert peer.ask("echo", "y" * 60_000)["ok"]
            for hoarder in hoarders:
                hoarder.send(b'"\n')
                assert text_of(hoarder.reply()) == "[4000] invalid json: a request is an object"
                assert hoarder.ask("echo", 1)["ok"]
            assert peer.ask("echo", "y" * 290_000)["ok"]


def test_a_request_has_a_time_and_the_connection_goes_on(start, place, methods):
    start(request_seconds=0.05)
    with Peer(place) as peer:
        reply = peer.ask("hold", "slow")
        assert reply["error"]["code"] == 6006
        assert "no result within 0.05 s; it may still be carried out" in text_of(reply)
        assert peer.ask("missing")["error"]["code"] == 1002
        methods.gate.set()
        assert peer.ask("missing")["error"]["code"] == 1002


def test_a_request_whose_turn_never_came_is_not_carried_out_later(start, place, methods):
    start(request_seconds=0.05, workers=1)
    with Peer(place) as first, Peer(place) as second:
        first.send(request("hold", "first"))
        entered(methods)
        assert "it was not begun" in text_of(second.ask("echo", "second"))
        first.reply()
        methods.gate.set()
        while not second.ask("echo", "third")["ok"]:
            pass
    assert "second" not in methods.carried_out
    assert "first" in methods.carried_out


def test_long_work_has_its_own_time_and_threads(start, place, methods):
    start(request_seconds=0.05, workers=1)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(place)) for _ in range(6)]
        for peer in peers:
            peer.send(request("memory_train_generate"))
        entered(methods)
        with Peer(place) as other:
            assert "no result within" in text_of(other.ask("hold"))  # a while
        methods.gate.set()
        assert all(peer.reply()["data"] == "held" for peer in peers)


def test_a_client_that_vanishes_in_a_request_harms_nobody(start, place, methods):
    start()
    with Peer(place) as peer:
        peer.send(request("hold", "done all the same"))
        entered(methods)
    with Peer(place) as other:
        assert other.ask("echo", 1)["ok"]
        methods.gate.set()
        while "done all the same" not in methods.carried_out:
            assert other.ask("echo", 1)["ok"]


def test_a_client_that_vanishes_in_a_line_harms_nobody(start, place, methods):
    listener = start()
    for part in (b"", b'{"id":"a","meth', b"\xff", b"x" * 200_000):
        with Peer(place) as peer:
            peer.send(part)
    with Peer(place) as other:
        assert other.ask("echo", 1)["ok"]
        alone(listener, place, 1)
    assert methods.carried_out[0] == 1


def alone(listener: Listener, place: Path, others: int) -> None:
    """Wait until no more than so many clients are left of all that came."""
    with Peer(place) as last:
        # Clients are accepted in their order.
        while last.ask("echo")["ok"] and len(listener._clients) > others + 1:
            pass


def test_a_client_that_sends_no_more_still_gets_its_replies(start, place, methods):
    start()
    with Peer(place) as peer:
        peer.send(request("hold") + request("echo", 5))
        peer.finish()
        entered(methods)
        methods.gate.set()
        assert [peer.reply()["data"], peer.reply()["data"]] == ["held", 5]
        assert peer.rest() == b""


def test_a_client_that_reads_nothing_is_cut_off_and_harms_nobody(start, place):
    listener = start(request_seconds=0.2, workers=2)
    with Peer(place) as stalled:
        stalled.send(request("large", {"size": 5_000_000}) + request("large", {"size": 1}))
        alone(listener, place, 0)
        assert 0 < len(stalled.rest()) < 5_000_000


def test_a_client_that_reads_slowly_gets_all(start, place):
    start(request_seconds=5.0)
    with Peer(place) as slow, Peer(place) as other:
        slow.send(request("large", {"size": 3_000_000}))
        received = b""
        while not received.endswith(b"\n"):
            received += slow.socket.recv(20_000)
            assert other.ask("echo", 1)["ok"]
        assert len(received) > 3_000_000
        assert slow.ask("echo", 1)["ok"]


def test_more_clients_than_allowed_are_disconnected(start, place):
    listener = start(max_connections=3)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(place)) for _ in range(3)]
        for peer in peers:
            assert peer.ask("echo", 1)["ok"]
        with Peer(place) as fourth:
            assert fourth.rest() == b""
        peers.pop().close()
        while len(listener._clients) > 2:
            assert peers[0].ask("echo", 1)["ok"]
        with Peer(place) as fourth:
            assert fourth.ask("echo", 1)["ok"]


def test_running_out_of_files_is_survived(start, place, capfd, monkeypatch):
    monkeypatch.setattr("engram.server.listener._BACK_OFF", 0.01)
    start()
    with Peer(place) as before, without_files(), ExitStack() as stack:
        assert before.ask("echo", 1)["ok"]
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stack.callback(waiting.close)
        exhaust(stack)
        waiting.connect(str(place))
        waiting.sendall(request("echo", 2))
        said = b""
        while b"EMFILE" not in said:
            assert before.ask("echo", 1)["ok"]
            said += capfd.readouterr().err.encode()
        stack.pop_all().close()
        assert set(said.decode().split("\n")) <= {"engram: OSError EMFILE", ""}
    with Peer(place) as after:
        assert after.ask("echo", 1)["ok"]


@contextmanager
def without_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def exhaust(stack: ExitStack) -> None:
    """Open files until there are no more."""
    with suppress(OSError):
        while True:
            stack.callback(os.close, os.dup(0))


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_nothing_is_left_open_by_clients(start, place, methods):
    listener = start()
    large = request("large", {"size": 10**6})
    parts = [b"", request("echo"), request("echo")[:9], b"\n\n", large, b"x" * 100_000]
    with Peer(place) as other:
        assert other.ask("echo")["ok"]
        before = open_files()
        for part in parts:
            for _ in range(20):
                with Peer(place) as peer:
                    peer.send(part)
        alone(listener, place, 1)
        for _ in range(10_000):
            if open_files() == before:
                break
            assert other.ask("echo")["ok"]
        assert open_files() == before
        assert listener._room._left == 4 * listener._room.max_line_bytes


def test_rounds_of_upkeep_go_on_whatever_happens(start, place, methods, monkeypatch, capfd):
    def failing() -> None:
        methods.rounds.release()
        raise OSError(errno.EIO, "secret")

    monkeypatch.setattr(methods, "background", failing)
    start(upkeep_seconds=0.001)
    for _ in range(3):
        assert methods.rounds.acquire(timeout=PATIENCE)
    with Peer(place) as peer:
        assert peer.ask("echo", 1)["ok"]
    assert capfd.readouterr().err.startswith("engram: OSError EIO\n")


def test_requests_under_way_are_answered_before_the_end(place, methods):
    stop = ExitStack()
    stop.enter_context(serving(place, methods))
    with Peer(place) as idle, Peer(place) as busy:
        assert idle.ask("echo", 1)["ok"]
        busy.send(request("hold", 2) + request("echo", 3))
        entered(methods)
        ending = threading.Thread(target=stop.close)
        ending.start()
        assert idle.rest() == b""  # has nothing to wait for
        with pytest.raises(ConnectionRefusedError), Peer(place):
            pass
        methods.gate.set()
        assert busy.reply()["data"] == "held"
        assert busy.rest() == b""
        ending.join(PATIENCE)
    assert methods.carried_out == [1, 2]
    assert not place.exists()


def test_who_takes_longer_than_the_grace_is_disconnected(place, methods):
    stop = ExitStack()
    stop.enter_context(serving(place, methods, grace=0.01))
    with Peer(place) as busy:
        busy.send(request("hold"))
        entered(methods)
        ending = threading.Thread(target=stop.close)
        ending.start()
        assert busy.rest() == b""
        methods.gate.set()
        ending.join(PATIENCE)


ANOTHER_USER = """
import os, socket
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
client.connect("engram.sock")
try:
    client.sendall(b'{"id":"a","method":"echo"}\\n')
    print(client.recv(100))
except ConnectionError:
    print(b"")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_disconnected_unread(start, place, methods):
    start()
    place.parent.chmod(0o755)
    place.chmod(0o666)  # as if the mode were not enough
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_USER], cwd=place.parent, capture_output=True
    )
    assert done.stdout == b"b''\n", done.stderr
    assert methods.carried_out == []


@pytest.mark.parametrize(("user", "allowed"), [(os.geteuid(), True), (0, True), (65533, False)])
def test_who_may_ask(start, place, monkeypatch, user, allowed):
    monkeypatch.setattr("engram.server.listener._PEER", Told(user))
    start()
    with Peer(place) as peer:
        if allowed:
            assert peer.ask("echo", 1)["ok"]
        else:
            assert peer.rest() == b""


class Told:
    """What the system says of a client, with another user in it."""

    size = struct.calcsize("iII")

    def __init__(self, user: int) -> None:
        self.user = user

    def unpack(self, data: bytes) -> tuple[int, int, int]:
        process, _, group = struct.unpack("iII", data)
        return process, self.user, group
