"""`engram forget`, `set-status`, `invalidate` and `restore` on the configured store."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from files import every_byte

from engram import Engram
from engram.engine.session import Session
from engram.ledger import Ledger


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("ENGRAM_") and "MODEL" not in name:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def config(tmp_path: Path, path: Path) -> Path:
    file = tmp_path / "settings.yaml"
    file.write_text(f"db_path: {path}\n")
    return file


@pytest.fixture
def store(run, config, path) -> Path:
    """The configured store, with the memories `a`, `b` and `c` of one project."""
    for uid in "abc":
        done = run(
            "--config", config, "remember", f"zebrafish {uid}", "--project", "/p", "--id", uid,
            "--created-at", "1e9",
        )  # fmt: skip
        assert done.code == 0
    return path


def found(store: Path) -> list[str]:
    with Ledger(store) as ledger:
        return [memory.id for memory in ledger.recent("/p")]


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (["forget", "a", "b"], "hidden"),
        (["invalidate", "a", "b"], "invalidated"),
        (["set-status", "a", "superseded"], "status superseded"),
    ],
)
def test_what_is_taken_away_comes_back(run, config, store, command, state):
    done = run("--config", config, *command, "--reason", "a test", "--json").document
    assert done["state"] == state
    assert "a" in done["ids"]
    assert found(store) == [uid for uid in "abc" if uid not in done["ids"]]
    assert run("--config", config, "restore", *done["ids"]).code == 0
    assert found(store) == ["a", "b", "c"]
    with Ledger(store) as ledger:
        history = [(action, reason) for action, reason, _ in ledger.lifecycle_of("a")]
    assert [reason for _, reason in history] == ["a test", None]
    with Engram(store) as memory:
        assert memory.check() == []


def test_it_says_what_it_did(run, config, store):
    assert run("--config", config, "forget", "a", "b").lines == ["Hidden: a", "Hidden: b"]
    assert run("--config", config, "restore", "a").lines == ["Restored: a"]
    assert run("--config", config, "invalidate", "a").lines == ["Invalidated: a"]
    assert run("--config", config, "set-status", "a", "merged").lines == ["Status merged: a"]


def test_what_is_hidden_is_there_and_what_is_erased_is_not(run, config, store):
    assert run("--config", config, "forget", "a").code == 0
    assert b"zebrafish a" in every_byte(store)
    assert run("--config", config, "forget", "a", "b", "--erase").lines == [
        "Erased: a",
        "Erased: b",
    ]
    assert b"zebrafish a" not in every_byte(store)
    assert b"zebrafish b" not in every_byte(store)
    gone = run("--config", config, "restore", "a")
    assert (gone.code, found(store)) == (1, ["c"])


def test_a_fact_is_erased_under_the_id_it_is_listed_by(run, config, store):
    with Engram(store) as memory:
        fact = memory.assert_fact("Ann", "likes", "tea", source="a")
    assert f"fact:{fact}" in found(store)
    assert run("--config", config, "forget", f"fact:{fact}", "--erase").code == 0
    assert found(store) == ["a", "b", "c"]


def test_a_check_observation_is_hidden_or_erased(run, config, store):
    with Ledger(store) as ledger:
        at = time.time()
        uid = ledger.put_evidence(
            "/p", session_id="s", assumption_id="a", evidence_id="e", outcome="supported",
            observed_at=at, expires_at=at + 600, observation={"seen": "Xylophone"},
            provenance={"producer": "p", "check_type": "c"},
        ).id  # fmt: skip
        assert run("--config", config, "forget", uid, "--reason", "a Marimba").code == 0
        assert ledger.get_evidence("/p", uid).reason == "forgotten"
    assert b"Xylophone" in every_byte(store)
    assert run("--config", config, "forget", uid, "--erase").lines == [f"Erased: {uid}"]
    assert b"Xylophone" not in every_byte(store)
    assert b"Marimba" not in every_byte(store)
    again = run("--config", config, "forget", uid, "--erase", "--json")
    assert (again.code, again.error["code"]) == (1, "not_found")
    with Ledger(store) as ledger, Engram(store) as memory:
        assert ledger.get_evidence("/p", uid).reason == "not_found"
        assert memory.check() == []


@pytest.mark.parametrize(
    "command", [["forget"], ["forget", "--erase"], ["invalidate"], ["restore"], ["set-status"]]
)
def test_an_unknown_id_is_a_failure(run, config, store, command):
    status = ["merged"] if command == ["set-status"] else []
    failed = run("--config", config, *command, "nobody", *status, "--json")
    assert (failed.code, failed.error["code"]) == (1, "not_found")
    assert "nobody" in failed.error["message"]
    assert found(store) == ["a", "b", "c"]


@pytest.mark.parametrize("command", [["forget"], ["forget", "--erase"], ["invalidate"]])
def test_one_unknown_id_keeps_all_as_they_were(run, config, store, command):
    failed = run("--config", config, *command, "a", "nobody", "b")
    assert (failed.code, failed.out) == (1, "")
    assert "nobody" in failed.err
    assert found(store) == ["a", "b", "c"]


@pytest.mark.parametrize("command", [["forget"], ["forget", "--erase"], ["invalidate"]])
def test_an_id_that_is_given_twice_counts_once(run, config, store, command):
    assert run("--config", config, *command, "a", "a", "--json").document["ids"] == ["a"]
    assert found(store) == ["b", "c"]


@pytest.mark.parametrize("command", ["forget", "invalidate", "restore", "set-status"])
def test_facts_are_not_hidden(run, config, store, command):
    with Engram(store) as memory:
        fact = f"fact:{memory.assert_fact('Ann', 'likes', 'tea', source='a')}"
    status = ["merged"] if command == "set-status" else []
    refused = run("--config", config, command, fact, *status, "--json")
    assert (refused.code, refused.error["code"]) == (1, "invalid_argument")
    assert "fact" in refused.error["message"]
    assert "erase" in refused.error["hint"]
    assert fact in found(store)


def test_what_is_erased_under_a_readers_eyes_is_said(run, config, store, monkeypatch):
    defaults = {**Session.__init__.__kwdefaults__, "busy_timeout": 0.0}
    monkeypatch.setattr(Session.__init__, "__kwdefaults__", defaults)
    with Ledger(store) as reader, reader._reading() as held:
        held.holdings.count(0)
        done = run("--config", config, "forget", "a", "--erase", "--json")
    assert json.loads(done.err)["warning"]["code"] == "not_wiped"
    assert json.loads(done.out) == {"ids": ["a"], "state": "erased", "wiped": False}
    assert run("--config", config, "forget", "b", "--erase", "--json").document["wiped"] is True


@pytest.mark.parametrize("command", ["forget", "invalidate", "restore", "set-status"])
def test_nothing_is_made_where_no_store_is(run, config, path, command):
    status = ["merged"] if command == "set-status" else []
    assert run("--config", config, command, "a", *status).code == 1
    assert run("--config", config, command).code == 2
    assert not path.exists()


def test_options_of_one_way_to_forget_are_not_for_the_other(run, config, store):
    for options in (
        ["a", "--sweep"],
        ["a", "--agent-id", "x"],
        ["a", "--erase", "--reason", "x"],
        [store, "--episode", "a", "--erase"],
        [store, "--episode", "a", "--reason", "x"],
        [store, store, "--episode", "a"],
    ):
        refused = run("--config", config, "forget", *options)
        assert (refused.code, refused.out) == (1, "")
    assert found(store) == ["a", "b", "c"]
    assert run("forget", store, "--episode", "a").out == "Erased episode a\n"
