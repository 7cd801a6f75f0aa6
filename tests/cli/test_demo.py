"""`engram demo` answers its questions from real embeddings, without the network."""

from __future__ import annotations

import socket

import pytest

from engram import Engram
from engram.demo import QUESTIONS

ANSWERS = ["allergic to hazelnuts", "I want it midnight blue", "The spare key is with Mrs Okafor"]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_, **__):
        pytest.fail("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_the_first_hit_answers_each_question(run):
    document = run("demo", "--json").document
    assert set(document) == {
        "path", "model", "load_seconds", "agent_id", "episodes", "sessions", "remember_seconds",
        "questions",
    }  # fmt: skip
    assert (document["path"], document["episodes"], document["sessions"]) == (None, 30, 3)
    assert [asked["query"] for asked in document["questions"]] == list(QUESTIONS)
    for asked, answer in zip(document["questions"], ANSWERS, strict=True):
        first, second, _ = asked["results"]
        assert answer in first["episode"]["content"]
        assert first["score"] > second["score"]
        assert asked["seconds"] > 0


def test_what_people_read(run, tmp_path):
    done = run("demo")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith("Loaded all-MiniLM-L6-v2-int8 in ")
    assert done.lines[1].startswith(
        "Remembered 30 turns of 3 sessions, 2026-03-02 to 2026-04-20, in "
    )
    for question, answer in zip(QUESTIONS, ANSWERS, strict=True):
        at = next(n for n, line in enumerate(done.lines) if line.startswith(question))
        assert done.lines[at].endswith(" ms)")
        assert done.lines[at + 1].startswith("  1. [")
        assert answer in done.lines[at + 1]
        assert " 2026-" in done.lines[at + 1]
    assert "Where to go next" in done.lines
    assert list(tmp_path.iterdir()) == []


def test_the_store_can_be_kept(run, path):
    done = run("demo", "--keep", path)
    assert f"engram recall {path}" in done.out
    with Engram(path) as memory:
        assert (memory.count(), memory.list_agents()) == (30, ["demo"])
    answer = run("recall", path, "who repaired the roof?", "--k", "1")
    assert "My cousin Wanda" in answer.out
    again = run("demo", "--keep", path)
    assert (again.code, again.out) == (1, "")
    assert again.err == f"error: there is a file already: {path} (give --keep a new path)\n"


def test_a_missing_model_is_an_error(run):
    assert run("demo", "--model", "no-such", "--json").error["code"] == "model_missing"
