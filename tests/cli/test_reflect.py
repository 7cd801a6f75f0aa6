"""`engram reflect`, as section 14 documents it, and `engram compress`."""

from __future__ import annotations

import re

import pytest

import engram.llm
from engram import Engram, StubLLMAdapter
from engram.errors import MissingExtra

FACT = {"subject": "Ben", "predicate": "keeps", "object": "bees", "confidence": 0.9}


class Asked(StubLLMAdapter):
    """A language model that answers with one fact, and remembers how it was made."""

    made: list[dict[str, object]]

    def __init__(self, **options: object) -> None:
        super().__init__([FACT], tokens=12_345, summary="Ben keeps bees and Ana sails.")
        self.made.append(options)


@pytest.fixture(autouse=True)
def made(monkeypatch):
    made: list[dict[str, object]] = []
    monkeypatch.setattr(Asked, "made", made, raising=False)
    for name in ("Anthropic", "OpenAI", "Gemini", "DeepSeek", "Qwen", "Kimi"):
        monkeypatch.setattr(engram.llm, f"{name}Adapter", Asked)
    return made


def test_without_a_language_model_nothing_is_consumed(run, store):
    done = run("reflect", store)
    assert (done.code, done.err) == (0, "")
    assert done.lines[:4] == [
        f"Running reflection on {store}…",
        "Episodes processed: 0",
        "Facts extracted: 0",
        "Contradictions: 0",
    ]
    assert re.fullmatch(r"Done in \d+\.\ds", done.lines[4])
    document = run("reflect", store, "--llm", "openai", "--json").document
    assert (document["episodes_processed"], document["episodes_waiting"]) == (3, 0)


def test_the_output_as_documented(run, store, made):
    options = ("--llm", "openai", "--model", "m", "--base-url", "http://localhost:1/v1")
    done = run("reflect", store, *options, "--agent-id", "ana")
    assert (done.code, done.err) == (0, "")
    assert done.lines[:-1] == [
        f"Running reflection on {store}…",
        "Episodes processed: 2",
        "Facts extracted: 1",
        "Contradictions: 0",
        "Tokens used: 12,345",
    ]
    assert re.fullmatch(r"Done in \d+\.\ds", done.lines[-1])
    assert made == [{"model": "m", "base_url": "http://localhost:1/v1"}]
    (fact,) = run("facts", store, "--json").document["facts"]
    assert (fact["agent_id"], fact["shared"]) == ("ana", False)
    run("reflect", store, "--llm", "openai", "--agent-id", "ben", "--shared")
    assert run("facts", store, "--json").document["facts"][-1]["shared"] is True


def test_json(run, store):
    document = run("reflect", store, "--llm", "kimi", "--json").document
    for name in ("id", "started_at", "finished_at"):
        assert document.pop(name)
    assert document == {
        "path": str(store),
        "agent_id": None,
        "episodes_processed": 3,
        "episodes_waiting": 0,
        "facts_extracted": document["facts_extracted"],
        "contradictions_resolved": 0,
        "pruned": [],
        "model_used": "stub",
        "cost_tokens": document["cost_tokens"],
        "dry_run": False,
    }


def test_a_dry_run_changes_nothing(run, store):
    done = run("reflect", store, "--llm", "openai", "--dry-run")
    assert done.lines == [
        f"Running reflection on {store}…",
        "Episodes waiting: 3",
        "Episodes to prune: 0",
        "Nothing was changed",
    ]
    assert run("inspect", store, "--json").document["reflections"] == 0


@pytest.mark.parametrize("name", ["anthropic", "openai", "gemini", "deepseek", "qwen", "kimi"])
def test_each_language_model_has_a_name(run, store, name, made):
    assert run("reflect", store, "--llm", name).code == 0
    assert made == [{}]


@pytest.mark.parametrize("command", ["reflect", "compress"])
def test_an_unknown_language_model_exits_with_1(run, store, command):
    done = run(command, store, "--llm", "nobody")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: unknown --llm 'nobody' (it is one of anthropic, ")


def test_options_of_a_language_model_need_one(run, store):
    done = run("reflect", store, "--model", "m")
    assert (done.code, done.err) == (1, "error: --model and --base-url go with --llm\n")


def failing(error: Exception) -> object:
    def extract(self: object, episodes: object) -> object:
        raise error

    return extract


def test_a_failing_service_is_an_error_and_consumes_nothing(run, store, monkeypatch):
    status_error = type(
        "RateLimitError", (Exception,), {"__module__": "openai", "status_code": 429}
    )
    with monkeypatch.context() as patch:
        patch.setattr(Asked, "extract_facts", failing(status_error("said Ben keeps bees")))
        done = run("reflect", store, "--llm", "openai")
    assert done.code == 1
    assert done.err == (
        "error: the language model stub gave no answer (RateLimitError, status 429)"
        " (nothing was lost: run it again)\n"
    )
    assert run("reflect", store, "--dry-run", "--json").document["episodes_waiting"] == 3


@pytest.mark.parametrize(
    "error", [MissingExtra("openai is not installed"), TimeoutError("timed out")]
)
def test_other_failures_are_errors_too(run, store, monkeypatch, error):
    monkeypatch.setattr(Asked, "extract_facts", failing(error))
    done = run("reflect", store, "--llm", "openai", "--json")
    assert done.code == 1
    assert done.error["message"] in ("openai is not installed", "timed out")


def test_compress_puts_summaries_in_their_place(run, store):
    done = run("compress", store)
    assert (done.code, done.err) == (1, "error: there is nothing to summarise with (give --llm)\n")
    options = ("--llm", "openai", "--max-episodes", "1", "--importance-threshold", "9")
    done = run("compress", store, *options, "--agent-id", "ana")
    assert (done.code, done.err) == (0, "")
    assert done.lines[:3] == ["Episodes removed: 2", "Summaries created: 1", "Tokens used: 12,345"]
    document = run("compress", store, "--llm", "openai", "--json").document
    assert document["summaries_created"] == 0
    with Engram(store, agent_id="ana") as memory:
        (summary,) = memory.episodes().episodes
    assert summary.content == "Ben keeps bees and Ana sails."


def test_compress_refuses_bad_numbers(run, store):
    done = run("compress", store, "--llm", "openai", "--batch-size", "0")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: batch_size ")
