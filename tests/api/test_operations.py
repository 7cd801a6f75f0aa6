"""Every operation: what it answers, and what it refuses before it looks at the store."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import UTC, datetime, timedelta

import dormant
import pytest
from stand_ins import WordEmbedder
from workers import observation

from engram import Engram, __version__
from engram.ledger import Ledger

CONTEXT = {"project_path", "boundary", "selection", "memories", "checkpoints"}


def remembered(store, *contents: str, **options: object) -> list[str]:
    with Engram(store, embedder=WordEmbedder()) as memory:
        return [memory.remember(content, **options) for content in contents]


def test_status(store, worker, project):
    before = time.time()
    remembered(store, "one", "two", project=project)
    remembered(store, "three", layer="semantic")
    worker.result("evidence_put", **observation(project))
    status = worker.result("status")
    assert abs(status.pop("started_at") - before) < 60
    assert status.pop("db_size_mb") >= 0
    assert status.pop("connection_scope")
    assert status == {
        "initialized": True,
        "memories": {"episodic": 2, "semantic": 1, "total": 3},
        "evidence": 1,
        "entities": 0,
        "relationships": 0,
        "protocol": "engram-jsonl",
        "version": 1,
        "engram_version": __version__,
        "pid": worker.process.pid,
        "storage_backend": "sqlite",
        "dormant_mode": "off",
        "automatic_capture": False,
    }


@pytest.mark.parametrize("there", [True, False], ids=["empty file", "nothing"])
def test_the_status_of_a_store_that_nobody_made(path, start, there):
    if there:
        path.touch()
    worker = start()
    status = worker.result("status")
    assert status["initialized"] is False
    assert status["memories"] == {"total": 0}
    assert [status[name] for name in ("evidence", "entities", "relationships")] == [0, 0, 0]
    assert status["db_size_mb"] == 0.0
    assert status["pid"] == worker.process.pid
    assert worker.finish()[1:] == (0, "")
    assert [file.stat().st_size for file in path.parent.glob(f"{path.name}*")] == [0] * there
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.remember("one")
    assert set(start().result("status")) == set(status)


def test_config_show_hides_secrets(config, start):
    config.write_text(config.read_text() + "hf_token: canary-hf\n", encoding="utf-8")
    worker = start(ENGRAM_RETRIEVAL_TOP_K="7", ENGRAM_WEB_AUTH_TOKEN="canary-web")
    shown = worker.result("config_show")
    assert "canary" not in json.dumps(shown)
    assert shown["version"] == __version__
    assert shown["config_file"] == str(config)
    assert shown["values"]["retrieval"]["top_k"] == 7
    assert shown["values"]["hf_token"] == "<redacted>"
    assert shown["sources"]["retrieval.top_k"] == "env:ENGRAM_RETRIEVAL_TOP_K"
    assert shown["sources"]["hf_token"] == "file"
    assert isinstance(shown["warnings"], list)


def test_recall_and_resume(store, worker, project):
    ids = remembered(store, "x" * 2000, "y" * 2001, project=project, created_at=1000.5)
    remembered(store, "elsewhere", project="/elsewhere")
    for number in range(4):
        worker.result("checkpoint", project_id=project, task=f"t{number}", summary="s")
    answer = worker.result("recall", project_id=project + "/.")
    assert set(answer) == CONTEXT
    assert answer["project_path"] == os.path.realpath(project)
    assert [row["id"] for row in answer["memories"]] == sorted(ids)
    rows = {row.pop("id"): row for row in answer["memories"]}
    common = {"layer": "episodic", "memory_type": "narrative", "created_at": 1000.5}
    assert rows == {
        ids[0]: {**common, "content": "x" * 2000, "truncated": False},
        ids[1]: {**common, "content": "y" * 2000, "truncated": True},
    }
    assert [row["task"] for row in answer["checkpoints"]] == ["t3", "t2", "t1"]
    again = worker.result("session_resume", project_id=project)
    assert again == worker.result("resume", project_id=project, task=None)
    assert again == worker.result("recall", project_id=project)
    [one] = worker.result("resume", project_id=project, task=" t0 ")["checkpoints"]
    assert set(one) == {"task", "summary", "decisions", "next_steps", "blockers", "updated_at"}
    assert worker.result("resume", project_id=project, task="T0")["checkpoints"] == []
    assert len(worker.result("recall", project_id=project, limit=1)["memories"]) == 1
    assert worker.code("recall", project_id=project, task="t0") == "invalid_params"


def test_checkpoints_are_replaced_and_cleared(worker, project):
    saved = worker.result(
        "session_checkpoint", project_id=project, task=" rel ", summary=" a ", decisions=[" d "]
    )
    assert saved == {
        "status": "saved",
        "task": "rel",
        "project_path": os.path.realpath(project),
        "memory_reinforcement": False,
    }
    worker.result("checkpoint", project_id=project, task="rel", summary="b", blockers=["c"])
    [row] = worker.result("resume", project_id=project)["checkpoints"]
    row.pop("updated_at")
    assert row == {
        "task": "rel", "summary": "b", "decisions": [], "next_steps": [], "blockers": ["c"]
    }  # fmt: skip
    clear = {"project_id": project, "task": " rel ", "action": "clear"}
    cleared = {"status": "cleared", "task": "rel", "project_path": os.path.realpath(project)}
    assert worker.result("checkpoint", **clear) == {**cleared, "deleted": True}
    assert worker.result("checkpoint", **clear) == {**cleared, "deleted": False}
    assert worker.result("resume", project_id=project)["checkpoints"] == []


def test_evidence_is_kept_and_read(worker, project):
    given = observation(project, source_refs=["b", " a ", "b"])
    receipt = worker.result("evidence_put", **given)
    identity = receipt.pop("id")
    assert identity.startswith("evidence-")
    assert receipt.pop("boundary")
    assert receipt.pop("stored_at") > 0
    assert receipt == {
        "evidence_id": "e",
        "state": "supported",
        "outcome": "supported",
        "eligible": True,
        "reason": None,
        "verified_by_engram": False,
    }
    read = worker.result("evidence_get", project_id=project, id=identity)
    assert read.pop("boundary")
    assert read.pop("stored_at") > 0
    assert read == {
        "id": identity,
        **given,
        "project_id": os.path.realpath(project),
        "source_refs": ["a", "b"],
        "eligible": True,
        "state": "supported",
        "reported_outcome": "supported",
        "verified_by_engram": False,
        "provenance_status": "caller_supplied",
    }
    assert worker.result("evidence_put", **given)["id"] == identity
    assert worker.code("evidence_put", **{**given, "outcome": "unknown"}) == "invalid_params"
    for equal in (True, 1.0):
        changed = {**given, "observation": {"actual": equal}}
        assert worker.code("evidence_put", **changed) == "invalid_params"
    assert [row["id"] for row in worker.result("evidence_list", project_id=project)] == [identity]
    assert worker.result("evidence_list", project_id=project, session_id="other") == []


def test_unknown_evidence_has_no_payload(store, worker, project):
    missing = worker.result("evidence_get", project_id=project, id="evidence-none")
    assert missing.pop("boundary")
    nothing = {
        "state": "unknown", "outcome": "unknown", "eligible": False, "verified_by_engram": False
    }  # fmt: skip
    assert missing == {**nothing, "id": None, "reason": "not_found"}
    given = observation(project, source_refs=["memory:gone"])
    identity = worker.result("evidence_put", **given)["id"]
    read = worker.result("evidence_get", project_id=project, id=identity)
    assert read.pop("boundary")
    assert read == {**nothing, "id": identity, "reason": "source_missing"}
    [listed] = worker.result("evidence_list", project_id=project)
    assert listed.pop("boundary")
    labels = {"evidence_id": "e", "session_id": "s", "assumption_id": "a"}
    assert listed == {**read, **labels}
    with Ledger(store) as ledger:
        ledger.hide(identity)
    again = worker.result("evidence_put", **given)
    assert (again["eligible"], again["reason"]) == (False, "forgotten")


def test_dormant_memories_are_reviewed_inspected_and_judged(store, worker):
    with Engram(store, embedder=WordEmbedder()) as memory:
        uid = memory.remember("the ferry", created_at=datetime.now(UTC) - timedelta(days=400))
        dormant.search(memory, "the ferry")
    [row] = worker.result("dormant_review")
    event = row["id"]
    assert (row["memory_id"], row["outcome"]) == (uid, "candidate")
    assert "the ferry" not in json.dumps(row)
    useful = {"event_id": event, "category": "useful"}
    assert worker.code("dormant_feedback", **useful) == "invalid_params"
    shown = worker.result("dormant_inspect", event_id=event)
    assert set(shown) == {
        "event_id", "memory_id", "content", "status", "source_type", "source_trust", "connection",
        "note",
    }  # fmt: skip
    assert shown["content"] == "the ferry"
    assert worker.result("dormant_feedback", **useful) == {"event_id": event, "feedback": "useful"}
    assert worker.result("dormant_feedback", **useful)["feedback"] == "useful"
    other = {**useful, "category": "dismissed"}
    assert worker.code("dormant_feedback", **other) == "invalid_params"
    assert worker.code("dormant_inspect", event_id="nobody") == "invalid_params"


def test_searches_find_and_explain(path, start, project):
    with Engram(path) as memory:
        uid = memory.remember("The ferry to Kos leaves at noon", project=project)
        memory.remember("Pancakes need two eggs")
    worker = start()
    rows = worker.result("search", query="When does the ferry leave?", top_k=5)
    assert rows[0]["id"] == uid
    assert set(rows[0]) == {"id", "content", "score", "layer", "memory_type", "importance"}
    explained = worker.result("search_explain", query="When does the ferry leave?", top_k=5)
    assert set(explained) == {"results", "explanation"}
    assert explained["results"] == rows
    assert explained["explanation"]["final_ids"] == [row["id"] for row in rows]
    for operation in ("search", "search_explain"):
        assert worker.code(operation, query="x", project_id=project) == "invalid_params"
    assert re.fullmatch("engram api: .*\n|", worker.finish()[2])


def test_a_model_that_is_not_there_fails_searches_alone(store, worker, project):
    remembered(store, "one")
    assert worker.code("search", query="one") == "operation_failed"
    assert worker.code("search_explain", query="one") == "operation_failed"
    assert worker.result("status")["memories"]["total"] == 1


@pytest.mark.parametrize("operation", ["search", "search_explain"])
def test_what_the_environment_gets_wrong_is_not_the_requests_fault(path, start, operation):
    with Engram(path) as memory:
        memory.remember("one")
    worker = start(ENGRAM_THREADS="0")
    assert worker.code(operation, query="one") == "operation_failed"
    assert worker.code(operation, query="\ud800") == "invalid_params"


def test_a_default_above_what_clients_may_ask_for(config, start):
    config.write_text(config.read_text() + "retrieval: {top_k: 21}\n", encoding="utf-8")
    worker = start()
    assert worker.code("search", query="x") == "invalid_params"
    assert worker.code("search_explain", query="x", top_k=None) == "invalid_params"
    assert worker.code("search", query="x", top_k=20) == "operation_failed"


PROJECTS = ["relative", "", "x" * 4097, "/" + "x" * 4096, "/nul\0", "/\ud800", "~nobody-here/x"]
PROJECTS += [" /p", "file:///p", "/loop/x"]

REFUSED = {
    "search": [{"query": " "}, {"query": "x" * 4001}, {"query": "x", "top_k": 21}],
    "recall": [{"project_id": "/p", "limit": 21}, {"project_id": "/p", "limit": True}],
    "resume": [{"project_id": "/p", "task": "\ud800"}, {"project_id": "/p", "task": " "}],
    "checkpoint": [
        {"project_id": "/p", "task": "t"},
        {"project_id": "/p", "task": "t", "summary": " "},
        {"project_id": "/p", "task": "t", "summary": "x" * 4001},
        {"project_id": "/p", "task": "t", "summary": "\ud800"},
        {"project_id": "/p", "task": "\ud800", "summary": "s"},
        {"project_id": "/p", "task": "t", "summary": "s", "decisions": [" "]},
        {"project_id": "/p", "task": "t", "summary": "s", "blockers": ["x"] * 9},
        {"project_id": "/p", "task": "t", "action": "clear", "next_steps": [1]},
        {"project_id": "/p", "task": "t", "action": "erase"},
    ],
    "evidence_put": [
        observation("/p", **changes)
        for changes in (
            {"observed_at": 0},
            {"observed_at": 4e9},
            {"observed_at": 10**400},
            {"expires_at": 1},
            {"expires_at": -(10**400)},
            {"expires_at": 4e12},
            {"observation": {"x": "é" * 700}},
            {"observation": {"x": "\ud800"}},
            {"provenance": {"producer": "p"}},
            {"provenance": {"producer": " ", "check_type": "c"}},
            {"source_refs": ["memory:"]},
            {"source_refs": [" "]},
            {"source_refs": ["x"] * 9},
            {"evidence_id": "\ud800"},
        )
    ],
    "evidence_get": [{"project_id": "/p", "id": " "}, {"project_id": "/p", "id": "x" * 201}],
    "evidence_list": [{"project_id": "/p", "limit": 51}, {"project_id": "/p", "session_id": " "}],
    "dormant_review": [{"limit": 0}, {"limit": 101}],
    "dormant_inspect": [{"event_id": ""}, {"event_id": "x" * 201}],
    "dormant_feedback": [{"event_id": "x", "category": "Useful"}],
}
for needy, others in {
    "recall": {},
    "resume": {},
    "checkpoint": {"task": "t", "summary": "s"},
    "evidence_put": observation("/p"),
    "evidence_get": {"id": "x"},
    "evidence_list": {},
}.items():
    REFUSED[needy] += [{**others, "project_id": project} for project in PROJECTS]


@pytest.mark.parametrize("there", [True, False], ids=["store", "no store"])
def test_bad_arguments_are_told_from_an_outage(path, start, tmp_path, there):
    if there:
        with Engram(path, embedder=WordEmbedder()):
            pass
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    worker = start()
    for operation, cases in REFUSED.items():
        for case in cases:
            params = json.loads(json.dumps(case).replace("/loop/", f"{tmp_path}/loop/"))
            assert worker.code(operation, **params) == "invalid_params", (operation, params)
    assert worker.finish()[1:] == (0, "")
    assert path.exists() == there
