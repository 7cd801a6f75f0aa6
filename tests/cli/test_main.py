"""The way in and the way out: help, versions, exit codes, streams, processes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

import engram
from engram import Engram
from engram.cli import engram as engram_command

COMMANDS = [
    "api",
    "assert",
    "backup",
    "call",
    "compact",
    "compress",
    "config",
    "consolidation",
    "contradictions",
    "decay",
    "demo",
    "dormant",
    "events",
    "export",
    "facts",
    "forget",
    "import",
    "import-store",
    "ingest",
    "init",
    "inspect",
    "invalidate",
    "list-agents",
    "maintain",
    "models",
    "observe",
    "prune",
    "recall",
    "reembed",
    "reflect",
    "rekey",
    "remember",
    "restore",
    "server",
    "set-status",
    "stats",
    "timeline",
    "train",
    "verify",
    "why",
]
GROUPS = ("config", "consolidation", "dormant", "events", "models")


def process(*arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(
        [sys.executable, "-m", "engram", *map(str, arguments)], check=False, **options
    )


def test_version(run):
    done = run("--version")
    assert (done.code, done.out, done.err) == (0, f"engram {engram.__version__}\n", "")


def test_without_a_command_there_is_help_on_stdout(run):
    done = run()
    assert (done.code, done.err) == (1, "")
    assert done.out == run("--help").out
    assert [
        line.split()[0] for line in done.out.partition("Commands:\n")[2].splitlines()
    ] == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(run, command):
    done = run(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert "--json" in done.out or command in (*GROUPS, "api", "server", "train")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_all_says_what_each_says_of_itself(name):
    listed = engram_command.commands[name]
    assert listed.load().name == name
    assert listed.get_short_help_str(1000) == listed.load().get_short_help_str(1000)


@pytest.mark.parametrize(
    ("words", "completed"), [("engram reca", "recall"), ("engram models pu", "pull")]
)
def test_a_shell_completes_commands(words, completed):
    variables = {"_ENGRAM_COMPLETE": "bash_complete", "COMP_WORDS": words}
    cword = {"COMP_CWORD": str(words.count(" "))}
    script = "from engram.cli import engram; engram(prog_name='engram')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables, **cword},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"plain,{completed}\n"


@pytest.mark.parametrize("arguments", [["no-such"], ["--no-such"], ["inspect"], ["recall", "x"]])
def test_a_wrong_command_line_exits_with_2(run, arguments):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: engram" in done.err
    done = run(*arguments, "--json")
    assert done.code == 2
    assert done.error["code"] == "usage"


def test_an_interrupt_exits_with_130(run, store, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Engram, "recall_memories", interrupt)
    done = run("recall", store, "x")
    assert (done.code, done.out, done.err) == (130, "", "error: interrupted\n")
    assert run("recall", store, "x", "--json").error["code"] == "interrupted"


def test_a_failure_of_the_system_is_an_error(run, store, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Engram, "counts", fail)
    done = run("inspect", store)
    assert (done.code, done.out, done.err) == (1, "", "error: No space left on device\n")


def test_a_closed_stdout_ends_quietly(store):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        for arguments in (["recall", store, "bees"], ["inspect", store, "--json"], ["--help"]):
            done = process(*arguments, stdout=writer)
            assert (done.stderr, done.returncode) == (b"", 1)
    finally:
        os.close(writer)


def test_a_process_gets_plain_text_in_any_locale(store):
    environment = {**os.environ, "FORCE_COLOR": "1", "PYTHONIOENCODING": "latin-1"}
    done = process("list-agents", ":memory:", env=environment)
    assert done.returncode == 0
    assert b"\\u2014 store has no" in done.stdout
    done = process("recall", store, "bees", env=environment)
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


@pytest.fixture
def narrow(home, monkeypatch):
    """A locale of ASCII, in which Python is told to stay."""
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(name, value)


def test_arguments_are_utf_8_whatever_the_locale(tmp_path, narrow):
    folder = tmp_path / "é日"
    folder.mkdir()
    config, store, copy = (folder / name for name in ("é.yaml", "é.engram", "é copy.engram"))
    config.write_text(f"db_path: {store}\n", encoding="utf-8")

    def document(*arguments):
        done = process(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout)

    assert document("--config", config, "config", "check")["config_file"] == str(config)
    remember = ("remember", "é", "--project", "/é日", "--id", "日")
    assert document("--config", config, *remember) == {"id": "日"}
    assert document("inspect", store)["path"] == str(store)
    document("backup", store, copy)
    assert document("--config", config, "forget", "日")["ids"] == ["日"]
    with Engram(copy) as memory:
        episode = memory.get("日")
    assert (episode.content, episode.metadata["project_path"]) == ("é", "/é日")


@pytest.mark.parametrize("actor", ["ana", "é"])
def test_an_argument_that_is_no_utf_8_is_refused_in_any_locale(path, narrow, actor):
    command = [
        sys.executable,
        "-m",
        "engram",
        "observe",
        path,
        b"\xff",
        "--actors",
        actor,
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert json.loads(done.stderr)["error"]["code"] == "invalid_argument"


def test_json_lines_come_through_a_pipe(path):
    text = b"".join(json.dumps({"content": f"note {n}"}).encode() + b"\n" for n in range(3))
    done = process("ingest", path, "-", "--json", input=text)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["episodes"] == 3
    bad = process("ingest", path, "-", input=text + b"{")
    assert (bad.returncode, bad.stdout) == (1, b"")
    assert bad.stderr.startswith(b"error: standard input, line 4: ")
    with Engram(path) as memory:
        assert memory.count() == 3


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}])
def test_progress_is_shown_on_a_terminal_only(path, tmp_path, variables):
    file = tmp_path / "e.jsonl"
    file.write_text('{"content": "a"}\n' * 3)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    done = process("ingest", path, file, stderr=theirs, env=environment)
    os.close(theirs)
    shown = os.read(ours, 65536)
    os.close(ours)
    assert done.stdout.startswith(b"Remembered 3 episodes in ")
    assert b"\x1b" not in done.stdout
    assert b"3/3" in shown
    assert (b"\x1b[38;" in shown) == (not variables)


def test_the_start_loads_no_engine():
    """Whatever `import engram` itself loads, a version and a help load no command on top."""
    script = (
        "import sys, contextlib, io, engram; before = set(sys.modules)\n"
        "from engram.cli import main\n"
        "for word in ('--version', '--help'):\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        main([word])\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "engram.cli.commands" in loaded
    assert not loaded & {"engram.cli.recall", "engram.cli.options"}
    heavy = {"numpy", "apsw", "onnxruntime", "tokenizers", "rich", "huggingface_hub"}
    heavy |= {"msgspec", "yaml", "engram.config", "engram.engine"}
    assert loaded & heavy == set()
