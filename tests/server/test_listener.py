"""Clients beside each other: order, time limits, and those who vanish, stall or are too many."""

from __future__ import annotations

import errno
import os
import re
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest
from socket_server import ANOTHER_USER, PATIENCE, Peer, StandIn, open_files, request, serving, until


def entered(methods: StandIn) -> None:
    assert methods.entered.acquire(timeout=PATIENCE)


def text_of(reply: dict) -> str:
    assert not reply["ok"]
    return reply["error"]["message"]


def test_a_hundred_requests_at_once_are_answered_in_order(serve, place):
    serve()
    with Peer(place) as peer:
        peer.send(b"".join(request("echo", n, f"r{n}") for n in range(100)))
        replies = [peer.reply() for _ in range(100)]
    assert [(r["id"], r["data"]) for r in replies] == [(f"r{n}", n) for n in range(100)]


def test_the_next_request_waits_for_the_one_before(serve, place, methods):
    serve()
    with Peer(place) as peer:
        peer.send(request("hold", 1, "first") + request("echo", 2, "second"))
        entered(methods)
        with Peer(place) as other:
            assert other.ask("echo", "meanwhile")["ok"]
        assert methods.carried_out == ["meanwhile"]
        methods.gate.set()
        assert [peer.reply()["id"] for _ in range(2)] == ["first", "second"]


def test_twenty_clients_do_not_mix(serve, place):
    serve()
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


def test_requests_of_different_clients_overlap(serve, place, methods):
    serve(workers=3)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(place)) for _ in range(3)]
        for peer in peers:
            peer.send(request("hold"))
        for _ in peers:
            entered(methods)  # all three are in the method at the same time
        methods.gate.set()
        assert all(peer.reply()["data"] == "held" for peer in peers)


def test_a_line_of_a_mebibyte(serve, place):
    serve()
    text = "x" * 2**20
    with Peer(place) as peer:
        assert peer.ask("echo", text)["data"] == text
        assert peer.ask("echo", 1)["data"] == 1


def test_a_request_has_a_time_and_the_connection_goes_on(serve, place, methods):
    serve(request_seconds=0.05)
    with Peer(place) as peer:
        reply = peer.ask("hold", "slow")
        assert reply["error"]["code"] == 6006
        assert "no result within 0.05 s; it may still be carried out" in text_of(reply)
        assert peer.ask("missing")["error"]["code"] == 1002
        methods.gate.set()
        assert peer.ask("missing")["error"]["code"] == 1002


def test_a_request_whose_turn_never_came_is_not_carried_out_later(serve, place, methods):
    serve(request_seconds=0.05, workers=1)
    with Peer(place) as first, Peer(place) as second:
        first.send(request("hold", "first"))
        entered(methods)
        assert "it was not begun" in text_of(second.ask("echo", "second"))
        first.reply()
        methods.gate.set()
        until(lambda: second.ask("echo", "third")["ok"])
    assert "second" not in methods.carried_out
    assert "first" in methods.carried_out


def test_long_work_has_its_own_time_and_threads(serve, place, methods):
    serve(request_seconds=0.05, workers=1)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(place)) for _ in range(6)]
        for peer in peers:
            peer.send(request("train"))
        entered(methods)
        with Peer(place) as other:
            assert "no result within" in text_of(other.ask("hold"))  # a while
        methods.gate.set()
        assert all(peer.reply()["data"] == "held" for peer in peers)


def test_a_client_that_vanishes_in_a_request_harms_nobody(serve, place, methods):
    serve()
    with Peer(place) as peer:
        peer.send(request("hold", "done all the same"))
        entered(methods)
    with Peer(place) as other:
        assert other.ask("echo", 1)["ok"]
        methods.gate.set()
        until(lambda: other.ask("echo", 1)["ok"] and "done all the same" in methods.carried_out)


def test_a_client_that_vanishes_in_a_line_harms_nobody(serve, place, methods):
    serve()
    with Peer(place) as other:
        assert other.ask("echo", 1)["ok"]
        before = open_files()
        for part in (b"", b'{"id":"a","meth', b"\xff", b"x" * 200_000):
            with Peer(place) as peer:
                peer.send(part)
        until(lambda: other.ask("echo", 2)["ok"] and open_files() <= before)
    assert methods.carried_out[0] == 1


def test_a_client_that_sends_no_more_still_gets_its_replies(serve, place, methods):
    serve()
    with Peer(place) as peer:
        peer.send(request("hold") + request("echo", 5))
        peer.finish()
        entered(methods)
        methods.gate.set()
        assert [peer.reply()["data"], peer.reply()["data"]] == ["held", 5]
        assert peer.rest() == b""


def test_rounds_of_upkeep_go_on_whatever_happens(serve, place, methods, monkeypatch, capfd):
    def failing() -> None:
        methods.rounds.release()
        raise OSError(errno.EIO, "secret")

    monkeypatch.setattr(methods, "background", failing)
    serve(upkeep_seconds=0.001)
    for _ in range(3):
        assert methods.rounds.acquire(timeout=PATIENCE)
    with Peer(place) as peer:
        assert peer.ask("echo", 1)["ok"]
    said = capfd.readouterr().err
    assert re.fullmatch(r"engram: OSError EIO at engram\.server\.workers:\d+\n", said)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_disconnected_unread(serve, place, methods):
    serve()
    place.parent.chmod(0o755)
    place.chmod(0o666)  # as if the mode were not enough
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_USER], cwd=place.parent, capture_output=True
    )
    assert done.stdout == b"b''\n", done.stderr
    assert methods.carried_out == []


@pytest.mark.parametrize(("user", "allowed"), [(os.geteuid(), True), (0, True), (65533, False)])
def test_who_may_ask(serve, place, monkeypatch, user, allowed):
    monkeypatch.setattr("engram.server.listener._PEER", Told(user))
    serve()
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
