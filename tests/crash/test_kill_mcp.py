"""kill -9 of an MCP server amid writes: whatever it acknowledged is there and found afterwards.

`--kills N` sets how often; state accumulates from kill to kill.
"""

from __future__ import annotations

import json
import random

import pytest
from mcp_wire import PROFILES, Wire

from engram import Engram

# At most this many calls are under way when it is killed.
AHEAD = 8

STORES = {"engram": "agent.engram", "memory": "project.engram"}


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
        while len(begun) < AHEAD:
            text = " ".join(f"w{chance.randrange(10**9):09}" for _ in range(4))
            begun[wire.begin("tools/call", call(profile, text))] = text
        if len(acknowledged) == until:
            wire.process.kill()
            until = -1
        line = wire.process.stdout.readline() if until < 0 else wire.line()
        if not line.endswith(b"\n"):
            return acknowledged
        answer = json.loads(line)
        assert not answer["result"]["isError"], answer
        acknowledged[answer["result"]["structuredContent"]["id"]] = begun.pop(answer["id"])


@pytest.mark.parametrize("profile", PROFILES)
def test_what_was_acknowledged_survives(profile, tmp_path, request):
    kills = request.config.getoption("kills")
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
        for memory_id, text in acknowledged.items():
            if profile == "engram":
                found = wire.done("recall", {"query": text.split()[2]})["result"]
            else:
                found = wire.done("memory_search", {"query": text.split()[2]})["results"]
            assert memory_id in [one["id"] for one in found]
