"""The Python client: it supervises the process and never mixes up answers."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from stand_ins import WordEmbedder
from workers import PATIENCE, environment

from engram import Engram
from engram.api.client import Client
from engram.errors import (
    EngramError,
    InvalidArgument,
    InvalidType,
    ProcessLost,
    RequestFailed,
    TimedOut,
)


@pytest.fixture
def client(store, config, tmp_path):
    with Client(config, environ=environment(tmp_path)) as client:
        yield client


def scripted(code: str) -> list[str]:
    """A command that runs Python code instead of engram."""
    return [sys.executable, "-c", code]


def test_it_asks_and_is_answered(client, project):
    client.request("checkpoint", project_id=project, task="t", summary="日本")
    [row] = client.request("resume", project_id=project)["checkpoints"]
    assert row["summary"] == "日本"
    assert client.request("status")["pid"] == client.request("status")["pid"]


def test_errors_carry_their_code(client, store):
    with Engram(store, embedder=WordEmbedder()) as memory:
        memory.observe("found by a model that the process has not")
    for code, operation, params in (
        ("unknown_operation", "remember", {}),
        ("invalid_params", "recall", {"project_id": "relative"}),
        ("operation_failed", "search", {"query": "x"}),
        ("request_too_large", "recall", {"project_id": "x" * 70_000}),
    ):
        with pytest.raises(RequestFailed) as failed:
            client.request(operation, **params)
        assert failed.value.code == code
        assert isinstance(failed.value, EngramError)
    assert client.request("status")["pid"]


def test_a_relative_path_to_the_settings_will_do(store, config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Client(config.name, environ=environment(tmp_path)) as client:
        assert client.request("config_show")["config_file"] == str(config)


def test_what_has_no_form_in_json_is_not_sent(client):
    first = client.request("status")["pid"]
    for value in (float("nan"), {1, 2}, b"x"):
        with pytest.raises((TypeError, ValueError)):
            client.request("recall", project_id=value)
    assert client.request("status")["pid"] == first


def test_a_process_that_died_is_replaced(client):
    first = client.request("status")["pid"]
    os.kill(first, signal.SIGKILL)
    try:
        # Sent before the death is known, the request is lost, and said to be.
        second = client.request("status")["pid"]
    except ProcessLost:
        second = client.request("status")["pid"]
    assert second != first


def test_a_closed_client_starts_anew(client):
    first = client.request("status")["pid"]
    client.close()
    client.close()
    assert client.request("status")["pid"] != first


# Says its number, and answers nothing slow before the next line comes.
SLOW = """
import json, os, sys
waiting = []
for line in sys.stdin:
    request = json.loads(line)
    waiting.append({"id": request["id"], "result": os.getpid()})
    if request["operation"] != "slow":
        for answer in waiting:
            print(json.dumps(answer), flush=True)
        waiting.clear()
