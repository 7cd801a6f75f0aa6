"""kill -9 of an MCP server amid writes: whatever it acknowledged is there afterwards.

`--kills N` sets how often; state accumulates from kill to kill.
"""

from __future__ import annotations

import json
import random

import pytest
from mcp_wire import PROFILES, STORES, Wire

from engram import Engram

# At most this many calls are under way when it is killed.
AHEAD = 8

# That two random texts are taken for the same would be left to chance.
NO_DUPLICATES = "[deduplication]\nthreshold = 1.0\n"


def call(profile: str, text: str) -> dict[str, object]:
    if profile == "engram":
        return {"name": "remember", "arguments": {"content": text}}
    arguments = {"context": text, "action": text[::-1], "result": text.upper()}
    return {"name": "memory_store", "arguments": arguments}


def written_until_killed(wire: Wire, profile: str, seed: int) -> dict[str, str]:
    """What it acknowledged: the text of each memory by its id."""
    chance = random.Random(f"{profile} {seed}")
    begun: dict[int, str] = {}
    acknowledged: dict[str, str] = {}
    until = chance.randrange(1, 40)
    wire.shake()
    while True:
        while until >= 0 and len(begun) < AHEAD:
            text = " ".join(f"w{chance.randrange(10**9):09}" for _ in range(4))
            begun[wire.begin("tools/call", call(profile, text))] = text
        if len(acknowledged) == until:
            wire.process.kill()
            until = -1
        line = wire.line()
        if not line.endswith(b"\n"):
            return acknowledged
        answer = json.loads(line)
        assert not answer["result"]["isError"], answer
        acknowledged[answer["result"]["structuredContent"]["id"]] = begun.pop(answer["id"])


def kept(wire: Wire, profile: str, acknowledged: dict[str, str]) -> dict[str, str]:
    """The texts that the memories have now, as a search or an export tells them."""
    if profile == "engram":
        found = (wire.done("recall", {"query": text})["result"] for text in acknowledged.values())
        return {best["id"]: best["content"] for best, *_ in found}
    exported = {one["id"]: one for one in wire.done("memory_export")["memories"]}
    for one, text in acknowledged.items():
        told = call(profile, text)["arguments"]
        assert {key: exported[one][key] for key in told} == told
    return {one: exported[one]["context"] for one in acknowledged}


@pytest.mark.parametrize("profile", PROFILES)
def test_what_was_acknowledged_survives(profile, tmp_path, request):
    kills = request.config.getoption("kills")
    (tmp_path / ".engram").mkdir()
    (tmp_path / ".engram/engram.toml").write_text(NO_DUPLICATES)
    acknowledged: dict[str, str] = {}
    for seed in range(kills):
        with Wire(tmp_path, PROFILES[profile]) as wire:
            acknowledged |= written_until_killed(wire, profile, seed)
        with Engram(tmp_path / STORES[profile]) as memory:
            assert memory.check() == []
            assert len(acknowledged) <= memory.counts().episodes
            assert memory.counts().episodes <= len(acknowledged) + AHEAD * (seed + 1)
    with Wire(tmp_path, PROFILES[profile]) as wire:
        wire.shake()
        assert kept(wire, profile, acknowledged) == acknowledged
