"""`engram config`, and how any command comes by its settings."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engram
from engram.cli import engram as engram_command
from engram.cli.settings import config_file, loaded
from engram.config import load
from engram.config.schema import schema

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("retrieval: {top_k: 5}\nhf_token: canary\n")
    return file


def test_check_says_that_settings_are_valid(run, file):
    done = run("--config", file, "config", "check")
    assert (done.code, done.out, done.err) == (0, f"The settings are valid: {file}\n", "")
    assert run("--config", file, "config", "check", "--json").document == {
        "valid": True,
        "config_file": str(file),
        "warnings": [],
    }


def test_check_without_a_file(run):
    assert run("config", "check", "--json").document == {
        "valid": True,
        "config_file": None,
        "warnings": [],
    }
    assert run("config", "check").lines == ["The settings are valid: no file"]


def test_check_prints_warnings(run, file):
    file.write_text("embedding_model: canary\n")
    valid, warning = run("--config", file, "config", "check").lines
    assert valid.startswith("The settings are valid")
    assert warning.startswith("warning: embedding_dim")
    warnings = run("--config", file, "config", "check", "--json").document["warnings"]
    assert [f"warning: {text}" for text in warnings] == [warning]
    assert "canary" not in warning


def test_check_says_what_is_invalid(run, file):
    file.write_text("web: {port: canary}\n")
    done = run("--config", file, "config", "check")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: engram config check ")
    assert done.err.endswith("\nError: web.port must be an integer\n")
    done = run("--config", file, "config", "check", "--json")
    assert (done.code, done.err) == (2, "")
    assert json.loads(done.out) == {"valid": False, "error": "web.port must be an integer"}


def test_check_says_which_variable_is_invalid(run, file, monkeypatch):
    monkeypatch.setenv("ENGRAM_RETRIEVAL_TOP_K", "canary")
    done = run("--config", file, "config", "check")
    assert done.code == 2
    assert "retrieval.top_k must be an integer (set by ENGRAM_RETRIEVAL_TOP_K)" in done.err
    assert "canary" not in done.err


@given(st.sampled_from(list(schema()["fields"])), st.sampled_from(["{}", "[{}]", "*{}", "{}: '"]))
def test_no_value_of_a_file_is_printed(run, file, name, shape):
    section, _, key = name.rpartition(".")
    value = shape.format("cAnArY")
    file.write_text(f"{section}:\n  {key}: {value}\n" if section else f"{key}: {value}\n")
    for more in ((), ("--json",)):
        done = run("--config", file, "config", "check", *more)
        assert done.code in (0, 2)
        assert "cAnArY" not in done.out + done.err
        assert "Traceback" not in done.err


def test_show_prints_every_setting_and_its_source(run, file, monkeypatch):
    monkeypatch.setenv("ENGRAM_WEB_HOST", "é \x1b")
    done = run("--config", file, "config", "show")
    assert (done.code, done.err) == (0, "")
    assert len(done.lines) == len(schema()["fields"])
    for expected in (
        'storage_backend = "sqlite"  [default]',
        'hf_token = "<redacted>"  [file]',
        "embedding_dim = 384  [derived:embedding_model]",
        "retrieval.top_k = 5  [file]",
        "ann.enabled = true  [default]",
    ):
        assert expected in done.lines
    shown = {line.partition(" = ")[0]: line.partition(" = ")[2] for line in done.lines}
    assert json.loads(shown["web.host"].removesuffix("  [env:ENGRAM_WEB_HOST]")) == "é \x1b"


def test_show_prints_the_report(run, file):
    report = run("--config", file, "config", "show", "--json").document
    assert report == load(file, {}).report()
    assert set(report) == {"config_file", "values", "sources", "warnings", "unused"}
    assert report["unused"] == ["hf_token"]


def test_show_of_invalid_settings_exits_with_2(run, file):
    file.write_text("[]")
    for more in ((), ("--json",)):
        done = run("--config", file, "config", "show", *more)
        assert (done.code, done.out) == (2, "")
        assert "the settings file must be a mapping" in done.err


def test_schema_is_json_always(run, file):
    file.write_text("[]")
    for words in (("config", "schema"), ("--config", file, "config", "schema", "--json")):
        fields = run(*words).document["fields"]
        assert fields["web.port"] == {
            "type": "integer",
            "default": 8420,
            "constraints": {"minimum": 1, "maximum": 65535, "finite": True},
            "help": "The port to listen on.",
            "env": "ENGRAM_WEB_PORT",
            "aliases": [],
            "secret": False,
            "used": False,
        }


@pytest.mark.parametrize("command", ["check", "show", "schema"])
def test_defaults_work_where_everything_is_broken(run, monkeypatch, command):
    Path("config.yaml").write_text("[")
    monkeypatch.setenv("ENGRAM_RETRIEVAL_TOP_K", "x")
    assert run("config", command, "--defaults").code == 0
    assert run("config", command, "--defaults", "--json").document


def test_defaults_are_the_defaults(run, monkeypatch):
    monkeypatch.setenv("ENGRAM_RETRIEVAL_TOP_K", "5")
    shown = run("config", "show", "--defaults", "--json").document
    assert shown == load(None, {}).report()


@pytest.mark.parametrize("command", ["check", "show", "schema"])
def test_defaults_and_a_file_exclude_each_other(run, file, command):
    done = run("--config", file, "config", command, "--defaults")
    assert (done.code, done.out) == (2, "")
    assert "--config" in done.err


@pytest.mark.parametrize("command", ["check", "show"])
@pytest.mark.parametrize("named", ["", "none.yaml", "none/none.yaml", ".", "x\0", "n" * 5000])
def test_a_file_that_is_not_there_exits_with_2(run, command, named):
    done = run("--config", named, "config", command)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("Error: --config must name a file that exists\n")


def test_config_does_not_touch_the_store(run, file, tmp_path):
    file.write_text(f"db_path: {tmp_path}/folder/m.db\n")
    for words in (("check",), ("show", "--json"), ("schema",)):
        assert run("--config", file, "config", *words).code == 0
    assert not (tmp_path / "folder").exists()


def test_the_first_usual_file_is_read(run, home, tmp_path, monkeypatch):
    beside = tmp_path / "site"
    monkeypatch.setattr("engram.cli.settings.__file__", str(beside / "engram/cli/settings.py"))
    usual = [home / ".config/engram/config.yaml", beside / "config.yaml", tmp_path / "config.yaml"]
    for place in usual:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}")
        assert run("config", "check", "--json").document["config_file"] == str(place)
    usual[-1].unlink()
    usual[-1].mkdir()
    assert run("config", "check", "--json").document["config_file"] == str(usual[-2])
    assert (Path(engram.__file__).parents[1]).is_dir()


def test_config_comes_before_the_command(run, file):
    done = run("config", "check", "--config", file)
    assert (done.code, done.out) == (2, "")
    assert "No such option" in done.err


def context(given):
    return click.Context(engram_command, obj=given)


@pytest.mark.parametrize("named", [None, "settings.yaml", "./settings.yaml", "~/settings.yaml"])
def test_a_process_that_stays_needs_an_absolute_path(file, home, named):
    (home / "settings.yaml").write_text("{}")
    Path("config.yaml").write_text("{}")
    with pytest.raises(click.UsageError, match="absolute path") as failed:
        loaded(context(named), require_file=True)
    assert failed.value.exit_code == 2
    assert failed.value.message.count("\n") == 0


@pytest.mark.parametrize("named", ["none.yaml", "", "settings.yaml/x"])
def test_a_process_that_stays_needs_a_file(file, named):
    with pytest.raises(click.UsageError, match="--config must name a file that exists"):
        loaded(context(str(file.parent / named)), require_file=True)


def test_a_link_to_a_file_is_a_file(file):
    link = file.with_name("link.yaml")
    link.symlink_to(file)
    assert config_file(context(str(link)), require_file=True) == link
    found = loaded(context(str(link)), require_file=True)
    assert found.report()["config_file"] == str(link)


def test_model_clients_of_the_process_find_the_token(file):
    found = loaded(context(str(file)))
    assert found.settings.hf_token == "canary"
    assert os.environ["HF_TOKEN"] == os.environ["HUGGING_FACE_HUB_TOKEN"] == "canary"


def test_the_page_of_the_commands_and_the_page_of_the_settings_meet():
    root = Path(__file__).parents[2] / "docs/reference"
    assert "](settings.md)" in (root / "cli.md").read_text()
    assert re.search(r"engram config (check|show)", (root / "settings.md").read_text())
