"""`engram init`: a private file of settings and a private store, both or neither."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from engram import Engram
from engram.cli import files
from engram.config import load
from engram.config.schema import schema
from engram.errors import StoreFull

pytestmark = pytest.mark.usefixtures("home")
KEYS = {
    *("config_file", "storage", "db_path", "database_initialized", "preset", "models"),
    *("environment_overrides", "warnings", "agent_setup", "next_steps"),
}


def mode(path):
    return path.stat().st_mode & 0o777


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "new/settings/config.yaml"


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "other/m.db"


def test_init_makes_both_and_says_so(run, file, store_path):
    done = run("--config", file, "init", "--yes", "--json", "--db-path", store_path)
    made = done.document
    assert set(made) == KEYS
    assert made["config_file"] == str(file)
    assert made["db_path"] == str(store_path)
    assert (made["storage"], made["database_initialized"], made["preset"]) == (
        "sqlite",
        True,
        "local",
    )
    assert made["models"] == {
        "embedding_backend": "auto",
        "embedding_model": "BAAI/bge-small-en-v1.5",
        "embedding_dim": 384,
        "cross_encoder_model": "BAAI/bge-reranker-base",
    }
    assert made["environment_overrides"] == made["warnings"] == []
    assert set(made["agent_setup"]) == {"command", "mcp_config", "environment_variables"}
    assert made["agent_setup"]["command"][-3:] == ["--config", str(file), "api"]
    assert all(isinstance(step, str) for step in made["next_steps"])
    with Engram(store_path, create=False) as memory:
        assert memory.count() == 0


def test_the_file_holds_every_setting_but_what_is_derived(run, file, store_path):
    run("--config", file, "init", "--yes", "--db-path", store_path)
    written = yaml.safe_load(file.read_text())
    names = [
        name
        for key, value in written.items()
        for name in ([f"{key}.{inner}" for inner in value] if isinstance(value, dict) else [key])
    ]
    assert set(names) == set(schema()["fields"]) - {"embedding_dim"}
    loaded = load(file, {})
    assert loaded.settings.db_path == str(store_path)
    defaults = load(None, {}).values()
    assert loaded.values() == {**defaults, "db_path": str(store_path)}
    assert loaded.sources["embedding_dim"] == "derived:embedding_model"


def test_both_are_private_and_so_are_their_new_folders(run, file, store_path):
    before = os.umask(0)
    try:
        assert run("--config", file, "init", "--yes", "--db-path", store_path).code == 0
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert mode(file) == mode(store_path) == 0o600
    assert mode(file.parent) == mode(file.parent.parent) == mode(store_path.parent) == 0o700


def test_without_a_path_the_files_are_in_the_home(run, home):
    made = run("init", "--yes", "--json").document
    assert made["config_file"] == str(home / ".config/engram/config.yaml")
    assert made["db_path"] == str(home / ".local/share/engram/memory.db")
    assert Path(made["db_path"]).is_file()
    assert run("config", "check", "--json").document["config_file"] == made["config_file"]


def test_a_relative_store_is_written_absolute(run, file, tmp_path):
    run("--config", file, "init", "--yes", "--db-path", "m.db")
    assert load(file, {}).settings.db_path == str(tmp_path / "m.db")


def test_people_read_where_things_are(run, file, store_path):
    done = run("--config", file, "init", "--yes", "--db-path", store_path)
    assert (done.code, done.err) == (0, "")
    assert done.lines == [f"Settings: {file}", f"Store:    {store_path}"]


@pytest.mark.parametrize(
    ("options", "models"),
    [
        (["--preset", "portable"], ["sentence_transformers", "BAAI/bge-small-en-v1.5", 384]),
        (
            ["--preset", "light"],
            ["sentence_transformers", "sentence-transformers/all-MiniLM-L6-v2", 384],
        ),
        (
            ["--preset", "light", "--embedding-model", "BAAI/bge-m3", "--embedding-backend", "mlx"],
            ["mlx", "BAAI/bge-m3", 1024],
        ),
    ],
)
def test_presets_choose_models_and_options_go_before(run, file, store_path, options, models):
    words = ("init", "--yes", "--json", "--db-path", store_path, *options)
    made = run("--config", file, *words).document
    assert made["preset"] == options[1]
    assert list(made["models"].values())[:3] == models
    found = load(file, {}).settings
    assert [found.embedding_backend, found.embedding_model, found.embedding_dim] == models


@pytest.mark.parametrize("there", ["file", "folder", "link", "dangling link"])
@pytest.mark.parametrize("which", ["settings", "store"])
def test_what_is_there_is_left_alone(run, tmp_path, there, which):
    file, store = tmp_path / "a/config.yaml", tmp_path / "b/m.db"
    place = file if which == "settings" else store
    place.parent.mkdir()
    target = tmp_path / "target"
    target.write_text("kept")
    if there == "file":
        place.write_text("kept")
    elif there == "folder":
        place.mkdir()
    else:
        place.symlink_to(target if there == "link" else tmp_path / "nowhere")
    before = tree(tmp_path)
    done = run("--config", file, "init", "--yes", "--json", "--db-path", store)
    assert (done.code, done.err) == (2, "")
    answer = json.loads(done.out)
    assert answer["ok"] is False
    assert which in answer["error"]
    done = run("--config", file, "init", "--yes", "--db-path", store)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: engram init ")
    assert tree(tmp_path) == before
    assert target.read_text() == "kept"


@pytest.mark.parametrize("named", ["", "  ", "~nobody-here/m.db", "~nobody-here"])
def test_a_store_that_can_be_nowhere_is_refused(run, file, tmp_path, named):
    before = tree(tmp_path)
    done = run("--config", file, "init", "--yes", "--db-path", named)
    assert (done.code, done.out) == (2, "")
    assert "db_path" in done.err.splitlines()[-1]
    assert tree(tmp_path) == before


def test_the_environments_home_of_nobody_is_refused_too(run, file, tmp_path, monkeypatch):
    monkeypatch.setenv("ENGRAM_DB_PATH", "~nobody-here/m.db")
    before = tree(tmp_path)
    for command in (["init", "--yes"], ["remember", "tea"], ["forget", "x"]):
        arguments = ["--config", file] if command[0] == "init" else []
        done = run(*arguments, *command)
        assert (done.code, done.out) == (2, "")
        assert "db_path" in done.err.splitlines()[-1]
    assert tree(tmp_path) == before


def test_the_environment_goes_before_the_file_here_too(run, file, store_path, monkeypatch):
    monkeypatch.setenv("ENGRAM_DB_PATH", str(store_path))
    monkeypatch.setenv("ENGRAM_EMBEDDING_MODEL", "x/unknown")
    made = run("--config", file, "init", "--yes", "--json").document
    assert made["environment_overrides"] == ["ENGRAM_DB_PATH", "ENGRAM_EMBEDDING_MODEL"]
    assert made["db_path"] == str(store_path)
    assert made["models"]["embedding_model"] == "x/unknown"
    assert len(made["warnings"]) == 1
    assert store_path.is_file()
    assert load(file, {}).settings.embedding_model == "BAAI/bge-small-en-v1.5"


@pytest.mark.parametrize(
    ("options", "variables", "message"),
    [
        (["--storage", "postgres"], {}, "SQLite only"),
        ([], {"ENGRAM_STORAGE_BACKEND": "postgres", "ENGRAM_POSTGRES_DSN": "x"}, "SQLite only"),
        ([], {"ENGRAM_RETRIEVAL_TOP_K": "canary"}, "retrieval.top_k must be an integer"),
        (["--embedding-model", " "], {}, "embedding_model must not be blank"),
        (["--embedding-backend", "canary"], {}, "embedding_backend must be one of"),
        (["--db-path", "a\0b"], {}, "db_path must be text"),
    ],
)
def test_invalid_settings_leave_nothing_behind(
    run, file, tmp_path, monkeypatch, options, variables, message
):
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    before = tree(tmp_path)
    done = run("--config", file, "init", "--yes", "--json", *options)
    assert (done.code, done.err) == (2, "")
    assert message in json.loads(done.out)["error"]
    assert "canary" not in done.out
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("failure", "code"), [(StoreFull("full"), 1), (OSError(5, "no"), 1), (KeyboardInterrupt(), 130)]
)
def test_a_failure_midway_leaves_nothing_behind(
    run, file, store_path, tmp_path, monkeypatch, failure, code
):
    def fail(path):
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").write_text("half")
        raise failure

    monkeypatch.setattr("engram.cli.init.open_or_make", fail)
    before = tree(tmp_path)
    done = run("--config", file, "init", "--yes", "--db-path", store_path)
    assert (done.code, done.out) == (code, "")
    assert tree(tmp_path) == before


def test_a_folder_that_may_not_be_made_leaves_nothing_behind(run, file, tmp_path):
    (tmp_path / "blocked").write_text("a file")
    before = tree(tmp_path)
    done = run("--config", file, "init", "--yes", "--db-path", tmp_path / "blocked/m.db")
    assert done.code == 1
    assert tree(tmp_path) == before


def test_what_others_put_into_a_new_folder_stays(run, file, store_path, monkeypatch):
    def fail(path):
        Path(path).with_name("theirs").write_text("kept")
        raise OSError

    monkeypatch.setattr("engram.cli.init.open_or_make", fail)
    assert run("--config", file, "init", "--yes", "--db-path", store_path).code == 1
    assert tree(store_path.parent) == ["theirs"]


def test_json_needs_yes(run, file):
    done = run("--config", file, "init", "--json")
    assert (done.code, done.out) == (2, "")
    assert "--yes" in done.error["message"]


def process(*words, **options):
    return subprocess.run([sys.executable, "-m", "engram", *map(str, words)], **options)


def test_nobody_is_asked_who_is_not_there(file):
    done = process("--config", file, "init", input=b"y\n", capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--yes" in done.stderr
    assert not file.parent.exists()


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 130)])
def test_somebody_at_a_terminal_is_asked(file, store_path, answer, code):
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = process(
        "--config", file, "init", "--db-path", store_path, stdin=theirs, capture_output=True
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == code
    assert b"[y/N]" in done.stderr
    assert file.is_file() == store_path.is_file() == (code == 0)


def test_no_model_is_loaded(file, store_path):
    script = (
        "import sys; from engram.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    words = ("--config", str(file), "init", "--yes", "--db-path", str(store_path))
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split()) & {"onnxruntime", "tokenizers", "huggingface_hub"}
    assert files.size_of(str(store_path)) > 0
