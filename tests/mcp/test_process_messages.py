"""What is no message, or none that this server knows, ends nothing."""

from __future__ import annotations

import json

import pytest
from mcp_wire import PROFILES, STATUS, Wire

profiles = pytest.mark.parametrize("profile", PROFILES)

MALFORMED = [
    b"\n",
    b"{\n",
    b"nonsense\n",
    b"[]\n",
    b"[1,2]\n",
    b"null\n",
    b'"text"\n',
    b"{}\n",
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":[],"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":7}\n',
    b'{"jsonrpc":"2.0","id":7,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/nothing","params":{}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}\n',
    b"\xff\xfe\x00\n",
    b'canary-47 {"jsonrpc": \xff}\n',
    b'{"jsonrpc":"2.0","id":8,"method":"ping\xff"}\n',
    b"\xef\xbb\xbf" + b'{"jsonrpc":"2.0","id":9,"method":"nothing"}\n',
    b"[" * 100_000 + b"\n",
    b'{"a":' * 10_000 + b"\n",
    b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}\n',
    b"x" * (8 << 20) + b"\n",
]


def test_what_is_no_message_ends_nothing(tmp_path):
    with Wire(tmp_path) as wire:
        wire.shake()
        for line in MALFORMED:
            wire.send(line)
            wire.send(b'{"jsonrpc":"2.0","id":"after","method":"ping"}\n')
            # Whatever it says about the line comes before.
            while (message := json.loads(wire.line())).get("id") != "after":
                assert "error" in message or "method" in message, message
            assert message["result"] == {}, line[:80]
        wire.done(STATUS["engram"])
        code, said = wire.finish()
        assert code == 0
        assert "canary" not in said


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
