"""The Python client: every method, threads, and what it makes of a server that fails it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from inspect import signature
from pathlib import Path

import pytest
from engram_server import DETERMINISTIC, Server, texts
from socket_server import PATIENCE, serving

from engram.errors import InvalidArgument, InvalidType, ProcessLost, RequestFailed, TimedOut
from engram.server.client import PATIENCE as PATIENCE_OF_CLIENTS
from engram.server.client import SocketClient
from engram.server.methods import METHODS, is_long
from engram.server.sections import Process

LINES = """
print('{"type":"insight","id":"i1","context":"c","action":"a","result":"r","insight_type":"cluster","tags":"x","source_ids":null}')
print('{"type":"complete","insights_generated":1,"duration_secs":0.5}')
"""


def test_it_has_the_methods_of_the_protocol():
    own = {name for name in vars(SocketClient) if name.startswith("memory_")}
    assert own == set(METHODS)


def test_what_is_long_has_no_limit_but_the_server_s(place, methods, monkeypatch):
    long: dict[str, bool] = {}

    def request(self, method, params, *, timeout=None, **options):
        assert timeout is None
        long[method] = options.get("long", False)

    monkeypatch.setattr(SocketClient, "request", request)
    client = SocketClient(place)
    for name in METHODS:
        given = {"score": 0.5} if name == "memory_judge" else {}
        required = [
            one
            for one in signature(getattr(client, name)).parameters.values()
            if one.default is one.empty
        ]
        getattr(client, name)(*[{} for _ in required], **given)
        assert long[name] == is_long(name, given, asks=True)
    client.memory_judge("x")
    assert long["memory_judge"]


def test_limits(place, methods):
    with serving(place, methods), ExitStack() as stack:
        for client, limits in (
            (SocketClient(place, timeout=0.05), ({}, {"long": True}, {"timeout": 0.01})),
            (SocketClient(place), ({"timeout": 0.01}, {"timeout": 0.01, "long": True})),
        ):
            for limit in limits:
                with pytest.raises(TimedOut):
                    stack.enter_context(client).request("hold", {}, **limit)
        patient = threading.Thread(target=lambda: got.append(client.request("hold", {}, long=True)))
        got: list[object] = []
        patient.start()
        methods.gate.set()
        patient.join(PATIENCE)
        assert got == ["held"]
    assert Process().request_timeout_secs < PATIENCE_OF_CLIENTS


def test_every_method(start, trainer):
    server: Server = start(ENGRAM_TRAINER_BINARY=trainer(LINES))
    with SocketClient(server.socket) as client:
        stored = client.memory_store(**texts(1), tags=("a", "b"), project="atlas")
        assert stored["indexed"]
        found = client.memory_search("c1", limit=3, project="atlas", tags=["A"], mode="plan")
        assert [hit["id"] for hit in found["memories"]] == [stored["id"]]
        assert client.memory_search("c1", memory_type="insight")["count"] == 0
        assert client.memory_search("c1", memory_type=("decision", "bugfix"))["count"] == 1
        assert client.memory_judge(stored["id"], score=0.5)["reason"] == "explicit score"
        assert client.memory_judge(stored["id"], query="c1")["score"] <= 1
        assert client.memory_status()["memory_count"] == 1
        assert client.memory_config()["server"]["workers"] == 8
        export = client.memory_export()
        assert export["memories"][0]["tags"] == '["a","b"]'
        assert client.memory_import(export) == {"imported": 0, "skipped": 1}
        assert client.memory_consolidate_preview(stale_days=3)["duplicates"] == 0
        assert client.memory_consolidate(min_score=0.1)["recommendations"] == []
        assert client.memory_consolidate_apply(dry_run=True, min_confidence=1.0)["merged"] == 0
        assert client.memory_consolidate_log(5) == {"log": [], "count": 0}
        with pytest.raises(RequestFailed) as failed:
            client.memory_consolidate_undo("none")
        assert failed.value.number == 1002
        assert client.memory_train_generate() == {"generated": 1, "messages_parsed": 2}
        [insight] = client.memory_train_list()["insights"]
        assert client.memory_insights()["count"] == 1
        assert client.memory_train_delete(insight["id"]) == {"deleted": insight["id"]}
        assert client.memory_reembed()["failed"] == 0
        for migrate in (client.memory_migrate_preview, client.memory_migrate_apply):
            with pytest.raises(RequestFailed, match=r"^\[6018\]"):
                migrate(every_project=True)
        assert client.memory_delete(stored["id"]) == {"deleted": stored["id"]}
        with pytest.raises(RequestFailed, match=r"^\[1002\] not found: memory ") as failed:
            client.memory_delete(stored["id"])
        assert (failed.value.code, failed.value.number) == ("1002", 1002)


def test_call_takes_any_method(place, methods):
    with serving(place, methods), SocketClient(place) as client:
        assert client.call("echo", text="né") == {"text": "né"}
        with pytest.raises(RequestFailed) as failed:
            client.call("nonexistent")
        assert failed.value.number == 6007
        with pytest.raises(ValueError, match="not JSON"):
            client.call("echo", x=float("nan"))
        with pytest.raises(TypeError):
            client.call("echo", x=object())
        assert client.call("echo") == {}


def test_threads_share_it(place, methods):
    wrong = []

    def ask(name: int) -> None:
        asked = [{"name": name, "n": n} for n in range(50)]
        wrong.extend(one for one in asked if client.call("echo", **one) != one)

    with serving(place, methods), SocketClient(place) as client:
        threads = [threading.Thread(target=ask, args=(name,)) for name in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(client._idle) <= 16
    assert wrong == []
    assert len(methods.carried_out) == 16 * 50


def test_a_request_of_one_thread_does_not_wait_for_that_of_another(place, methods):
    with serving(place, methods), SocketClient(place) as client:
        slow = threading.Thread(target=client.call, args=("hold",))
        slow.start()
        assert methods.entered.acquire(timeout=PATIENCE)
        assert client.call("echo", n=1) == {"n": 1}
        methods.gate.set()
        slow.join(PATIENCE)


def test_a_late_reply_never_answers_another_request(place, methods):
    with serving(place, methods), SocketClient(place, timeout=0.1) as client:
        with pytest.raises(TimedOut):
            client.call("hold")
        methods.gate.set()
        for n in range(20):
            assert client.request("echo", {"n": n}, timeout=PATIENCE) == {"n": n}


def test_it_connects_anew_after_a_restart(tmp_path):
    server = Server(tmp_path, DETERMINISTIC)
    with server:
        client = SocketClient(server.socket)
        stored = client.memory_store(**texts(1))
    with pytest.raises(ProcessLost):
        client.memory_status()
    with server:
        assert client.memory_export()["memories"][0]["id"] == stored["id"]
        server.process.kill()
        server.process.wait()
        with pytest.raises(ProcessLost):
            client.memory_status()
        server.process.stdout.close()
        server.process.stderr.close()
        server.process = server.run()
        assert client.memory_status()["memory_count"] == 1
    client.close()


@contextmanager
def answering(place: Path, *replies: bytes) -> Iterator[list[bytes]]:
    """A server that answers each connection with one of the replies, and counts what it got."""
    got: list[bytes] = []

    def answer() -> None:
        for reply in replies:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as lines:
                got.append(lines.readline())
                request_id = json.loads(got[-1])["id"]
                connection.sendall(reply.replace(b"ID", request_id.encode()))

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        thread = threading.Thread(target=answer)
        thread.start()
        yield got
        thread.join(PATIENCE)


GOOD = b'{"id":"ID","ok":true,"data":5,"error":null}\n'


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b'{"id":"ID","ok":true',
        b"hello\n",
        b"5\n",
        b'{"id":"other","ok":true,"data":5,"error":null}\n',
        b'{"id":"","ok":true,"data":5,"error":null}\n',
        b'{"id":"ID","ok":true,"error":null}\n',
        b'{"id":"ID","ok":false,"data":null,"error":null}\n',
        b'{"id":"ID","ok":false,"data":null,"error":{"code":"1","message":"x"}}\n',
        b"[" * 100_000 + b"\n",
        GOOD + GOOD,
    ],
)
def test_what_is_no_reply_is_none_and_nothing_is_sent_twice(place, reply):
    with answering(place, reply, GOOD) as got, SocketClient(place) as client:
        with pytest.raises(ProcessLost):
            client.call("first")
        assert client.call("second") == 5
    assert [json.loads(line)["method"] for line in got] == ["first", "second"]


def test_the_answer_to_an_oversized_line_has_no_id(place, methods):
    with serving(place, methods, max_line_bytes=100_000), SocketClient(place) as client:
        with pytest.raises(RequestFailed) as failed:
            client.call("echo", text="x" * 200_000)
        assert failed.value.number == 4000
        assert client.call("echo", n=1) == {"n": 1}


def test_what_nests_too_deep_is_refused_before_it_is_sent(place):
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with SocketClient(place) as client, pytest.raises(ValueError, match="nests too deep"):
        client.call("echo", value=deep)


def test_without_a_server(place):
    with SocketClient(place) as client, pytest.raises(ProcessLost, match="engram server"):
        client.memory_status()


@pytest.mark.parametrize(
    ("timeout", "error"),
    [(0, InvalidArgument), (-1, InvalidArgument), (float("nan"), InvalidArgument),
     (10**9, InvalidArgument), ("5", InvalidType), (True, InvalidType)],
)  # fmt: skip
def test_times_it_does_not_take(place, timeout, error):
    with pytest.raises(error, match="timeout"):
        SocketClient(place, timeout=timeout)


def test_a_forked_process_has_connections_of_its_own(place, methods):
    program = f"""
import os
from engram.server.client import SocketClient
client = SocketClient({str(place)!r})
assert client.call("echo", n=0) == {{"n": 0}}
child = os.fork()
for n in range(200):
    assert client.call("echo", me=os.getpid(), n=n) == {{"me": os.getpid(), "n": n}}
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    with serving(place, methods):
        subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)


def test_it_imports_nothing_of_the_engine():
    program = (
        "import sys, engram.server.client;"
        "print({'numpy', 'apsw', 'msgspec', 'engram.storage'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout == "set()\n", done.stderr
