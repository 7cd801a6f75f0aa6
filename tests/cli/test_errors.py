"""No command answers a user's mistake with a traceback."""

from __future__ import annotations

import pytest

READERS = {
    "inspect": [],
    "recall": ["q"],
    "list-agents": [],
    "facts": [],
    "timeline": ["x"],
    "why": ["x"],
    "contradictions": [],
    "forget": ["--episode", "x"],
    "reflect": [],
    "decay": [],
    "prune": [],
    "backup": ["dest"],
    "rekey": ["--remove"],
    "compact": [],
    "maintain": [],
    "verify": [],
    "export": ["dest"],
    "reembed": ["--model", "all-MiniLM-L6-v2-int8"],
}
WRITERS = {"observe": ["x"], "assert": ["a", "b", "c"]}


@pytest.mark.parametrize("command", READERS)
def test_a_missing_store_is_an_error_and_is_not_made(run, tmp_path, command):
    missing = tmp_path / "missing.engram"
    done = run(command, missing, *READERS[command])
    assert (done.code, done.out, done.err) == (1, "", f"error: file not found: {missing}\n")
    assert run(command, missing, *READERS[command], "--json").error["code"] == "file_not_found"
    assert not missing.exists()


@pytest.mark.parametrize("command", READERS | WRITERS)
def test_what_is_no_store_is_an_error(run, tmp_path, command):
    arguments = (READERS | WRITERS)[command]
    text = tmp_path / "text.engram"
    text.write_text("no database at all, and long enough to be looked at" * 100)
    done = run(command, text, *arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: the file is not an engram store")
    done = run(command, tmp_path, *arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: not a file: {tmp_path}")
