"""`engram consolidation`: preview, analyze, apply, log and undo."""

from __future__ import annotations

import pytest
from imported import imported
from stand_ins import Clock, WordEmbedder

from engram.experience import ExperienceMemory
from engram.llm import StubLLMAdapter


@pytest.fixture
def untidy(path):
    """A store with two equal experiences, one without its parent, and one that is old."""
    with ExperienceMemory(path, embedder=WordEmbedder(), clock=Clock()) as memory:
        memory.import_experiences(
            [
                imported("a", tags=("x",)),
                imported("b", tags=("y",)),
                imported("lost", "a lost thing", parent_id="nobody"),
                imported("old", "an old thing", score=0.1, created_at="2020-01-01T00:00:00Z"),
            ]
        )
    return path


def test_preview(run, untidy):
    assert run("consolidation", "preview", untidy).lines == [
        "  exact [1.000]  a",
        "       b",
        "  stale  old",
        "  garbage  lost",
        "1 group of duplicates, 1 stale, 1 garbage",
    ]
    document = run("consolidation", "preview", untidy, "--min-score", "0.05", "--json").document
    assert document == {
        "path": str(untidy),
        "agent_id": None,
        "duplicates": 1,
        "stale": 0,
        "garbage": 1,
        "duplicate_groups": [
            {
                "primary_id": "a",
                "duplicate_ids": ["b"],
                "similarity": 1.0,
                "match_type": "exact",
            }
        ],
        "stale_ids": [],
        "garbage_ids": ["lost"],
    }


def test_how_alike_duplicates_are_is_said_by_an_option(run, path):
    said = "the cache was cleared after the update of the parser and all was well"
    with ExperienceMemory(path, embedder=WordEmbedder(), clock=Clock()) as memory:
        memory.import_experiences([imported("a", said), imported("b", f"{said} again")])
    for command in ("preview", "analyze", "apply"):
        strict, lax = (
            run("consolidation", command, path, "--similarity", cosine, *more, "--json").document
            for cosine in ("1", "0.5")
            for more in [("--dry-run",) if command == "apply" else ()]
        )
        assert strict != lax, command
        assert "0.9" in run("consolidation", command, "--help").out


def test_analyze(run, untidy):
    lines = run("consolidation", "analyze", untidy).lines
    assert lines[0] == "  [0.60] merge b into a"
    assert lines[2] == "  [0.90] archive old"
    assert lines[4] == "  [0.95] delete lost"
    assert lines[-1] == "Analyzed 4 experiences"
    document = run("consolidation", "analyze", untidy, "--json").document
    assert document["analyzed_count"] == 4
    assert document["errors"] == []
    assert document["recommendations"][0]["action"] == {
        "type": "merge",
        "source_id": "a",
        "target_id": "b",
    }


def test_apply_log_and_undo(run, untidy):
    rehearsal = run("consolidation", "apply", untidy, "--dry-run")
    assert rehearsal.lines == ["Merged 1, deleted 1, archived 1, kept 0", "Nothing was changed"]
    assert run("consolidation", "log", untidy).lines == ["  (nothing was done)"]
    done = run("consolidation", "apply", untidy, "--min-confidence", "0.9", "--json").document
    counts = {name: done[name] for name in ("merged", "deleted", "archived", "kept", "errors")}
    assert counts == {"merged": 0, "deleted": 1, "archived": 1, "kept": 0, "errors": []}
    second = run("consolidation", "apply", untidy).lines
    assert second[0] == "Merged 1, deleted 0, archived 0, kept 0"
    run_id = second[1].split()[1].rstrip(";")
    assert run("consolidation", "apply", untidy).lines == [
        "Merged 0, deleted 0, archived 0, kept 0"
    ]
    assert run("consolidation", "undo", untidy, run_id).lines == ["Took back 1 step"]
    assert run("consolidation", "undo", untidy, done["run_id"], "--json").document == {
        "path": str(untidy),
        "agent_id": None,
        "run_id": done["run_id"],
        "undone": 2,
    }
    newest = run("consolidation", "log", untidy, "--limit", "1").lines
    assert "merge (undone)  a < b" in newest[0]
    assert f"by cli  |  run: {run_id}" in newest[1]
    steps = run("consolidation", "log", untidy, "--json").document["steps"]
    assert [step["action"] for step in steps] == ["merge", "delete", "archive"]
    assert all(step["undone"] for step in steps)
    failed = run("consolidation", "undo", untidy, "nothing", "--json")
    assert (failed.code, failed.error["code"]) == (1, "not_found")


def test_a_language_model_is_asked(run, untidy, monkeypatch):
    class Asked(StubLLMAdapter):
        def are_duplicates(self, first, second):
            if first.id == "a":
                message = "what the service said"
                raise RuntimeError(message)
            return True, 0

    monkeypatch.setattr("engram.llm.AnthropicAdapter", Asked)
    outcome = run("consolidation", "apply", untidy, "--llm", "anthropic", "--min-confidence", "1")
    assert outcome.lines == ["Merged 0, deleted 0, archived 0, kept 0"]
    assert outcome.err == "analyze b->a: [2002] llm api unavailable: RuntimeError\n"


def test_a_store_must_be_there(run, path):
    outcome = run("consolidation", "preview", path, "--json")
    assert (outcome.code, outcome.error["code"]) == (1, "file_not_found")
    assert not path.exists()
