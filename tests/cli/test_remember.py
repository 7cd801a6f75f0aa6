"""`engram remember` and `engram import` into the configured store."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from engram import Engram
from engram.ledger import Ledger


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("ENGRAM_") and "MODEL" not in name:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the configured store is going to be."""
    return tmp_path / "deep" / "folder" / "memory.db"


@pytest.fixture
def config(tmp_path: Path, store: Path) -> Path:
    file = tmp_path / "settings.yaml"
    file.write_text(f"db_path: {store}\n")
    return file


def test_a_memory_is_kept_in_the_configured_store(run, config, store, tmp_path):
    done = run(
        "--config", config, "remember", "the", "ferry", "leaves", "--project", "/p/atlas",
        "--source-path", "notes.md", "--source", "ai", "--layer", "semantic", "--type",
        "procedure", "--importance", "0.9", "--metadata", '{"a": [1]}', "--id", "m-1",
        "--created-at", "1e9", "--json",
    )  # fmt: skip
    assert done.document == {"id": "m-1"}
    with Engram(store) as memory:
        episode = memory.get("m-1")
        assert episode.content == "the ferry leaves"
        assert episode.metadata == {"a": [1], "project_path": "/p/atlas"}
        assert (episode.salience, episode.provenance) == (0.9, "external")
    with Ledger(store) as ledger:
        [found] = ledger.recent("/p/atlas")
    assert (found.layer, found.memory_type, found.created_at) == ("semantic", "procedure", 1e9)


def test_what_a_person_says_in_a_folder_is_found_in_it(run, config, store, tmp_path):
    done = run("--config", config, "remember", "tea", "--source-path", "notes.md")
    assert done.out.startswith("Remembered: ")
    uid = done.out.split()[-1]
    with Ledger(store) as ledger:
        assert [m.id for m in ledger.recent(str(tmp_path.resolve()))] == [uid]
    with Engram(store) as memory:
        assert memory.get(uid).provenance == "user"


def test_the_store_and_its_folders_are_private(run, config, store):
    before = os.umask(0o022)
    try:
        assert run("--config", config, "remember", "tea").code == 0
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(store.parent.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--project", "relative"], "project"),
        (["--metadata", "[1]"], "--metadata"),
        (["--metadata", "{"], "--metadata"),
        (["--metadata", '{"a": {"b": 1, "b": 2}}'], "--metadata names a member of an object twice"),
        (["--importance", "2"], "importance"),
        (["--created-at", "soon"], "created_at"),
        (["--created-at", "nan"], "created_at"),
        (["--id", "evidence-1"], "memory_id"),
        (["--status", " "], "status"),
    ],
)
def test_a_refused_option_is_named_and_nothing_is_remembered(run, config, store, options, named):
    refused = run("--config", config, "remember", "tea", *options, "--json")
    assert refused.code == 1
    assert named in refused.error["message"]
    with Engram(store) as memory:
        assert memory.count() == 0


def test_a_wrong_command_line_makes_no_store(run, config, store):
    assert run("--config", config, "remember").code == 2
    assert run("--config", config, "remember", "tea", "--type", "story").code == 2
    assert run("--config", "nowhere.yaml", "remember", "tea").code == 2
    assert not store.parent.exists()


def test_without_a_file_the_settings_are_the_defaults(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ENGRAM_DB_PATH", "~/mine.db")
    assert run("remember", "tea").code == 0
    assert (tmp_path / "home" / "mine.db").is_file()


def test_another_storage_is_refused(run, tmp_path):
    config = tmp_path / "postgres.yaml"
    config.write_text("storage_backend: postgres\npostgres_dsn: canary\n")
    refused = run("--config", config, "remember", "tea")
    assert refused.code == 2
    assert "storage_backend" in refused.err
    assert "canary" not in refused.err


def test_a_store_keeps_its_own_model(run, config, store):
    run("--config", config, "remember", "tea")
    with Engram(store) as memory:
        before = memory.model()
    config.write_text(
        f"db_path: {store}\nembedding_model: sentence-transformers/all-MiniLM-L6-v2\n"
    )
    assert run("--config", config, "remember", "ferry").code == 0
    with Engram(store) as memory:
        assert memory.model() == before


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    file = tmp_path / "memories.json"
    file.write_text(json.dumps({
        "version": "1.0",
        "memories": [{"id": "m", "content": "tea", "metadata": {"project_path": "/p"}}],
    }))  # fmt: skip
    return file


def test_memories_are_imported_into_the_configured_store(run, config, store, memories):
    done = run("--config", config, "import", memories, "--json").document
    assert done == {
        "path": str(store), "src": str(memories),
        "counts": {"memories": 1, "entities": 0, "edges": 0},
    }  # fmt: skip
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    again = run("--config", config, "import", memories)
    assert again.code == 1
    assert "memories[0]" in again.err
    assert run("--config", config, "import", memories, "--merge").code == 0
    with Ledger(store) as ledger:
        assert [m.id for m in ledger.recent("/p")] == ["m"]


def test_memories_are_imported_into_a_named_store(run, memories, path):
    assert run("import", path, memories, "--json").document["counts"]["memories"] == 1
    assert run("recall", path, "tea", "--json").document["results"][0]["episode"]["id"] == "m"


def test_an_export_goes_into_the_configured_store_too(run, config, store, path, tmp_path):
    run("observe", path, "tea")
    for form in ("lines", "json"):
        run("export", path, tmp_path / form, "--format", form)
    assert run("--config", config, "import", tmp_path / "lines").code == 0
    assert run("--config", config, "import", tmp_path / "json", "--merge").code == 0
    with Engram(store) as memory:
        assert memory.count() == 1


@pytest.mark.parametrize("text", ["", "[]", "no", '{"a": 1}'])
def test_a_file_of_something_else_makes_no_store(run, config, store, tmp_path, text):
    (tmp_path / "bad").write_text(text)
    refused = run("--config", config, "import", tmp_path / "bad")
    assert refused.code == 1
    assert run("--config", config, "import", tmp_path / "missing", "--format", "json").code == 1
    assert run("--config", config, "import", "a", "b", "c").code == 2
    assert run("--config", config, "import", "a", "--model", "m").code == 2
    assert not store.exists()
