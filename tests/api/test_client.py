"""The Python client: it supervises the process and never mixes up answers."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from stand_ins import WordEmbedder
from workers import environment

from engram import Engram
from engram.api.client import Client
from engram.errors import EngramError, ProcessLost, RequestFailed, TimedOut


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


@pytest.fixture
def heard(tmp_path, monkeypatch) -> tuple[Path, list[str]]:
    """A pipe and what processes say in it; a request is late once its process has said something.

    So no test depends on how fast the machine starts processes.
    """
    pipe, said = tmp_path / "pipe", []
    os.mkfifo(pipe)

    class Timer(threading.Timer):
        def run(self) -> None:
            said.append(pipe.read_text())
            self.function(*self.args)

    monkeypatch.setattr("engram.api.client.threading.Timer", Timer)
    return pipe, said


def test_a_process_that_takes_too_long_is_ended(config, heard):
    pipe, pids = heard
    code = f"""
import os, pathlib, signal
pathlib.Path({str(pipe)!r}).write_text(str(os.getpid()))
signal.pause()
"""
    client = Client(config, command=scripted(code))
    for _ in range(2):
        with pytest.raises(TimedOut) as late:
            client.request("status")
        assert isinstance(late.value, TimeoutError)
    assert len(set(pids)) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_a_limit_is_in_seconds(config):
    code = "import signal; signal.pause()"
    with pytest.raises(TimedOut, match=r"it had 0\.01 s"):
        Client(config, command=scripted(code), timeout=0.01).request("status")


def test_a_process_that_reads_nothing_is_ended_too(config):
    code = "import signal; signal.pause()"
    with pytest.raises(TimedOut):
        Client(config, command=scripted(code)).request("x", timeout=0.5, text="x" * 1_000_000)


def test_a_late_answer_is_not_taken_for_another(config, heard, monkeypatch):
    """The first process was about to answer when its time was over."""
    pipe, said = heard
    code = f"""
import json, pathlib, signal, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["operation"] == "slow":
        pathlib.Path({str(pipe)!r}).write_text("late")
        signal.pause()
    print(json.dumps({{"id": request["id"], "result": request["operation"]}}), flush=True)
"""
    client = Client(config, command=scripted(code))
    with pytest.raises(TimedOut):
        client.request("slow")
    assert said == ["late"]
    monkeypatch.undo()
    assert client.request("fast") == "fast"
    client.close()


@pytest.mark.parametrize("said", ['{"id": 99, "result": 1}', "[1]", "no json", "{}", ""], ids=repr)
def test_what_is_no_answer_is_not_taken_for_one(config, said):
    code = f"import sys; sys.stdin.readline(); print({said!r}, flush=True); sys.stdin.readline()"
    with pytest.raises(ProcessLost):
        Client(config, command=scripted(code)).request("status")


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
