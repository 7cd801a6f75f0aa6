"""A short form of `benchmarks/socket_load.py`: many clients at once, every reply right."""

from __future__ import annotations

import asyncio
from pathlib import Path

import socket_load

CLIENTS = 40
ROUNDS = 4
MEGABYTES = 64.0
"""What memory may grow by after two rounds: three times what the index, the cache and the mapped
file take for what is stored."""


def test_no_reply_is_wrong_or_missing_under_load():
    told = socket_load.main(
        ["--clients", "40", "--requests", "15", "--seconds", "600", "--provider", "deterministic"]
    )
    assert (told["wrong"], told["errors"]) == ({}, {})
    assert told["requests"] == CLIENTS * 15
    assert set(told["methods"]) == {"memory_store", "memory_search", "memory_judge"}
    assert len(told["resident_mb"]) >= 2


def test_memory_stays_flat_under_load(tmp_path: Path):
    async def rounds() -> list[float]:
        async with socket_load.server(tmp_path, "deterministic") as (path, process_id):
            said = [
                await socket_load.load(path, process_id, range(n, n + CLIENTS), 600.0, 15)
                for n in range(0, ROUNDS * CLIENTS, CLIENTS)
            ]
        assert not any(told.wrong or told.errors for told in said)
        return [told.resident[-1][1] for told in said]

    _, warm, *later = asyncio.run(rounds())
    assert max(later) - warm < MEGABYTES, (warm, later)