"""


def test_a_process_that_takes_too_long_is_ended(config):
    client = Client(config, command=scripted(SLOW))
    pids = []
    for _ in range(2):
        pids.append(client.request("pid"))
        with pytest.raises(TimedOut) as late:
            client.request("slow", timeout=0.01)
        assert isinstance(late.value, TimeoutError)
    assert len(set(pids)) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_late_answer_is_not_taken_for_another(config):
    with Client(config, command=scripted(SLOW)) as client:
        first = client.request("pid")
        with pytest.raises(TimedOut):
            client.request("slow", timeout=0.01)
        assert client.request("pid") != first


# Leaves its answers' pipe to a child for as long as the test has patience.
LEAVES = f"""
import subprocess, sys
child = subprocess.Popen(["sleep", "{PATIENCE}"], start_new_session=STRAYS)
for line in sys.stdin:
    answer = line.replace('"operation"', '"result"').replace('"pid"', str(child.pid))
    print(answer, end="", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("strays", [False, True])
def test_whoever_holds_the_pipe_does_not_hold_up_the_client(config, strays):
    client = Client(config, command=scripted(LEAVES.replace("STRAYS", str(strays))))
    child = os.pidfd_open(client.request("pid"))
    gone = select.poll()
    gone.register(child, select.POLLIN)
    with pytest.raises(TimedOut):
        client.request("silence", timeout=0.01)
    if strays:  # It left the group, and is none of the client's business.
        assert not gone.poll(0)
        signal.pidfd_send_signal(child, signal.SIGKILL)
    assert gone.poll(PATIENCE * 1000)
    os.close(child)


def test_a_process_whose_pipe_is_held_ends_when_the_client_does(config):
    client = Client(config, command=scripted(LEAVES.replace("STRAYS", "False")))
    child = os.pidfd_open(client.request("pid"))
    client.close()
    gone = select.poll()
    gone.register(child, select.POLLIN)
    assert not gone.poll(0)
    signal.pidfd_send_signal(child, signal.SIGKILL)
    os.close(child)


@pytest.mark.parametrize("timeout", [0, -1.0, math.inf, math.nan, 1e12, 86_401])
def test_a_limit_is_some_time_and_no_more_than_a_day(config, client, timeout):
    with pytest.raises(InvalidArgument, match="timeout"):
        Client(config, timeout=timeout)
    with pytest.raises(InvalidArgument, match="timeout"):
        client.request("status", timeout=timeout)


@pytest.mark.parametrize("timeout", ["5", True, [5]])
def test_a_limit_is_a_number(config, client, timeout):
    with pytest.raises(InvalidType, match="timeout"):
        Client(config, timeout=timeout)
    with pytest.raises(InvalidType, match="timeout"):
        client.request("status", timeout=timeout)


def test_a_limit_is_in_seconds(config):
    code = "import signal; signal.pause()"
    with pytest.raises(TimedOut, match=r"it had 0\.01 s"):
        Client(config, command=scripted(code), timeout=0.01).request("status")


def test_a_process_that_reads_nothing_is_ended_too(config):
    code = "import signal; signal.pause()"
    with pytest.raises(TimedOut):
        Client(config, command=scripted(code)).request("x", timeout=0.5, text="x" * 1_000_000)


@pytest.mark.parametrize(
    "said",
    [
        '{"id": 99, "result": 1}',
        '{"id": null, "result": 1}',
        '{"id": ID}',
        '{"id": ID, "error": "x"}',
        '{"id": ID, "error": {"code": "x"}}',
        '{"id": ID, "result": 1, "error": {"code": "x", "message": "y"}}',
        '{"id": ID, "result": 1}\n{"id": 2, "result": 2}',
        "[1]",
        "[" * 100_000,
        "no json",
        "{}",
        "",
    ],
    ids=lambda said: said[:60],
)
def test_what_is_no_answer_is_not_taken_for_one(config, said):
    code = f"""
import json, os, sys
identifier = json.loads(sys.stdin.readline())["id"]
os.write(1, {said!r}.replace("ID", str(identifier)).encode() + b"\\n")
for line in sys.stdin:
    os.write(1, line.replace(b'"operation"', b'"result"'))
"""
    with Client(config, command=scripted(code)) as client:
        for _ in range(2):  # The second time of another process, or it would be answered.
            with pytest.raises(ProcessLost):
                client.request("status")


def test_a_program_that_is_not_there(config):
    with pytest.raises(ProcessLost):
        Client(config, command=["/nowhere/engram"]).request("status")


def test_bad_settings_lose_the_process(config, tmp_path, capfd):
    config.write_text("top: canary\n", encoding="utf-8")
    with Client(config, environ=environment(tmp_path)) as client, pytest.raises(ProcessLost):
        client.request("status")
    assert "canary" not in capfd.readouterr().err


def test_threads_share_a_client(client, project):
    barrier = threading.Barrier(4)

    def work(number: int) -> list[str]:
        barrier.wait()
        summaries = []
        for turn in range(10):
            task, summary = f"task {number}", f"{number}.{turn}"
            client.request("checkpoint", project_id=project, task=task, summary=summary)
            [row] = client.request("resume", project_id=project, task=task)["checkpoints"]
            summaries.append(row["summary"])
        return summaries

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert found == [[f"{number}.{turn}" for turn in range(10)] for number in range(4)]


def test_an_interrupted_request_leaves_no_answer_behind(client, monkeypatch):
    first = client.request("status")["pid"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("engram.api.client.json.loads", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.request("operations")
    assert client.request("status")["pid"] != first
