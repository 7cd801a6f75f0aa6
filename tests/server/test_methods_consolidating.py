"""Consolidation, as a client of a running server sees it."""

from __future__ import annotations

import pytest
from engram_server import RefusedError, record


@pytest.fixture
def messy(server):
    """A server with six twins, an old memory nobody used, and a child without its parent."""
    twins = [record(f"twin-{n}", 1, score=0.5, used_count=n) for n in range(6)]
    others = [
        record("stale", 2, score=0.1),
        record("used", 3, score=0.1, used_count=1),
        record("good", 4, score=0.9),
        record("orphan", 5, score=0.9, parent_id="gone"),
    ]
    server.ask("memory_import", version=1, memories=[*twins, *others])
    return server


def actions(data) -> dict[str, list[tuple[str, ...]]]:
    said: dict[str, list[tuple[str, ...]]] = {}
    for one in data["recommendations"]:
        action = dict(one["action"])
        said.setdefault(action.pop("type"), []).append(tuple(action.values()))
    return said


def test_a_preview_counts_and_names_and_changes_nothing(messy):
    before = messy.memories()
    data = messy.ask("memory_consolidate_preview")
    assert (data["duplicates"], data["stale"], data["garbage"]) == (1, 1, 1)
    [group] = data["duplicate_groups"]
    assert {group["primary_id"], *group["duplicate_ids"]} == {f"twin-{n}" for n in range(6)}
    assert (group["similarity"], group["match_type"]) == (1.0, "exact")
    assert (data["stale_ids"], data["garbage_ids"]) == (["stale"], ["orphan"])
    assert messy.memories() == before


def test_an_analysis_says_what_should_become_of_them(messy):
    before = messy.memories()
    data = messy.ask("memory_consolidate")
    assert data["analyzed_count"] == 8
    assert data["errors"] == []
    said = actions(data)
    assert sorted(said["merge"]) == [("twin-5", f"twin-{n}") for n in range(5)]
    assert said["archive"] == [("stale",)]
    assert said["delete"] == [("orphan",)]
    assert {one["confidence"] for one in data["recommendations"]} == {0.6, 0.9, 0.95}
    assert all(one["reasoning"] for one in data["recommendations"])
    assert messy.memories() == before


def test_what_is_applied_is_logged_and_can_be_taken_back(messy):
    before = messy.memories()
    done = messy.ask("memory_consolidate_apply")
    assert {name: done[name] for name in ("merged", "deleted", "archived", "kept", "errors")} == {
        "merged": 5,
        "deleted": 1,
        "archived": 1,
        "kept": 0,
        "errors": [],
    }
    assert set(messy.memories()) == {"twin-5", "stale", "used", "good"}
    log = messy.ask("memory_consolidate_log")
    assert log["count"] == len(log["log"]) == 7
    for entry in log["log"]:
        assert {"id", "action", "memory_ids", "reason", "performed_at", "performed_by"} <= set(
            entry
        )
        assert entry["performed_by"] == "server"
    assert len({entry["id"] for entry in log["log"]}) == 7
    assert messy.ask("memory_consolidate_log", limit=2)["log"] == log["log"][:2]
    again = messy.ask("memory_consolidate_apply")
    assert (again["merged"], again["deleted"], again["archived"]) == (0, 0, 0)
    undone = messy.ask("memory_consolidate_undo", run_id=done["run_id"])
    assert undone == {"run_id": done["run_id"], "undone": 7}
    assert messy.memories() == before
    with pytest.raises(RefusedError) as refusal:
        messy.ask("memory_consolidate_undo", run_id="no-run")
    assert refusal.value.message == "[1002] not found: run no-run"


def test_a_dry_run_changes_nothing(messy):
    before = messy.memories()
    done = messy.ask("memory_consolidate_apply", dry_run=True)
    assert (done["merged"], done["deleted"], done["archived"]) == (5, 1, 1)
    assert messy.memories() == before
    assert messy.ask("memory_consolidate_log")["count"] == 0


def test_what_is_not_sure_enough_is_left(messy):
    done = messy.ask("memory_consolidate_apply", min_confidence=0.92)
    assert (done["merged"], done["deleted"], done["archived"]) == (0, 1, 0)


def test_bounds_come_from_the_request_or_the_settings(start):
    server = start('[embedding]\nprovider = "deterministic"\n[consolidation]\nmin_score = 0.05\n')
    server.ask("memory_import", version=1, memories=[record("old", 1, score=0.1)])
    assert server.ask("memory_consolidate_preview")["stale"] == 0
    assert server.ask("memory_consolidate_preview", min_score=0.2)["stale"] == 1
    assert server.ask("memory_consolidate_preview", min_score=0.2, stale_days=3650)["stale"] == 0
    assert server.ask("memory_consolidate_preview", min_score=0, stale_days=0)["stale"] == 0


def test_a_shared_word_makes_no_duplicates(server):
    words = {"a": "the cat pays", "b": "the payment of the order was late in spring", "c": "the"}
    for number, (name, text) in enumerate(words.items()):
        memory = record(name, 26 - number) | {"context": text, "score": 0.9}
        server.ask("memory_import", version=1, memories=[memory])
    assert server.ask("memory_consolidate_preview")["duplicates"] == 0
    assert server.ask("memory_consolidate_apply")["merged"] == 0
    assert server.ask("memory_consolidate_log") == {"log": [], "count": 0}


@pytest.mark.parametrize("method", ["memory_consolidate_preview", "memory_consolidate"])
@pytest.mark.parametrize(
    "params",
    [{"stale_days": 3651}, {"stale_days": -1}, {"min_score": 1.01}, {"min_score": -0.1}],
)
def test_bounds_out_of_range_are_refused_by_name(shared, method, params):
    [name] = params
    with pytest.raises(RefusedError, match=rf"^\[6007\] dispatch error: .*{name}"):
        shared.ask(method, **params)


@pytest.mark.parametrize("params", [{"min_confidence": 2}, {"stale_days": 1.5}, {"dry_run": 1}])
def test_what_apply_refuses(shared, params):
    [name] = params
    with pytest.raises(RefusedError, match=rf"^\[6007\] dispatch error: .*{name}"):
        shared.ask("memory_consolidate_apply", **params)


def test_nothing_to_do_is_no_failure(shared):
    assert shared.ask("memory_consolidate_preview", stale_days=0)["duplicate_groups"] == []
    assert shared.given("memory_consolidate", None)["recommendations"] == []
