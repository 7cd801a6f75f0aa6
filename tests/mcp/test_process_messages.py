"""What is no message, or none that this server knows, ends nothing."""

from __future__ import annotations

import json

import pytest
from mcp_wire import PROFILES, STATUS, Wire

from engram.mcp.messages import LONGEST

profiles = pytest.mark.parametrize("profile", PROFILES)

PARSE, INVALID, TEXT = -32700, -32600, -32602
TOO_DEEP = b"[" * 300 + b"]" * 300

# Each line, and the code and the id that it is answered with; None where it is not.
MALFORMED = [
    (b"\n", None),
    (b" \r\n", None),
    (b"{\n", (PARSE, None)),
    (b"nonsense\n", (PARSE, None)),
    (b"[]\n", (INVALID, None)),
    (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]\n', (INVALID, None)),
    (b"null\n", (INVALID, None)),
    (b'"text"\n', (INVALID, None)),
    (b"{}\n", (INVALID, None)),
    (b'{"id":7,"method":"ping"}\n', (INVALID, 7)),
    (b'{"a":"\\ud800"}\n', (TEXT, None)),
    (b'{"jsonrpc":"1.0","id":"seven","method":"ping"}\n', (INVALID, "seven")),
    (b'{"jsonrpc":"2.0","id":[],"method":"ping"}\n', (INVALID, None)),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', (INVALID, None)),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', (INVALID, None)),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', (INVALID, 1.5)),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}\n', (INVALID, None)),
    (b'{"jsonrpc":"2.0","id":7}\n', (INVALID, 7)),
    (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}\n', (INVALID, 7)),
    (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":%b}}\n' % TOO_DEEP, (INVALID, 7)),
    (b'{"jsonrpc":"2.0","id":7,"result":{}}\n', None),
    (b'{"jsonrpc":"2.0","id":7,"result":1}\n', None),
    (b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}\n', None),
    (b'{"jsonrpc":"2.0","method":"notifications/nothing","params":{}}\n', None),
    (b'{"jsonrpc":"2.0","method":"notifications/nothing","params":{"a":"\\ud800"}}\n', None),
    (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}\n', None),
    (b"\xff\xfe\x00\n", (PARSE, None)),
    (b'canary-47 {"jsonrpc": \xff}\n', (PARSE, None)),
    (b"\xef\xbb\xbf" + b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n', (INVALID, 9)),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping\xff"}\n', (PARSE, None)),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":"\xff"}}\n', (PARSE, None)),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":NaN}}\n', (PARSE, None)),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":"\\ud800"}}\n', (TEXT, 8)),
    (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"\\udc00":1}}\n', (TEXT, 8)),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}\n', (TEXT, "\ud800")),
    (b"[" * 100_000 + b"\n", (PARSE, None)),
    (b'{"a":' * 10_000 + b"\n", (PARSE, None)),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}\n', (PARSE, None)),
    (b"x" * (8 << 20) + b"\n", (PARSE, None)),
]


def test_what_is_no_message_is_answered_and_ends_nothing(tmp_path):
    with Wire(tmp_path) as wire:
        wire.shake()
        for line, expected in MALFORMED:
            wire.send(line)
            wire.send(b'{"jsonrpc":"2.0","id":"after","method":"ping"}\n')
            # Whatever is said of the line may come later than the answer to the next.
            answers = [json.loads(wire.line()) for _ in range(1 if expected is None else 2)]
            after = {"jsonrpc": "2.0", "id": "after", "result": {}}
            assert after in answers, line[:80]
            answers.remove(after)
            told = [(one["error"]["code"], one["id"]) for one in answers]
            assert told == ([] if expected is None else [expected]), line[:80]
        wire.done(STATUS["engram"])
        code, said = wire.finish()
        assert code == 0
        assert "canary" not in said


def test_half_a_pair_in_an_argument_is_answered_and_keeps_nothing(tmp_path):
    """As a JavaScript client writes it, which cut a text in two."""
    with Wire(tmp_path) as wire:
        wire.shake()
        number = wire.begin("tools/call", {"name": "remember", "arguments": {"content": "a\ud83d"}})
        error = wire.answer(number)["error"]
        assert (error["code"], "no Unicode text" in error["message"]) == (TEXT, True)
        assert wire.done("stats")["counts"]["episodic"] == 0


def test_a_line_that_is_too_long_is_answered_and_not_kept(tmp_path):
    with Wire(tmp_path) as wire:
        wire.shake()
        for _ in range(LONGEST // (1 << 20)):
            wire.send(b" " * (1 << 20))
        wire.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        error = wire.answer(None)["error"]
        assert error["code"] == INVALID
        assert str(LONGEST) in error["message"]
        assert wire.ask("ping") == {}


def test_lines_may_end_as_on_windows_and_come_in_parts(tmp_path):
    with Wire(tmp_path) as wire:
        wire.shake()
        for part in (b'{"jsonrpc":"2.0",', b'"id":"a","meth', b'od":"ping"}\r', b"\n"):
            wire.send(part)
        assert wire.answer("a")["result"] == {}


@profiles
def test_unknown_methods_and_tools_are_refused(profile, tmp_path):
    with Wire(tmp_path, PROFILES[profile]) as wire:
        wire.shake()
        assert wire.answer(wire.begin("nothing/here"))["error"]["code"] == -32601
        assert wire.answer(wire.begin("tools/call", {"name": 1}))["error"]["code"] == -32602
        assert wire.answer(wire.begin("tools/call", {}))["error"]["code"] == -32602
        result = wire.call("reflect")
        assert result["isError"]
        assert result["content"][0]["text"] == "Unknown tool: reflect"


@profiles
def test_a_large_argument_arrives(profile, tmp_path):
    text = "wide ✓ " * 5_000
    with Wire(tmp_path, PROFILES[profile]) as wire:
        wire.shake()
        if profile == "engram":
            stored = wire.done("remember", {"content": text})
            assert wire.done("why", {"memory_id": stored["id"]})["content"] == text
        else:
            result = wire.call("memory_store", {"context": text, "action": "a", "result": "r"})
            assert "[6007]" in result["content"][0]["text"]
        assert wire.done(STATUS[profile])


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_clients_are_served(version, tmp_path):
    with Wire(tmp_path) as wire:
        client = {"name": "old", "version": "0"}
        said = wire.ask(
            "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        )
        assert said["protocolVersion"] == version
        wire.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        tools = wire.ask("tools/list")["tools"]
        assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
        assert wire.call(STATUS["engram"])["content"][0]["type"] == "text"
