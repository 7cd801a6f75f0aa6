"""Passphrases come in files; `rekey` sets, changes and removes them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from engram import Engram


@pytest.fixture
def key_file(tmp_path):
    file = tmp_path / "key"
    file.write_text("correct horse\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def secret(run, path, key_file):
    """An encrypted store with an episode and a fact."""
    done = run("observe", path, "the vault is under the stairs", "--key-file", key_file)
    assert (done.code, done.err) == (0, "")
    assert run("assert", path, "vault", "is", "shut", "--key-file", key_file).code == 0
    return path


def test_the_file_holds_the_passphrase_without_its_newline(secret, run, key_file):
    with Engram(secret, key="correct horse") as memory:
        assert memory.count() == 1
    key_file.write_text("correct horse")
    assert run("recall", secret, "vault", "--key-file", key_file, "--json").document["results"]


COMMANDS = (
    ["recall", "vault"],
    ["inspect"],
    ["list-agents"],
    ["observe", "more"],
    ["assert", "a", "b", "c"],
    ["facts"],
    ["timeline", "vault"],
    ["contradictions"],
    ["forget", "--entity", "nobody"],
    ["reflect"],
    ["decay"],
    ["prune"],
    ["backup", "copy.engram"],
    ["compact"],
    ["maintain"],
    ["verify"],
    ["export", "lines"],
    ["reembed", "--model", "all-MiniLM-L6-v2-int8"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_command_opens_an_encrypted_store(run, secret, key_file, command):
    name, *rest = command
    assert run(name, secret, *rest, "--key-file", key_file).code == 0
    done = run(name, secret, *rest)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: the file is not an engram store, or it is encrypted")
    assert "by --key-file" in done.err
    assert "under the stairs" not in done.err


def test_a_file_others_can_open_is_warned_about(run, secret, key_file):
    key_file.chmod(0o644)
    done = run("facts", secret, "--key-file", key_file)
    assert (done.code, done.lines[0]) == (0, f"Facts in {secret}")
    assert done.err == f"warning: others may open {key_file} (run: chmod 600 {key_file})\n"
    for arguments in (["--key-file", key_file, "--json"], ["--json", "--key-file", key_file]):
        done = run("facts", secret, *arguments)
        assert json.loads(done.out)["facts"]
        assert json.loads(done.err)["warning"]["code"] == "key_file_permissions"


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n", b"\xff"])
def test_a_file_without_a_passphrase_is_an_error(run, secret, key_file, content):
    key_file.write_bytes(content)
    done = run("facts", secret, "--key-file", key_file)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {key_file} holds no passphrase in UTF-8\n"


def test_a_missing_file_is_an_error(run, secret):
    done = run("facts", secret, "--key-file", "missing")
    assert (done.code, done.err) == (1, "error: missing: No such file or directory\n")


def test_a_pipe_is_a_file(secret, key_file):
    done = subprocess.run(
        [sys.executable, "-m", "engram", "facts", str(secret), "--key-file", "/dev/stdin"],
        input=b"correct horse\n",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_variable_holds_a_key(run, secret, monkeypatch):
    for name in ("ENGRAM_KEY", "ENGRAM_KEY_FILE"):
        monkeypatch.setenv(name, "correct horse")
    assert run("facts", secret).code == 1


def test_a_plain_store_is_encrypted_changed_and_decrypted(run, store, tmp_path, key_file):
    new = tmp_path / "new"
    new.write_text("battery staple")
    new.chmod(0o600)
    assert b"bees" in store.read_bytes()
    assert run("rekey", store, "--new-key-file", key_file).lines == [
        f"{store} is encrypted with the new key"
    ]
    assert b"bees" not in store.read_bytes()
    document = run("rekey", store, "--key-file", key_file, "--new-key-file", new, "--json").document
    assert document == {"path": str(store), "encrypted": True}
    assert run("inspect", store, "--key-file", key_file).code == 1
    assert run("rekey", store, "--key-file", new, "--remove").lines == [
        f"{store} is not encrypted any more"
    ]
    assert run("inspect", store, "--json").document["episodes"] == 3


@pytest.mark.parametrize("options", [[], ["--remove"]])
def test_rekey_without_a_key_to_set_or_remove_is_an_error(run, store, options):
    done = run("rekey", store, *options)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")


def test_rekey_takes_one_of_two(run, store, key_file):
    done = run("rekey", store, "--remove", "--new-key-file", key_file)
    assert (done.code, done.err) == (1, "error: give either --new-key-file or --remove\n")


def test_the_passphrase_is_asked_for_on_a_terminal(store):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "engram", "rekey", str(store)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    said = b""
    for question in (b"New passphrase: ", b"Repeat for confirmation: "):
        # What is typed before the question is thrown away.
        while not said.endswith(question):
            said += os.read(process.stderr.fileno(), 1024)
        os.write(ours, b"typed secret\n")
    out, err = process.communicate()
    os.close(theirs)
    os.close(ours)
    assert (process.returncode, b"encrypted with the new key" in out) == (0, True)
    assert b"typed" not in out + said + err
    with Engram(store, key="typed secret") as memory:
        assert memory.count() == 3
