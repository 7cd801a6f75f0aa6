"""Insights and the trainer, as a client of a running server sees them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from engram_server import DETERMINISTIC, RefusedError, texts


def insight(number: int, **members: object) -> str:
    said = {
        "type": "insight",
        "id": f"insight-{number}",
        **texts(number),
        "insight_type": "cluster",
        "tags": None,
        "source_ids": None,
    }
    return json.dumps(said | members)


COMPLETE = '{"type":"complete","insights_generated":1,"duration_secs":0.5}'
PROGRESS = '{"type":"progress","stage":"clustering","percent":45.0}'


def printing(*lines: str) -> str:
    return f"for line in {lines!r}: print(line)"


@pytest.fixture
def trained(start, trainer):
    """Return a server whose trainer does what the body says, as changed by `trainer` later."""

    def made(body: str, **variables: str):
        return start(DETERMINISTIC, ENGRAM_TRAINER_BINARY=trainer(body), **variables)

    return made


def test_insights_are_kept_and_listed(trained):
    server = trained(printing(PROGRESS, insight(1, tags="perf,cache"), COMPLETE))
    assert server.ask("memory_train_generate") == {"generated": 1, "messages_parsed": 3}
    data = server.ask("memory_train_list")
    assert data["count"] == 1
    [one] = data["insights"]
    assert one == server.memories()["insight-1"]
    assert (one["memory_type"], one["insight_type"]) == ("insight", "cluster")
    assert one["tags"] == '["perf","cache"]'
    assert one["source_ids"] is None
    assert server.ask("memory_insights", action="list") == data
    assert server.ask("memory_insights") == data
    hits = server.ask("memory_search", query="c1")["results"]
    assert [hit["id"] for hit in hits] == ["insight-1"]


def test_another_run_replaces_them_and_one_without_any_does_not(trained, trainer):
    server = trained(printing(insight(1)))
    server.ask("memory_train_generate")
    server.ask("memory_search", query="c1")
    trainer(printing(insight(2), insight(3)))
    assert server.ask("memory_train_generate")["generated"] == 2
    ids = {one["id"] for one in server.ask("memory_train_list")["insights"]}
    assert ids == {"insight-2", "insight-3"}
    trainer("")
    assert server.ask("memory_train_generate") == {"generated": 0, "messages_parsed": 0}
    assert server.ask("memory_train_list")["count"] == 2
    trainer(printing(insight(2)))
    assert server.ask("memory_insights", action="generate")["generated"] == 1
    assert server.ask("memory_train_list")["count"] == 1


def test_a_judged_insight_keeps_its_score(trained):
    server = trained(printing(insight(1)))
    server.ask("memory_train_generate")
    server.ask("memory_judge", memory_id="insight-1", score=0.9)
    server.ask("memory_train_generate")
    assert server.memories()["insight-1"]["score"] == 0.9


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((PROGRESS, "{broken", COMPLETE), "line 2"),
        ((PROGRESS, '{"stage":"x","percent":1.0}'), "line 2"),
        (('{"type":"novelty"}',), "line 1"),
        ((PROGRESS, insight(2, context=None)), "line 2"),
        ((insight(2, insight_type="guess"),), "insight_type"),
    ],
)
def test_a_line_that_is_no_message_voids_the_run(trained, trainer, lines, said):
    server = trained(printing(insight(1)))
    server.ask("memory_train_generate")
    before = server.memories()
    trainer(printing(*lines))
    with pytest.raises(RefusedError, match=r"^\[6015\] trainer malformed output: ") as refusal:
        server.ask("memory_train_generate")
    assert said in refusal.value.message
    assert server.memories() == before


def test_a_trainer_that_prints_no_text(trained):
    server = trained("sys.stdout.buffer.write(bytes([255, 254, 10]))")
    with pytest.raises(RefusedError, match=r"^\[6015\] trainer malformed output: "):
        server.ask("memory_train_generate")


def test_a_trainer_that_fails_says_why(trained):
    server = trained("sys.stderr.write('the disk is on fire'); sys.exit(3)")
    with pytest.raises(RefusedError, match=r"^\[6013\] trainer failed: .*the disk is on fire"):
        server.ask("memory_train_generate")


def test_the_error_that_a_trainer_prints_is_passed_on(trained):
    line = json.dumps({"type": "error", "message": "no table memories"})
    server = trained(f"print({line!r}); sys.exit(1)")
    with pytest.raises(RefusedError, match=r"^\[6013\] trainer failed: .*no table memories"):
        server.ask("memory_train_generate")


def test_a_trainer_that_takes_too_long_is_killed(trained, tmp_path):
    note = tmp_path / "pid"
    body = f"open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(3600)"
    server = trained(body, ENGRAM_TRAINER_TIMEOUT="1")
    with pytest.raises(RefusedError, match=r"^\[6014\] trainer timeout"):
        server.ask("memory_train_generate")
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path(note).read_text()), 0)
    assert server.ask("memory_status")["memory_count"] == 0


def test_no_such_trainer(start):
    server = start(DETERMINISTIC, ENGRAM_TRAINER_BINARY="/nowhere/trainer")
    for params in ({}, None, [1]):
        with pytest.raises(RefusedError, match=r"^\[6013\] trainer failed: "):
            server.given("memory_train_generate", params)


def test_what_it_says_beside_insights_shows_in_the_status(trained, trainer):
    server = trained("")
    assert server.ask("memory_status")["training"] is None
    stored = server.ask("memory_store", **texts(3))["id"]
    trainer(
        printing(
            json.dumps(
                {
                    "type": "recommendation",
                    "target_id": stored,
                    "action": "archive",
                    "reasoning": "old",
                }
            ),
            '{"type":"metric","name":"cluster_count","value":12.0}',
            '{"type":"artifact","path":"/m/x.onnx","size_bytes":7}',
            COMPLETE,
        )
    )
    assert server.ask("memory_train_generate") == {"generated": 0, "messages_parsed": 4}
    said = server.ask("memory_status")["training"]
    assert said["recommendations"] == [
        {"target_id": stored, "action": "archive", "reasoning": "old"}
    ]
    assert said["metrics"] == [{"name": "cluster_count", "value": 12.0}]
    assert said["artifacts"] == [{"path": "/m/x.onnx", "size_bytes": 7, "sha256": None}]
    assert said["failure"] is None


def recommendation(target: str, reasoning: str = "old") -> str:
    said = {"target_id": target, "action": "archive", "reasoning": reasoning}
    return json.dumps({"type": "recommendation"} | said)


def test_the_status_has_the_first_recommendations_and_the_list_all(trained, trainer):
    server = trained("")
    asked = server.ask("memory_train_list", recommendations=True)
    assert (asked["recommendations"], asked["recommendation_count"]) == ([], 0)
    stored = server.ask("memory_store", **texts(3))["id"]
    trainer(printing(*(recommendation(stored, f"reason {number}") for number in range(50))))
    server.ask("memory_train_generate")
    said = server.ask("memory_status")["training"]
    assert said["recommendation_count"] == 50
    reasons = [one["reasoning"] for one in said["recommendations"]]
    assert reasons == [f"reason {number}" for number in range(20)]
    for method, params in (("memory_train_list", {}), ("memory_insights", {"action": "list"})):
        assert server.ask(method, **params) == {"insights": [], "count": 0}
        everything = server.ask(method, **params, recommendations=True)
        assert everything["recommendation_count"] == len(everything["recommendations"]) == 50
        assert everything["recommendations"][49] == {
            "target_id": stored,
            "action": "archive",
            "reasoning": "reason 49",
        }
        some = server.ask(method, **params, recommendations=True, limit=2)
        assert (len(some["recommendations"]), some["recommendation_count"]) == (2, 50)
    with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: .*limit"):
        server.ask("memory_train_list", recommendations=True, limit=-1)


def test_what_a_run_says_is_kept_within_limits(trained, trainer):
    server = trained("")
    stored = server.ask("memory_store", **texts(3))["id"]
    long = "x" * 100_000
    trainer(
        f"""for number in range(10_050): print({recommendation(stored)!r})
