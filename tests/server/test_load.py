"""A short form of `benchmarks/socket_load.py`: many clients at once, every reply right."""

from __future__ import annotations

import socket_load


def test_no_reply_is_wrong_or_missing_under_load():
    told = socket_load.main(
        ["--clients", "40", "--requests", "15", "--seconds", "600", "--provider", "deterministic"]
    )
    assert (told["wrong"], told["errors"]) == ({}, {})
    assert told["requests"] == 40 * 15
    assert set(told["methods"]) == {"memory_store", "memory_search", "memory_judge"}
