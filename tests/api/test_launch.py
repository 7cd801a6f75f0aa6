"""How the process starts, what it leaves alone, and when it ends."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys

import pytest
from workers import PATIENCE, environment, observation, planted, program

from engram import lifetime

STATUS = b'{"id":1,"operation":"status"}\n'

# Native code that goes on whatever signal comes, so that no handler of Python's gets to run.
BUSY = """
import hashlib
import os
import engram.ledger

def totals(ledger):
    os.write(2, b"busy\\n")
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

engram.ledger.Ledger.totals = totals
"""


def launched(*arguments: str, home, **options):
    return subprocess.run(
        program(*arguments), capture_output=True, cwd=home, env=environment(home), **options
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["api"],
        ["--config", "engram.yaml", "api"],
        ["--config", "./engram.yaml", "api"],
        ["--config", "~/engram.yaml", "api"],
        ["--config", "{folder}/missing.yaml", "api"],
        ["--config", "{folder}", "api"],
        ["api", "--config", "{folder}/engram.yaml"],
        ["--config", "{folder}/engram.yaml", "api", "more"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_refused(config, tmp_path, arguments):
    given = [argument.format(folder=tmp_path) for argument in arguments]
    done = launched(*given, home=tmp_path, input=STATUS)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Usage: " in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_link_to_the_settings_will_do(config, tmp_path):
    link = tmp_path / "link.yaml"
    link.symlink_to(config)
    done = launched("--config", str(link), "api", home=tmp_path, input=b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_bad_settings_are_refused_before_any_request(config, tmp_path):
    config.write_text("retrieval: {top_k: canary-47}\n", encoding="utf-8")
    done = launched("--config", str(config), "api", home=tmp_path, input=STATUS)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"retrieval.top_k" in done.stderr
    assert b"canary-47" not in done.stderr


def test_warnings_about_settings_are_for_config_show(config, start):
    config.write_text(config.read_text() + "embedding_model: nobody/knows\n", encoding="utf-8")
    worker = start()
    assert worker.result("config_show")["warnings"]
    assert worker.finish() == ([], 0, "")


def test_starting_makes_nothing(tmp_path, start):
    config = tmp_path / "engram.yaml"
    config.write_text(f"db_path: {tmp_path}/deep/er/memory.engram\n", encoding="utf-8")
    worker = start()
    worker.result("operations")
    assert worker.result("status")["initialized"] is False
    assert worker.code("search", query="x") == "operation_failed"
    assert worker.code("checkpoint", project_id="/p", task="t", summary="s") == "operation_failed"
    assert worker.finish()[1] == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["engram.yaml"]


HEAVY = (
    "numpy",
    "onnxruntime",
    "hnswlib",
    "pyroaring",
    "tokenizers",
    "rich",
    "engram.engine",
    "engram.embedding",
    "engram.index",
    "engram.retrieval",
    "engram.mcp",
    "engram.llm",
)


def test_only_a_search_loads_what_searches_need(store, config, tmp_path, project):
    asked = [
        ("operations", {}),
        ("status", {}),
        ("config_show", {}),
        ("recall", {"project_id": project}),
        ("resume", {"project_id": project}),
        ("checkpoint", {"project_id": project, "task": "t", "summary": "s"}),
        ("checkpoint", {"project_id": project, "task": "t", "action": "clear"}),
        ("evidence_put", observation(project)),
        ("evidence_get", {"project_id": project, "id": "x"}),
        ("evidence_list", {"project_id": project}),
        ("dormant_review", {}),
    ]
    lines = [
        json.dumps({"id": operation, "operation": operation, "params": params}).encode() + b"\n"
        for operation, params in asked
    ]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *program("--config", str(config), "api")[1:]],
        input=b"".join(lines),
        capture_output=True,
        env=environment(tmp_path),
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert all("result" in answer for answer in answers), answers
    assert len(answers) == len(asked)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "engram.ledger" in imported
    assert not imported & set(HEAVY)


def test_its_watch_leaves_it_less_than_two_seconds():
    """The longest it takes to notice, and what is left to end in good order after that."""
    assert lifetime._LOOK / 1000 + lifetime._GRACE < 2


def ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code, which has to be there long before anybody would lose patience."""
    return process.wait(timeout=PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_waits(worker, number):
    worker.result("status")
    worker.process.send_signal(number)
    assert ended(worker.process) == 128 + number
    assert worker.finish() == ([], 128 + number, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_the_middle_of_native_code(store, start, tmp_path, number):
    worker = start(**planted(tmp_path, BUSY))
    worker.result("operations")
    worker.send(STATUS)
    assert worker.process.stderr.readline() == b"busy\n"
    worker.process.send_signal(number)
    assert ended(worker.process) == 128 + number


def test_it_ends_when_nobody_reads_its_answers(store, start, tmp_path):
    worker = start(**planted(tmp_path, BUSY))
    worker.result("operations")
    worker.send(STATUS)
    assert worker.process.stderr.readline() == b"busy\n"
    worker.process.stdout.close()
    assert ended(worker.process) == 128 + signal.SIGTERM


# Native code that goes on once the last answer is given.
LINGERS = """
import hashlib
import engram.ledger

def close(ledger):
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)

engram.ledger.Ledger.close = close
"""


def test_the_end_of_input_ends_it_although_something_lingers(store, start, tmp_path):
    worker = start(**planted(tmp_path, LINGERS))
    worker.result("status")
    worker.process.stdin.close()
    assert ended(worker.process) == 0


@pytest.fixture
def orphans_come_here():
    """Make this process the parent of those that lose theirs, so that it learns how they end."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    libc.prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


SET_CHILD_SUBREAPER = 36
PARENT = """
import signal, subprocess, sys
worker = subprocess.Popen(sys.argv[1:])
print(worker.pid, file=sys.stderr, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_it_ends_with_its_parent(store, config, tmp_path, busy, orphans_come_here):
    """Also when somebody else keeps both of its pipes open, as this test does."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *program("--config", str(config), "api")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path, **(planted(tmp_path, BUSY) if busy else {})),
        bufsize=0,
    ) as parent:
        worker = int(parent.stderr.readline())
        # Once it answers it has seen who its parent is.
        parent.stdin.write(b'{"id":1,"operation":"config_show"}\n')
        assert parent.stdout.readline().startswith(b'{"id":1,"result":')
        if busy:
            parent.stdin.write(STATUS)
            assert parent.stderr.readline() == b"busy\n"
        watched = os.pidfd_open(worker)
        parent.kill()
        gone = select.poll()
        gone.register(watched, select.POLLIN)
        assert gone.poll(PATIENCE * 1000)
        os.close(watched)
        # By its own watch: neither killed nor for want of input.
        assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == 128 + signal.SIGTERM


def test_it_leaves_nothing_open(store, start):
    worker = start(PYTHONDEVMODE="1")
    worker.result("status")
    worker.result("recall", project_id="/p")
    assert worker.finish() == ([], 0, "")


def test_the_end_of_input_ends_it_after_all_answers(worker):
    worker.send(STATUS * 50)
    lines, code, err = worker.finish()
    assert (len(lines), code, err) == (50, 0, "")
