"""Searching and judging, as a client of a running server sees them."""

from __future__ import annotations

import json

import pytest
from engram_server import RefusedError, record

TOPICS = {
    "auth": "the token of the login expired and the session was refused",
    "parser": "grammar of nested brackets overflows the stack of the reader",
    "cache": "stale entries of the shared cache survive a deployment at night",
}


@pytest.fixture
def filled(server):
    """A server with a memory of each topic, by topic."""
    server.ids = {}
    for number, (topic, text) in enumerate(TOPICS.items()):
        said = server.ask(
            "memory_store",
            context=text,
            action="a" * (number * 60 + 5),
            result="r" * (number * 90 + 5),
            memory_type=("bugfix", "pattern", "decision")[number],
            tags=[topic.upper(), "all"],
            project="atlas" if topic == "auth" else "zeus",
        )
        server.ids[topic] = said["id"]
    return server


def found(server, **params: object) -> list[str]:
    return [hit["id"] for hit in server.ask("memory_search", **params)["results"]]


def test_a_search_answers_in_both_forms(filled):
    data = filled.ask("memory_search", query="login token", limit=2)
    assert data["results"] == data["memories"]
    assert data["count"] == len(data["results"]) == 2
    assert data["degraded"] is False
    first = data["results"][0]
    assert set(first) == {"id", "score", "context", "action", "result", "memory_type", "tags"}
    assert first["id"] == filled.ids["auth"]
    assert first["context"] == TOPICS["auth"]
    assert json.loads(first["tags"]) == ["AUTH", "all"]
    scores = [hit["score"] for hit in data["results"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] <= 1 / 61 + 1e-9


def test_an_empty_store_has_no_answers(server):
    data = server.ask("memory_search", query="anything")
    assert (data["results"], data["memories"], data["count"]) == ([], [], 0)


def test_how_many_come_back(filled):
    assert len(found(filled, query="cache", limit=1)) == 1
    assert found(filled, query="cache", limit=0) == []
    assert len(found(filled, query="cache", limit=10**12)) == 3
    assert len(found(filled, query="cache", limit=2.0)) == 2
    assert len(found(filled, query="update the version")) == 3, "10 unless it is said"
    assert len(found(filled, query="")) == 3
    assert len(found(filled, query="auth", tags=["all"], limit=2)) == 2


def test_tags_match_in_any_case_and_all_of_them(filled):
    assert found(filled, query="cache", tags=["auth", "ALL"]) == [filled.ids["auth"]]
    assert found(filled, query="cache", tags=["auth", "parser"]) == []
    assert found(filled, query="cache", tags=["aut"]) == []
    assert len(found(filled, query="cache", tags=[])) == 3


def test_types_are_one_or_several(server):
    kinds = ("decision", "bugfix", "pattern")
    memories = [
        record(f"{kind}-{number}", number, memory_type=kind, project=f"{number}")
        for number in range(4)
        for kind in kinds
    ]
    server.ask("memory_import", version=1, memories=memories)
    named = {kind: {one["id"] for one in memories if one["memory_type"] == kind} for kind in kinds}
    one = found(server, query="c1", memory_type="bugfix", limit=4)
    assert set(one) == named["bugfix"]
    assert set(found(server, query="c1", memory_type=["bugfix"], limit=4)) == named["bugfix"]
    two = found(server, query="c1", memory_type=["pattern", "bugfix"], limit=100)
    assert set(two) == named["pattern"] | named["bugfix"]
    for anything in (None, []):
        assert len(found(server, query="c1", memory_type=anything, limit=100)) == 12
    for wrong in ("guess", "", ["bugfix", "SECRET"], 5, [5], {"SECRET": 1}):
        with pytest.raises(RefusedError, match=r"^\[6007\] .*memory_type") as refusal:
            server.ask("memory_search", query="c1", memory_type=wrong)
        assert "SECRET" not in refusal.value.message


def test_another_project_counts_for_less_and_nothing_when_so_set(start):
    for settings, expected in (("", ["mine", "other"]), ("other_project_weight = 0\n", ["mine"])):
        server = start(f'[embedding]\nprovider = "deterministic"\n[search]\n{settings}')
        memories = [
            record("other", 1, project="zeus", context="login token expired"),
            record("mine", 26, project="atlas", context="login page"),
        ]
        server.ask("memory_import", version=1, memories=memories)
        assert found(server, query="login token", project="atlas") == expected


def test_the_same_search_gives_the_same_answer_whatever_was_judged(filled):
    before = filled.ask("memory_search", query="fix the bug of the login", limit=3)
    for _ in range(20):
        again = filled.ask("memory_search", query="fix the bug of the login", limit=3)
        assert again["results"] == before["results"]
        filled.ask("memory_judge", memory_id=again["results"][0]["id"], score=0.1)


def test_a_search_says_how_to_go_about_it(filled):
    data = filled.ask("memory_search", query="crash of the parser", mode="no such mode")
    assert data["routing"]["mode"] == "debug"
    assert filled.ask("memory_search", query="x", mode="PLAN")["routing"]["mode"] == "plan"
    assert data["query_id"] != filled.ask("memory_search", query="x")["query_id"]


def test_a_query_has_at_most_5000_bytes(filled):
    assert filled.ask("memory_search", query="é" * 2500)["results"]
    with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: .*query"):
        filled.ask("memory_search", query="é" * 2500 + "x")


def test_judging_waits_for_what_was_shown(filled):
    assert filled.ask("memory_status")["pending_judgments"] == 0
    shown = found(filled, query="login")
    assert filled.ask("memory_status")["pending_judgments"] == len(shown)
    for memory_id in shown:
        filled.ask("memory_judge", memory_id=memory_id, score=0.5)
    assert filled.ask("memory_status")["pending_judgments"] == 0
    found(filled, query="login")
    assert filled.ask("memory_status")["pending_judgments"] == 0


def test_a_score_is_kept_as_it_was_given(filled):
    judged = filled.ask("memory_judge", memory_id=filled.ids["auth"], score=0.8)
    assert judged == {"score": 0.8, "reason": "explicit score", "degraded": False}
    one = filled.memories()[filled.ids["auth"]]
    assert one["score"] == 0.8
    assert one["used_count"] == 0
    assert one["created_at"] == one["updated_at"]
    assert filled.ask("memory_judge", memory_id=filled.ids["auth"], score=1)["score"] == 1.0


def test_a_score_without_one_is_made_by_the_formula(filled):
    fresh = filled.ask("memory_judge", memory_id=filled.ids["auth"])
    assert fresh["score"] == pytest.approx(0.3, abs=1e-4)
    assert fresh["degraded"] is False
    assert fresh["reason"] == "keyword:0.00 recency:1.00 frequency:0.00"
    asked = filled.ask("memory_judge", memory_id=filled.ids["auth"], query="Login unicorn")
    assert asked["score"] == pytest.approx(0.5, abs=1e-4)
    assert asked["reason"].startswith("keyword:0.50 ")


def test_what_cannot_be_judged(filled):
    one = filled.ids["auth"]
    with pytest.raises(RefusedError) as refusal:
        filled.ask("memory_judge", memory_id="abc-123", score=0.5)
    assert refusal.value.message == "[1002] not found: memory abc-123"
    for params in (
        {"memory_id": ""},
        {"memory_id": "é" * 50 + "x"},
        {"memory_id": one, "score": 1.5},
        {"memory_id": one, "score": -0.01},
        {"memory_id": one, "score": "SECRET"},
    ):
        with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: ") as refusal:
            filled.ask("memory_judge", **params)
        assert list(params)[-1] in refusal.value.message
        assert "SECRET" not in refusal.value.message
    assert filled.memories()[one]["score"] == 0.0


def test_merged_memories_are_not_found(server):
    twins = [record(f"t{n}", 5, project="p") for n in range(3)]
    server.ask("memory_import", version=1, memories=twins)
    server.ask("memory_consolidate_apply", stale_days=3650)
    assert len(found(server, query="c5")) == 1
    assert server.ask("memory_export")["count"] == 1
