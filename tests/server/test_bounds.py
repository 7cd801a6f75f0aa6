"""What clients can take of the server: time, memory, connections and files, each within bounds."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import select
import socket
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from socket_server import PATIENCE, Peer, open_files, request, until

from engram.server import frames

NO_ROOM = "[4000] invalid json: there is no room for a line so long now: send it later"
TOO_LONG = "[4000] invalid json: the line has more than 300000 bytes"
STALLED = "[4000] invalid json: the rest of the line did not come in time"
UNREAD = "[6006] socket error: the line was not read in time; nothing was done"
CROWDED = "[6006] socket error: it was carried out, but clients leave too many long replies unread"


def unread(peer: Peer) -> int:
    """Bytes the peer has sent that the server has not read."""
    return int(struct.unpack("i", fcntl.ioctl(peer.socket, termios.TIOCOUTQ, b"\0" * 4))[0])


def is_cut_off(peer: Peer) -> bool:
    """Whether the server has ended the connection, whatever the peer has not read yet."""
    poll = select.poll()
    poll.register(peer.socket, select.POLLRDHUP)
    return bool(poll.poll(0))


def begun(peer: Peer) -> bool:
    """Whether a reply is on its way."""
    return bool(peer.socket.recv(1, socket.MSG_PEEK))


def test_lines_that_never_end_have_bounded_room_together(serve, place):
    serve(max_line_bytes=300_000)
    with ExitStack() as stack:
        hoarders = [stack.enter_context(Peer(place)) for _ in range(5)]
        for hoarder in hoarders:
            hoarder.send(b'"' + b"x" * 299_998)
        with Peer(place) as peer:
            until(lambda: peer.ask("echo")["ok"] and not any(map(unread, hoarders)))
            assert peer.ask("echo", "y" * 290_000, "")["error"]["message"] == NO_ROOM
            assert peer.ask("echo", "y" * 400_000, "")["error"]["message"] == TOO_LONG
            assert peer.ask("echo", "y" * 60_000)["ok"]
            for hoarder in hoarders:
                hoarder.send(b'"\n')
                said = hoarder.reply()["error"]["message"]
                assert said == "[4000] invalid json: a request is an object"
                assert hoarder.ask("echo", 1)["ok"]
            assert peer.ask("echo", "y" * 290_000)["ok"]


def test_a_large_line_that_stalls_loses_its_room(serve, place):
    serve(max_line_bytes=300_000, request_seconds=0.2)
    with ExitStack() as stack:
        hoarders = [stack.enter_context(Peer(place)) for _ in range(4)]
        small = stack.enter_context(Peer(place))
        small.send(b"{")
        for hoarder in hoarders:
            hoarder.send(request("echo", "x" * 200_000, "slow")[:-2])
        for hoarder in hoarders:
            reply = hoarder.reply()
            assert (reply["id"], reply["error"]["message"]) == ("slow", STALLED)
            assert hoarder.rest() == b""
        with Peer(place) as peer:
            assert peer.ask("echo", "y" * 290_000)["ok"]
        small.send(request("echo", 1)[1:])  # is in nobody's way
        assert small.reply()["ok"]


def test_a_large_line_that_trickles_loses_its_room(serve, place, monkeypatch):
    monkeypatch.setattr("engram.server.limits._SLOWEST", 2**40)
    serve(request_seconds=0.2)
    with Peer(place) as slow, Peer(place) as other:
        slow.send(b"x" * 100_000)
        with suppress(OSError):
            while not is_cut_off(slow):
                slow.send(b"x")
                assert other.ask("echo", 1)["ok"]
        assert slow.reply()["error"]["message"] == STALLED


def test_reading_a_large_line_needs_no_thread_of_requests(serve, place, methods):
    serve(request_seconds=0.3, workers=1)
    with Peer(place) as busy, Peer(place) as peer:
        busy.send(request("hold"))
        assert methods.entered.acquire(timeout=PATIENCE)
        peer.send(b"x" * 100_000 + b"\n")
        assert peer.reply()["error"]["code"] == 4000


@pytest.fixture
def unread_until(monkeypatch):
    """Reading a large line waits for this event."""
    go_on, decode = threading.Event(), frames.decode

    def held(line: bytearray) -> frames.Request:
        assert len(line) < 100_000 or go_on.wait(PATIENCE)
        return decode(line)

    monkeypatch.setattr(frames, "decode", held)
    yield go_on
    go_on.set()


def test_reading_large_lines_keeps_no_request_waiting(serve, place, unread_until):
    serve(request_seconds=0.1, workers=1)
    with ExitStack() as stack:
        large = [stack.enter_context(Peer(place)) for _ in range(3)]
        for peer in large:
            peer.send(request("echo", "x" * 100_000))
        with Peer(place) as other:
            for _ in range(3):
                assert other.ask("echo", 1)["ok"]
        unread_until.set()
        # Not the time of a short request is what reading may take.
        assert all(peer.reply()["ok"] for peer in large)


def test_a_line_that_takes_too_long_to_read_is_not_carried_out(serve, place, methods, unread_until):
    serve(long_seconds=0.05)
    with Peer(place) as peer:
        assert peer.ask("echo", "x" * 100_000, 'a"\n')["error"]["message"] == UNREAD
        peer.send(b'{"method":"echo","id":"later","params":"' + b"x" * 100_000 + b'"}\n')
        reply = peer.reply()
        assert (reply["id"], reply["error"]["message"]) == ("", UNREAD)
        unread_until.set()
        assert peer.ask("echo", 1)["ok"]
    assert methods.carried_out == [1]


def test_a_client_that_reads_nothing_is_cut_off_and_harms_nobody(serve, place):
    serve(request_seconds=0.2, workers=2)
    with Peer(place) as stalled, Peer(place) as other:
        stalled.send(request("large", {"size": 2_000_000}) + request("large", {"size": 1}))
        until(lambda: other.ask("echo", 1)["ok"] and is_cut_off(stalled))
        assert 0 < len(stalled.rest()) < 2_000_000


def test_a_client_that_reads_slowly_gets_all(serve, place):
    serve(request_seconds=5.0)
    with Peer(place) as slow, Peer(place) as other:
        slow.send(request("large", {"size": 3_000_000}))
        received = b""
        while piece := not received.endswith(b"\n") and slow.socket.recv(20_000):
            received += piece
            assert other.ask("echo", 1)["ok"]
        assert len(received) > 3_000_000
        assert slow.ask("echo", 1)["ok"]


def test_a_client_that_reads_next_to_nothing_is_cut_off(serve, place, monkeypatch):
    monkeypatch.setattr("engram.server.limits._SLOWEST", 2**40)
    serve(request_seconds=0.2)
    with Peer(place) as slow, Peer(place) as other:
        slow.send(request("large", {"size": 5_000_000}))
        # It takes some all the time, and would take long for the whole.
        received = 0
        while not is_cut_off(slow):
            received += len(slow.socket.recv(1000))
            assert other.ask("echo", 1)["ok"]
        assert received + len(slow.rest()) < 5_000_000


def test_replies_that_nobody_reads_have_bounded_room_together(serve, place):
    serve(max_line_bytes=300_000)
    with ExitStack() as stack:
        stalled = [stack.enter_context(Peer(place)) for _ in range(3)]
        for peer in stalled:
            peer.send(request("large", {"size": 400_000}))
        assert all(map(begun, stalled))
        with Peer(place) as peer:
            reply = peer.ask("large", {"size": 400_000})
            assert reply["error"] == {"code": 6006, "message": CROWDED}
            assert peer.ask("large", {"size": 60_000})["ok"]  # such ones are in nobody's way
            assert len(stalled[0].reply()["data"]) == 400_000
            until(lambda: peer.ask("large", {"size": 400_000})["ok"])
            for other in stalled[1:]:
                other.close()
            # What is alone has room, whatever its size.
            until(lambda: peer.ask("large", {"size": 5_000_000})["ok"])


def test_more_clients_than_allowed_are_disconnected(serve, place):
    serve(max_connections=3)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(place)) for _ in range(3)]
        for peer in peers:
            assert peer.ask("echo", 1)["ok"]
        with Peer(place) as fourth:
            assert fourth.rest() == b""
        peers.pop().close()
        until(lambda: peers[0].ask("echo", 1)["ok"] and is_answered(place))


def test_clients_that_are_gone_keep_no_others_out(serve, place, methods, monkeypatch):
    asked, go_on = threading.Event(), threading.Event()

    def busy(method: str, params: object) -> bool:
        asked.set()
        return not go_on.wait(PATIENCE)  # the loop itself waits

    monkeypatch.setattr(methods, "is_long", busy)
    serve(max_connections=5)
    with Peer(place) as before:
        before.send(request("echo", 1))
        assert asked.wait(PATIENCE)
        for _ in range(200):
            Peer(place).close()
        with Peer(place) as honest:
            go_on.set()
            assert honest.ask("echo", 2)["ok"]
        assert before.reply()["ok"]


def is_answered(place: Path) -> bool:
    with Peer(place) as peer, suppress(OSError):
        peer.send(request("echo", 1))
        return bool(peer.socket.recv(1))
    return False


def test_running_out_of_files_is_survived(serve, place, capfd, monkeypatch):
    monkeypatch.setattr("engram.server.listener._BACK_OFF", 0.01)
    serve()
    with Peer(place) as before, without_files(), ExitStack() as stack:
        assert before.ask("echo", 1)["ok"]
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stack.callback(waiting.close)
        exhaust(stack)
        waiting.connect(str(place))
        waiting.sendall(request("echo", 2))
        said: list[str] = []

        def is_said() -> bool:
            said.append(capfd.readouterr().err)
            return before.ask("echo", 1)["ok"] and "EMFILE" in said[-1]

        until(is_said)
        stack.pop_all().close()
        line = r"engram: OSError EMFILE at engram\.server\.listener:\d+\n"
        assert re.fullmatch(line, "".join(said))
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


def test_nothing_is_left_open_by_clients(serve, place):
    serve(max_line_bytes=300_000)
    large = request("large", {"size": 10**6})
    parts = [b"", request("echo"), request("echo")[:9], b"\n\n", large, b"x" * 290_000]
    with Peer(place) as other:
        assert other.ask("echo")["ok"]
        before = open_files()
        for part in parts:
            for _ in range(20):
                with Peer(place) as peer:
                    peer.send(part)
        until(lambda: other.ask("echo")["ok"] and open_files() <= before)
        # All room was given back.
        assert other.ask("echo", "y" * 290_000)["ok"]
        assert other.ask("large", {"size": 10**6})["ok"]
