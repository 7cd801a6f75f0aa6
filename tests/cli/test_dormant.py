"""`engram dormant`: reviewing, inspecting and judging from the shell."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from dormant import search
from stand_ins import Clock, WordEmbedder

from engram import Engram

TEA = "the tea ceremony\nin Kyoto"


@pytest.fixture
def config(tmp_path, path):
    file = tmp_path / "engram.yaml"
    # In JSON, which is YAML too, any path is a plain string.
    file.write_text(f"db_path: {json.dumps(str(path))}\n")
    return file


@pytest.fixture
def memory(path):
    clock = Clock(datetime.now(UTC) - timedelta(days=31))
    with Engram(path, embedder=WordEmbedder(), clock=clock) as memory:
        memory.observe(TEA)
        clock.advance(days=31)
        yield memory


@pytest.fixture
def dormant(run, config, memory):
    def command(*arguments):
        return run("--config", config, "dormant", *arguments)

    return command


def test_an_evaluation_is_reviewed_inspected_and_judged(dormant, memory):
    search(memory, TEA)
    [event] = dormant("review", "--json").document["events"]
    assert (event["outcome"], event["shown_at"]) == ("candidate", None)
    assert event["id"] in dormant("review").out
    shown = dormant("inspect", event["id"], "--json").document
    assert (shown["content"], shown["memory_id"]) == (TEA, event["memory_id"])
    judged = dormant("feedback", event["id"], "useful", "--json").document
    assert judged == {"event_id": event["id"], "feedback": "useful"}
    assert "useful" in dormant("review").out


def test_for_people_each_line_of_a_memory_is_indented(dormant, memory):
    search(memory, TEA)
    [event] = dormant("review", "--json").document["events"]
    shown = dormant("inspect", event["id"])
    assert shown.lines[:2] == ["       the tea ceremony", "       in Kyoto"]
    assert dormant("feedback", event["id"], "dismissed").out == "noted: dismissed\n"


def test_nothing_to_review_is_said(dormant, memory):
    assert dormant("review").out == "  (no evaluations)\n"
    search(memory, "other things")
    assert "none, 1 looked at" in dormant("review").out
    assert dormant("review", "--limit", "1", "--json").document["events"][0]["memory_id"] is None


@pytest.mark.parametrize("arguments", [("inspect", "nope"), ("feedback", "nope", "useful")])
def test_an_unknown_event_is_a_clean_failure(dormant, arguments):
    failed = dormant(*arguments)
    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("error: there is no such event")
    assert failed.err.count("\n") == 1
    failed = dormant(*arguments, "--json")
    assert (failed.code, failed.error["code"]) == (1, "not_found")


def test_feedback_before_inspection_is_a_clean_failure(dormant, memory):
    search(memory, TEA)
    [event] = dormant("review", "--json").document["events"]
    failed = dormant("feedback", event["id"], "useful", "--json")
    assert (failed.code, failed.error["code"]) == (1, "invalid_argument")


def test_wrong_arguments_are_told(dormant):
    assert dormant("feedback", "x", "great").code == 2
    assert dormant("review", "--limit", "0").code == 1
    assert dormant("review", "--limit", "many").code == 2


@pytest.mark.parametrize("command", [("review",), ("inspect", "x"), ("feedback", "x", "useful")])
def test_no_store_is_made(run, config, path, command):
    failed = run("--config", config, "dormant", *command, "--json")
    assert (failed.code, failed.error["code"]) == (1, "cannot_open")
    assert not path.exists()


def test_a_store_of_another_kind_is_refused(run, tmp_path):
    config = tmp_path / "engram.yaml"
    config.write_text("storage_backend: postgres\npostgres_dsn: dbname=x\n")
    failed = run("--config", config, "dormant", "review", "--json")
    assert (failed.code, failed.error["code"]) == (1, "cannot_open")