for number in range(1_050): print('{{"type":"metric","name":"m","value":1.0}}')
for number in range(1_050): print('{{"type":"artifact","path":"/m","size_bytes":1}}')"""
    )
    server.ask("memory_train_generate")
    said = server.ask("memory_status")["training"]
    assert said["recommendation_count"] == 10_000
    assert (len(said["metrics"]), len(said["artifacts"])) == (1000, 1000)
    trainer(printing(recommendation(stored, long)))
    server.ask("memory_train_generate")
    [one] = server.ask("memory_status")["training"]["recommendations"]
    assert one["reasoning"] == "x" * 4096


def test_each_project_trains_and_uses_its_own_models(trained, trainer, tmp_path):
    note = tmp_path / "arguments"
    body = (
        f"open({str(note)!r}, 'a').write(sys.argv[sys.argv.index('--models-path') + 1] + chr(10))"
    )
    shared = tmp_path / "models"
    folders = []
    for server in (trained(body, ENGRAM_MODELS_PATH=str(shared)) for _ in range(2)):
        server.ask("memory_train_generate")
        folders.append(server.ask("memory_config")["effective"]["models_path"])
    assert note.read_text().split() == folders
    assert len(set(folders)) == 2
    assert {Path(folder).parent for folder in folders} == {shared}


def test_insights_are_deleted_and_nothing_else_is(trained):
    server = trained(printing(insight(1), insight(2)))
    server.ask("memory_train_generate")
    other = server.ask("memory_store", **texts(3))["id"]
    assert server.ask("memory_train_delete", id="insight-1") == {"deleted": "insight-1"}
    assert server.ask("memory_insights", action="delete", id="insight-2") == {
        "deleted": "insight-2"
    }
    assert server.ask("memory_train_list") == {"insights": [], "count": 0}
    for method, params in (
        ("memory_train_delete", {}),
        ("memory_insights", {"action": "delete"}),
    ):
        with pytest.raises(RefusedError) as refusal:
            server.ask(method, **params, id=other)
        assert refusal.value.message.startswith("[6007] dispatch error: ")
        assert "is not an insight" in refusal.value.message
        with pytest.raises(RefusedError) as refusal:
            server.ask(method, **params, id="nobody")
        assert refusal.value.message == "[1002] not found: memory nobody"
        with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: .*id"):
            server.ask(method, **params)
    with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: invalid insights action"):
        server.ask("memory_insights", action="SECRET")
    assert set(server.memories()) == {other}
