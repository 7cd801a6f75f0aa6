"""The command line and the environment: what is taken, what is refused, who wins."""

from __future__ import annotations

import subprocess

import pytest
from click.testing import CliRunner
from mcp_command import started
from mcp_wire import COMMAND
from workers import environment

from engram import __version__
from engram.mcp.options import Options, command


def test_it_starts_with_these_defaults(monkeypatch):
    options = started([])
    assert options == Options(
        db=":memory:",
        agent_id=None,
        provenance="external",
        session_untrusted=False,
        events=None,
        key=None,
        profile="engram",
    )


SETTINGS = [
    ("db", "--db", "ENGRAM_MCP_DB", "a.engram", "b.engram"),
    ("agent_id", "--agent-id", "ENGRAM_MCP_AGENT_ID", "a", "b"),
    ("provenance", "--provenance", "ENGRAM_MCP_PROVENANCE", "tool", "user"),
    ("events", "--events", "ENGRAM_MCP_EVENTS", "a.ndjson", "b.ndjson"),
    ("profile", "--profile", "ENGRAM_MCP_PROFILE", "engram", "engram"),
]


@pytest.mark.parametrize(("name", "flag", "variable", "one", "other"), SETTINGS)
def test_a_flag_beats_its_variable(name, flag, variable, one, other):
    assert getattr(started([flag, one]), name) == one
    assert getattr(started([], **{variable: other}), name) == other
    assert getattr(started([flag, one], **{variable: other}), name) == one


@pytest.mark.parametrize(("name", "flag", "variable", "one", "_"), SETTINGS)
def test_an_empty_name_is_refused_wherever_it_is(name, flag, variable, one, _):
    """A host that leaves the variable empty must not get all agents' memories for it."""
    assert started([flag, ""]) is None
    named = name in ("db", "agent_id", "events")
    assert started([], **{variable: ""}) == (None if named else Options())
    assert getattr(started([flag, one], **{variable: ""}), name) == one


@pytest.mark.parametrize(
    ("value", "means"),
    [
        *((text, True) for text in ("1", "true", "YES", "On")),
        *((text, False) for text in ("0", "False", "no", "OFF", "")),
        *((text, None) for text in ("2", "t", "y", "enabled", "truetrue")),
    ],
)
def test_the_variable_for_an_untrusted_session(value, means):
    options = started([], ENGRAM_MCP_SESSION_UNTRUSTED=value)
    assert (options and options.session_untrusted) is means
    if means is not None:
        flagged = started(["--session-untrusted"], ENGRAM_MCP_SESSION_UNTRUSTED=value)
        assert flagged.session_untrusted is True


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--provenance", "unknown"], {}),
        (["--provenance", "User"], {}),
        ([], {"ENGRAM_MCP_PROVENANCE": "me"}),
        (["--profile", "other"], {}),
        (["--key-file", "/nonexistent/key"], {}),
        (["--key-file", ""], {}),
        (["--nonsense"], {}),
        (["more"], {}),
        (["--db"], {}),
    ],
    ids=str,
)
def test_a_wrong_command_line_is_refused(arguments, variables):
    assert started(arguments, **variables) is None


def test_a_refusal_is_on_stderr(tmp_path):
    done = subprocess.run(
        [*COMMAND, "--provenance", "me"],
        capture_output=True,
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--provenance" in done.stderr


def test_a_path_may_begin_at_home(tmp_path):
    """Hosts start the server without a shell."""
    home = {"HOME": str(tmp_path)}
    (tmp_path / "key").write_text("two words", encoding="utf-8")
    options = started(["--db", "~/a.engram", "--key-file", "~/key"], **home)
    assert (options.db, options.key) == (str(tmp_path / "a.engram"), "two words")
    assert started(["--events", "~/a.ndjson"], **home).events == str(tmp_path / "a.ndjson")
    named = started([], ENGRAM_MCP_DB="~/b.engram", ENGRAM_MCP_EVENTS="~/b.ndjson", **home)
    assert (named.db, named.events) == (f"{tmp_path}/b.engram", f"{tmp_path}/b.ndjson")
    project = started(["--profile", "memory", "--db", "~/a.engram"], **home)
    assert project.project.store_path == tmp_path / "a.engram"


def test_the_settings_of_a_project_are_read_at_each_start(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name / ".engram").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        assert started(["--profile", "memory"]).project.root.name == name


def test_no_passphrase_is_in_what_is_printed_of_the_options(tmp_path):
    key = tmp_path / "key"
    key.write_text("canary-47", encoding="utf-8")
    for profile in ("engram", "memory"):
        options = started(["--key-file", str(key), "--profile", profile, "--db", "a.engram"])
        assert options.key == "canary-47"
        assert "canary" not in repr(options)


def test_the_version(tmp_path):
    done = CliRunner().invoke(command(print), ["--version"], prog_name="engram-mcp")
    assert done.output == f"engram-mcp {__version__}\n"


def test_a_passphrase_comes_from_a_file(tmp_path):
    key = tmp_path / "key"
    key.write_text("two words\n", encoding="utf-8")
    key.chmod(0o600)
    assert started(["--key-file", str(key)]).key == "two words"
    key.write_text("\n", encoding="utf-8")
    assert started(["--key-file", str(key)]) is None
