"""Framing: one reply for each line, whatever is in it, and none harms the next."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from socket_server import Peer, StandIn, request, serving

GOOD = request("echo", {"n": 1}, "good")
LARGEST = 300_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("s") / "engram.sock"
    with serving(place, StandIn(), max_line_bytes=LARGEST):
        yield place


@pytest.fixture
def peer(path: Path):
    with Peer(path) as connected:
        yield connected


def padded(size: int) -> bytes:
    """A request of so many bytes, its newline not counted."""
    frame = b'{"id":"padded","method":"echo","params":"%s"}'
    return frame % (b"x" * (size - len(frame) + 2)) + b"\n"


def nested(levels: int) -> bytes:
    """A request that nests so deep, its own level counted."""
    return b'{"id":"n","method":"echo","params":%s%s}\n' % (
        b"[" * (levels - 1),
        b"]" * (levels - 1),
    )


def told(reply: dict) -> tuple[str, object]:
    return reply["id"], "ok" if reply["ok"] else reply["error"]["code"]


UNREAD = ("", 4000)

FRAMES = {
    "blank": (b"\n", UNREAD),
    "spaces": (b" \t \n", UNREAD),
    "CR alone": (b"\r\n", UNREAD),
    "syntax": (b'{"id":"a","method":}\n', UNREAD),
    "text": (b"hello\n", UNREAD),
    "single quotes": (b"{'id':'a'}\n", UNREAD),
    "trailing comma": (b'{"id":"a","method":"echo",}\n', UNREAD),
    "two values": (b'{"id":"a","method":"echo"} {}\n', UNREAD),
    "BOM": (b'\xef\xbb\xbf{"id":"a","method":"echo"}\n', UNREAD),
    "NaN": (b'{"id":"a","method":"echo","params":{"x":NaN}}\n', UNREAD),
    "infinity": (b'{"id":"a","method":"echo","params":{"x":-Infinity}}\n', UNREAD),
    "overflow": (b'{"id":"a","method":"echo","params":{"x":1e999}}\n', UNREAD),
    "lone surrogate": (b'{"id":"a","method":"echo","params":{"x":"\\ud800"}}\n', UNREAD),
    "lone low surrogate": (b'{"id":"\\uDC00","method":"echo"}\n', UNREAD),
    "surrogate pair": (b'{"id":"\\ud83d\\ude00","method":"echo"}\n', ("\U0001f600", "ok")),
    "an escaped backslash": (b'{"id":"\\\\ud800","method":"echo"}\n', ("\\ud800", "ok")),
    "id twice": (b'{"id":"a","id":"b","method":"echo"}\n', UNREAD),
    "a name twice below": (b'{"id":"a","method":"echo","params":{"x":1,"x":2}}\n', UNREAD),
    "no UTF-8": (b'{"id":"a","method":"echo\xff"}\n', UNREAD),
    "encoded surrogate": (b'{"id":"\xed\xa0\x80","method":"echo"}\n', UNREAD),
    "NUL": (b'{"id":"\x00","method":"echo"}\n', UNREAD),
    "array": (b'["a","echo",{}]\n', UNREAD),
    "string": (b'"echo"\n', UNREAD),
    "number": (b"1\n", UNREAD),
    "null": (b"null\n", UNREAD),
    "empty object": (b"{}\n", UNREAD),
    "numeric id": (b'{"id":7,"method":"echo"}\n', UNREAD),
    "null id": (b'{"id":null,"method":"echo"}\n', UNREAD),
    "boolean id": (b'{"id":true,"method":"echo"}\n', UNREAD),
    "no id": (b'{"method":"echo","params":{}}\n', UNREAD),
    "no method": (b'{"id":"a","params":{}}\n', ("a", 4000)),
    "method null": (b'{"id":"a","method":null}\n', ("a", 4000)),
    "method a number": (b'{"id":"a","method":3}\n', ("a", 4000)),
    "empty id": (b'{"id":"","method":"echo"}\n', ("", "ok")),
    "long id": (b'{"id":"%s","method":"echo"}\n' % (b"i" * 5000), ("i" * 5000, "ok")),
    "id in any script": ('{"id":"ключ 鍵\u2028","method":"echo"}\n'.encode(), ("ключ 鍵\u2028", "ok")),  # noqa: E501
    "newline in an id": (b'{"id":"a\\nb","method":"echo"}\n', ("a\nb", "ok")),
    "no params": (b'{"id":"a","method":"echo"}\n', ("a", "ok")),
    "params null": (b'{"id":"a","method":"echo","params":null}\n', ("a", "ok")),
    "more members": (b'{"jsonrpc":"2.0","id":"a","method":"echo","x":[]}\n', ("a", "ok")),
    "any order": (b'{"params":{},"method":"echo","id":"a"}\n', ("a", "ok")),
    "unknown method": (b'{"id":"a","method":"memory_guess"}\n', ("a", 6007)),
    "no result": (b'{"id":"a","method":"missing"}\n', ("a", 1002)),
    "failing method": (b'{"id":"a","method":"broken"}\n', ("a", 6006)),
    "a result JSON has no form for": (b'{"id":"a","method":"nonsense"}\n', ("a", 6006)),
    "CRLF": (b'{"id":"a","method":"echo"}\r\n', ("a", "ok")),
    "spaces around": (b' \t{"id":"a","method":"echo"} \t\n', ("a", "ok")),
    "deep enough": (nested(128), ("n", "ok")),
    "too deep": (nested(129), UNREAD),
    "far too deep": (b"[" * 60_000 + b"\n", UNREAD),
    "brackets in a string": (b'{"id":"%s","method":"echo"}\n' % (b"[" * 190), ("[" * 190, "ok")),
    "the largest": (padded(LARGEST), ("padded", "ok")),
    "a byte more": (padded(LARGEST + 1), UNREAD),
    "much more": (padded(LARGEST * 5 + 17), UNREAD),
    "large and no UTF-8": (b"\xff" * LARGEST * 2 + b"\n", UNREAD),
}  # fmt: skip


def test_every_line_has_one_reply_and_none_harms_the_next(path):
    with Peer(path) as peer:
        found = {}
        for name, (frame, _) in FRAMES.items():
            peer.send(frame)
            reply = peer.reply()
            found[name] = told(reply)
            if reply["error"] and reply["error"]["code"] == 4000:
                assert reply["error"]["message"].startswith("[4000] invalid json: ")
            assert peer.ask("echo", {"n": 1}, "good")["data"] == {"n": 1}
    assert found == {name: expected for name, (_, expected) in FRAMES.items()}


def test_lines_sent_at_once_are_answered_in_order(peer):
    peer.send(b"".join(frame for name, (frame, _) in FRAMES.items() if len(frame) < 10_000))
    expected = [told for frame, told in FRAMES.values() if len(frame) < 10_000]
    assert [told(peer.reply()) for _ in expected] == expected


def test_missing_and_null_parameters_are_none(peer):
    for params in (b"", b',"params":null', b',"params":{}'):
        peer.send(b'{"id":"a","method":"echo"%s}\n' % params)
        assert peer.reply()["data"] == {}
    for params in ([], 5, "x", False):
        assert peer.ask("echo", params)["data"] == params


def test_replies_are_ascii_on_one_line(peer):
    text = "строка\n\u2028\u0085\U0001f600\x00"
    peer.send(request("echo", {"text": text}))
    line = peer.socket.recv(65_536)
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line)["data"] == {"text": text}


def test_the_last_line_needs_no_newline(path):
    for data, expected in (
        (GOOD + GOOD.strip(), [("good", "ok")] * 2),
        (b'{"id":', [UNREAD]),
        (b"x" * LARGEST * 2, [UNREAD]),
        (GOOD + b"\r", [("good", "ok"), UNREAD]),
        (GOOD, [("good", "ok")]),
        (b"", []),
    ):
        with Peer(path) as peer:
            peer.send(data)
            peer.finish()
            lines = peer.rest().splitlines()
        assert [told(json.loads(line)) for line in lines] == expected


def test_a_line_may_come_in_pieces(peer):
    line = request("echo", {"text": "é" * 100}, "pieces")
    for at in range(0, len(line), 7):
        peer.send(line[at : at + 7])
    assert peer.reply()["data"] == {"text": "é" * 100}
    peer.send(GOOD[:5])
    peer.send(GOOD[5:] + GOOD + GOOD[:9])
    peer.send(GOOD[9:])
    assert [peer.reply()["id"] for _ in range(3)] == ["good"] * 3


def test_what_fails_is_not_quoted(peer, capfd):
    for frame in (b'{"id":"a","method":"broken"}\n', b'{"id":"a" secret words}\n'):
        peer.send(frame)
        assert "secret" not in peer.reply()["error"]["message"]
    said = capfd.readouterr().err
    assert re.fullmatch(r"engram: RuntimeError at engram\.server\.workers:\d+\n", said)


PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"null", b"1e999", b"NaN", b"\xff",
     b"\xef\xbb\xbf", b'"id":"x"', b'"method":"echo"', b'"params":{}', b"\\ud800", b" ",
     b"\r", b"\x00", b"-0"]
)  # fmt: skip
NOISE = st.one_of(
    st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"")),
    st.lists(PIECES, max_size=12).map(b"".join),
    st.text(max_size=50).map(lambda text: text.replace("\n", "").encode("utf-8", "surrogatepass")),
)


@settings(max_examples=300)
@given(st.lists(NOISE, max_size=12))
@example([b""] * 3)
def test_any_bytes_have_as_many_replies_as_lines(path, lines):
    with Peer(path) as peer:
        peer.send(b"".join(line + b"\n" for line in lines) + GOOD)
        for _ in lines:
            assert told(peer.reply())[1] in ("ok", 4000, 6006, 6007)
        assert told(peer.reply()) == ("good", "ok")
        peer.finish()
        assert peer.rest() == b""
