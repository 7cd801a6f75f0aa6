"""`engram call`: methods for shells."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from engram_server import Server, texts


def call(server: Server, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engram", *arguments],
        cwd=server.root,
        env=server.environment(),
        input=given,
        capture_output=True,
        text=True,
    )


def test_it_prints_what_the_server_returns(shared):
    memory = json.dumps(texts(3))
    place = str(shared.socket)
    for arguments, given in (
        (("call", "memory_store", memory), ""),
        (("call", "memory_store", "-"), memory),
        (("call", "--socket", place, "memory_store", "-", "--json"), memory),
    ):
        done = call(shared, *arguments, given=given)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1
        assert set(json.loads(done.stdout)) >= {"id", "indexed", "deduplicated"}
    assert json.loads(call(shared, "call", "memory_status").stdout)["memory_count"] == 1


def test_it_finds_the_server_as_a_server_finds_its_place(shared, tmp_path):
    (shared.root / "below/it").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "engram", "call", "memory_status"],
        cwd=shared.root / "below/it",
        env=shared.environment(),
        capture_output=True,
    )
    assert done.returncode == 0
    done = subprocess.run(
        [sys.executable, "-m", "engram", "call", "memory_status"],
        cwd=tmp_path,
        env=shared.environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: [6016] project directory not found")


def test_failures_have_their_number(shared):
    done = call(shared, "call", "memory_judge", '{"memory_id":"abc-123"}')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: [1002] not found: memory abc-123\n"
    done = call(shared, "call", "memory_judge", '{"memory_id":"abc-123"}', "--json")
    assert json.loads(done.stderr)["error"]["code"] == "1002"
    done = call(shared, "call", "memory_status", "--socket", str(shared.root / "none"))
    assert done.returncode == 1
    assert "is it running?" in done.stderr


NO_OBJECTS = [
    "{",
    "[]",
    "5",
    "null",
    "[" * 10_000,
    '{"a":' + "[" * 127 + "]" * 127 + "}",
    '{"query":NaN}',
    '{"query":-Infinity}',
    '{"query":1e999}',
    '{"query":"a","query":"b"}',
    '{"query":' + "1" * 5000 + "}",
    "\udcff",
]


@pytest.mark.parametrize("given", NO_OBJECTS, ids=range(len(NO_OBJECTS)))
def test_parameters_are_an_object(shared, given):
    for arguments in (
        ("call", "memory_search", given),
        ("call", "memory_search", given, "--json"),
    ):
        done = call(shared, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "PARAMS must be a JSON object" in done.stderr
    error = json.loads(done.stderr)["error"]
    assert "PARAMS must be a JSON object" in error["message"]


def test_parameters_of_stdin_are_an_object(shared):
    for given in ("{", '{"query":NaN}', '{"query":"a","query":"b"}'):
        done = call(shared, "call", "memory_search", "-", given=given)
        assert (done.returncode, done.stdout) == (2, "")
        assert "PARAMS must be a JSON object" in done.stderr


def test_a_file_of_settings(shared, tmp_path):
    file = tmp_path / "other.toml"
    file.write_text("[server]\nworkers = 0\n")
    for arguments in (
        ("--config", str(file), "call", "memory_status"),
        ("call", "memory_status", "--config", str(file)),
        ("--config", str(file), "server"),
        ("server", "--config", str(file)),
    ):
        done = call(shared, *arguments)
        assert done.returncode == 1
        assert "[6022] invalid configuration: server.workers" in done.stderr


def test_a_file_of_settings_without_a_name_is_missing(shared):
    for arguments in (
        ("--config", "", "call", "memory_status"),
        ("call", "memory_status", "--config", ""),
        ("--config", "", "server"),
        ("server", "--config", ""),
    ):
        done = call(shared, *arguments)
        assert done.returncode == 1
        assert "[6001] config not found" in done.stderr
