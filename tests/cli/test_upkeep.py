"""`decay`, `prune`, `backup`, `compact`, `verify`, `reembed` and `events verify`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_segments import LIMITS
from stand_ins import Clock, WordEmbedder

from engram import Engram


@pytest.fixture
def faded(path, run):
    """A store whose first episode faded years ago."""
    with Engram(path, clock=Clock(), agent_id="ana") as memory:
        memory.observe("an old\nremark " + "on and on " * 10, salience=0.1)
    assert run("observe", path, "a new remark", "--agent-id", "ben").code == 0
    return path


def test_decay(run, faded):
    assert run("decay", faded).lines == ["Updated the importance of 2 episodes"]
    document = run("decay", faded, "--agent-id", "ana", "--json").document
    assert document == {"path": str(faded), "agent_id": "ana", "updated": 1}


def test_pruning_is_shown_before_it_is_done(run, faded):
    document = run("prune", faded, "--json").document
    (uid,) = document["ids"]
    assert (document["erased"], document["episodes"][0]["id"]) == (False, uid)
    shown = "an old remark " + "on and on " * 4 + "on an…"
    assert run("prune", faded).lines == [
        f"  {uid}  2026-01-01  {shown[:59]}…",
        "1 episode would be erased; --yes erases",
    ]
    assert run("prune", faded, "--agent-id", "ben", "--json").document["ids"] == []
    assert run("inspect", faded, "--json").document["episodes"] == 2
    done = run("prune", faded, "--yes", "--json").document
    assert done == {
        "path": str(faded),
        "agent_id": None,
        "threshold": None,
        "erased": True,
        "ids": [uid],
        "episodes": None,
    }
    assert run("prune", faded, "--yes").lines == ["Erased 0 episodes"]
    assert run("inspect", faded, "--json").document["episodes"] == 1
    assert run("prune", faded, "--threshold", "9", "--json").document["ids"]


def test_backup(run, store, tmp_path):
    dest = tmp_path / "copy.engram"
    done = run("backup", store, dest)
    assert done.lines == [f"Backed up {store} to {dest}  ({dest.stat().st_size // 1024} KB)"]
    assert run("inspect", dest, "--json").document["episodes"] == 3
    document = run("backup", store, dest, "--json").document
    assert document == {
        "path": str(store),
        "dest": str(dest),
        "size_bytes": dest.stat().st_size,
    }
    done = run("backup", store, store)
    assert (done.code, done.out) == (1, "")
    assert run("backup", store, tmp_path / "missing" / "x").err.startswith("error: ")


def test_compact(run, path, tmp_path, monkeypatch):
    # As if the store were too large to be rebuilt when it is closed after an erasure.
    monkeypatch.setattr("engram.storage.store_file.REBUILT_BELOW", 0)
    lines = "".join(json.dumps({"content": f"note {n} " * 200}) + "\n" for n in range(40))
    (tmp_path / "notes.jsonl").write_text(lines)
    run("ingest", path, tmp_path / "notes.jsonl")
    run("prune", path, "--threshold", "9", "--yes")
    document = run("compact", path, "--json").document
    assert document["size_bytes_before"] > document["size_bytes"] == path.stat().st_size
    now = f"{path.stat().st_size // 1024} KB"
    assert run("compact", path).lines == [f"Compacted {path}: {now} before, {now} now"]


def test_maintain(run, store, path, tmp_path, monkeypatch):
    for module, name, value in LIMITS:
        monkeypatch.setattr(module, name, value)
    document = run("maintain", store, "--json").document
    size = store.stat().st_size
    assert document == {"path": str(store), "size_bytes": size, "index_bytes": 0}
    lines = "".join(json.dumps({"content": f"note {n}"}) + "\n" for n in range(300))
    (tmp_path / "notes.jsonl").write_text(lines)
    run("ingest", path, tmp_path / "notes.jsonl")
    folder = Path(f"{path}-index")
    document = run("maintain", path, "--json").document
    assert document["index_bytes"] == sum(f.stat().st_size for f in folder.iterdir()) > 0
    size, index = (f"{document[name] // 1024} KB" for name in ("size_bytes", "index_bytes"))
    assert run("maintain", path).lines == [f"Maintained {path}: {size}, index {index}"]


def test_a_sound_store_is_said_to_be(run, store):
    assert run("verify", store).lines == [f"{store} is sound"]
    document = run("verify", store, "--json").document
    assert document == {"path": str(store), "ok": True, "problems": []}


def test_problems_are_listed_and_exit_with_1(run, store, monkeypatch):
    monkeypatch.setattr(Engram, "check", lambda _: ["one thing", "another"])
    done = run("verify", store)
    assert (done.code, done.lines) == (1, ["  one thing", "  another"])
    assert done.err == f"error: {store} has 2 problems (restore a backup)\n"
    done = run("verify", store, "--json")
    assert (done.code, json.loads(done.out)["problems"]) == (1, ["one thing", "another"])
    assert json.loads(done.err)["error"]["code"] == "corrupt_store"


def test_reembed_moves_a_store_to_another_model(run, path):
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.observe_many([])
        memory.observe("Ben keeps bees")
        memory.observe("Pancakes need two eggs")
    done = run("recall", path, "insects")
    assert (done.code, done.out) == (1, "")
    assert "embedder=" in done.err
    document = run("reembed", path, "--model", "all-MiniLM-L6-v2-int8", "--json").document
    assert document.pop("seconds") >= 0
    assert document == {
        "path": str(path),
        "model": "all-MiniLM-L6-v2-int8",
        "previous_model": None,
        "episodes": 2,
    }
    found = run("recall", path, "insects", "--mode", "cosine", "--json").document["results"]
    assert found[0]["episode"]["content"] == "Ben keeps bees"
    lines = run("reembed", path, "--model", "all-MiniLM-L6-v2-int8").lines
    assert lines[0].startswith("Embedded 0 episodes in ")
    assert lines[1] == "  Model: all-MiniLM-L6-v2-int8 (384 dimensions)"


def test_reembed_needs_a_model_that_is_here(run, store):
    assert run("reembed", store).code == 2
    done = run("reembed", store, "--model", "nowhere/model")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: there is no embedding model 'nowhere/model'")


@pytest.fixture
def log(run, path, tmp_path, monkeypatch):
    file = tmp_path / "events.ndjson"
    monkeypatch.setenv("ENGRAM_EVENTS_PATH", str(file))
    for text in ("one", "two"):
        run("observe", path, text, "--agent-id", "agent://example.org/ana")
    return file


def test_a_log_of_events_is_checked(run, log):
    assert run("events", "verify", log).lines == [f"{log} is sound"]
    first, second = log.read_text().splitlines()
    log.write_text(f"{first.replace('info', 'high')}\n{second}\n")
    done = run("events", "verify", log)
    assert done.code == 1
    assert done.lines[0].startswith("  line 2: ")
    assert done.err == f"error: {log} has 1 problem\n"
    document = json.loads(run("events", "verify", log, "--json").out)
    assert (document["ok"], len(document["problems"])) == (False, 1)


def test_a_missing_log_is_an_error(run, tmp_path):
    done = run("events", "verify", tmp_path / "none")
    assert (done.code, done.err) == (1, f"error: {tmp_path / 'none'}: No such file or directory\n")
