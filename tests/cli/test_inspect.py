"""`engram inspect` and `engram list-agents` as section 14 documents them."""

from __future__ import annotations

import pytest

from engram import Engram


def test_the_counts_as_people_read_them(run, store):
    size = store.stat().st_size
    done = run("inspect", store)
    assert (done.code, done.err) == (0, "")
    assert done.lines[:6] == [
        "",
        f"Store: {store}  ({size // 1024} KB)",
        "  Episodes:            3   (vec index: 3)",
        "  Facts:               0   (active: 0, superseded: 0)",
        "  Entities:            0",
        "  Reflections:         0   (never run)",
    ]


def test_for_an_agent_it_says_whose_counts_they_are(run, store):
    lines = run("inspect", store, "--agent-id", "ben").lines
    assert lines[2] == "Agent: ben"
    assert lines[3] == "  Episodes, vec index and reflections are this agent's;"
    assert lines[4] == "  facts and entities are counted over the whole file."
    assert lines[5] == "  Episodes:            1   (vec index: 1)"


def test_from_one_mebibyte_up_the_size_is_in_megabytes(run, path):
    with Engram(path):
        pass
    with path.open("ab") as file:
        file.truncate(3 * 1024 * 1024 // 2)
    assert run("inspect", path).lines[1] == f"Store: {path}  (1.5 MB)"


def test_json(run, store):
    document = run("inspect", store, "--json", "--agent-id", "ana").document
    assert document.pop("size_bytes") > 0
    assert document == {
        "path": str(store),
        "agent_id": "ana",
        "episodes": 2,
        "vector_index_size": 2,
        "facts_total": 0,
        "facts_active": 0,
        "facts_superseded": 0,
        "entities": 0,
        "reflections": 0,
        "last_reflection": None,
        "model": {
            "name": "all-MiniLM-L6-v2-int8",
            "fingerprint": Engram(store).model().fingerprint,
            "dim": 384,
        },
    }
    assert run("inspect", store).lines[-1] == (
        "  Model:          all-MiniLM-L6-v2-int8 (384 dimensions)"
    )


def test_in_memory(run):
    assert run("inspect", ":memory:").lines[1] == "Store: :memory:  (0 KB)"
    assert run("inspect", ":memory:", "--json").document["episodes"] == 0


def test_agents(run, store):
    assert run("list-agents", store).lines == [f"Agents in {store}", "  ana", "  ben"]
    document = run("list-agents", store, "--json").document
    assert document == {"path": str(store), "agents": ["ana", "ben"]}


def test_no_agents(run, path):
    run("observe", path, "nobody's")
    assert run("list-agents", path).lines == [
        f"Agents in {path}",
        "  (no agents found — store has no agent-scoped episodes)",
    ]


@pytest.mark.parametrize("command", ["inspect", "list-agents"])
def test_what_is_no_store_is_an_error(run, tmp_path, command):
    missing = tmp_path / "missing.engram"
    assert run(command, missing).err == f"error: file not found: {missing}\n"
    assert run(command, missing, "--json").error == {
        "code": "file_not_found",
        "message": f"file not found: {missing}",
        "hint": "",
    }
    text = tmp_path / "text.engram"
    text.write_text("no database at all, and long enough to be looked at" * 100)
    done = run(command, text)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: the file is not an engram store")
    assert run(command, text, "--json").error["code"] == "not_a_store"
    assert run(command, tmp_path).err.startswith(f"error: not a file: {tmp_path}")
    assert run(command, "\udcff.engram", "--json").error["code"] == "file_not_found"
    assert run(command, "\udcff.engram").code == 1
