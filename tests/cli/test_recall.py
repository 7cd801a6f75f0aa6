"""`engram recall` as section 14 documents it."""

from __future__ import annotations

import re

import pytest

from engram import Engram, ObserveInput, StubLLMAdapter

FERRY = "The ferry to Kos leaves at noon"


def contents(done) -> list[str]:
    return [hit["episode"]["content"] for hit in done.document["results"]]


def test_the_hits_as_people_read_them(run, store):
    done = run("recall", store, "When does the boat go?", "--agent-id", "ana", "--k", 2)
    with Engram(store, agent_id="ana") as memory:
        first, second = memory.recall("When does the boat go?", 2)
    assert first.episode.content == FERRY
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        'Recalling "When does the boat go?"  (k=2, mode=hybrid)',
        f"  1. [{first.score:.3f}] {FERRY}",
        f"       actors: Ana, Ben  |  2026-01-01 12:00 UTC  |  id: {first.episode.id}",
        "       tags: travel",
        "",
        f"  2. [{second.score:.3f}] Pancakes need two eggs",
        f"       2026-02-01 00:00 UTC  |  id: {second.episode.id}",
        "       tags: food",
        "",
    ]


def test_json_has_the_question_and_the_hits(run, store):
    document = run(
        "recall", store, "ferry", "--k", "1", "--agent-id", "ana", "--mode", "cosine",
        "--as-of", "2026-01-01T14:00:00+02:00", "--json",
    ).document  # fmt: skip
    (hit,) = document.pop("results")
    assert document.pop("certificate") == {
        "accuracy": "high",
        "strategy": "scan",
        "exact": True,
        "matching": 1,
        "considered": 1,
        "reason": "1 of 3 episodes match: every matching vector was compared",
    }
    assert document == {
        "query": "ferry",
        "k": 1,
        "kind": "episodic",
        "mode": "cosine",
        "as_of": "2026-01-01T12:00:00Z",
        "agent_id": "ana",
        "cross_agent": False,
    }
    assert set(hit) == {*("rank", "score", "confidence", "distance", "importance", "episode")}
    assert hit["rank"] == 1
    assert hit["score"] == pytest.approx(1 / (1 + hit["distance"]))
    assert hit["episode"]["timestamp"] == "2026-01-01T12:00:00Z"
    assert hit["episode"]["content"] == FERRY


def test_spreading_finds_what_is_linked(run, path):
    with Engram(path, llm=StubLLMAdapter()) as memory:
        for text in ("Ben keeps bees", "The orchard blooms in May", "Pancakes need two eggs"):
            memory.observe(text)
            about = {"Pancakes need two eggs": "Ana"}.get(text, "Ben")
            memory._llm._facts = [{"subject": about, "predicate": "is in", "object": text}]
            memory.reflect()
    arguments = ("recall", path, "bees", "--mode", "spreading", "--k", "2")
    found = run(*arguments)
    assert found.lines[0] == 'Recalling "bees"  (k=2, mode=spreading)'
    assert contents(run(*arguments, "--json")) == ["Ben keeps bees", "The orchard blooms in May"]
    scores = [
        [hit["score"] for hit in run(*arguments, *options, "--json").document["results"]]
        for options in ([], ["--decay", "0.1"], ["--depth", "0"])
    ]
    assert scores[0][1] > scores[1][1] >= scores[2][1]
    for options in (["--depth", "-1"], ["--decay", "2"]):
        done = run(*arguments, *options)
        assert (done.code, done.err.startswith("error: ")) == (1, True)


def test_no_results(run, store):
    done = run("recall", store, "ferry", "--agent-id", "nobody")
    assert done.lines == ['Recalling "ferry"  (k=5, mode=hybrid)', "  (no results)"]
    assert run("recall", ":memory:", "ferry").lines[-1] == "  (no results)"
    assert contents(run("recall", store, "ferry", "--agent-id", "nobody", "--json")) == []


@pytest.mark.parametrize(
    ("as_of", "found"),
    [
        ("2026-01-01T12:00:00", True),
        ("2026-01-01T14:00:00+02:00", True),
        ("2026-01-01T13:59:59+02:00", False),
        ("2026-01-01 07:00-05:00", True),
        ("2026-01-01", False),
        ("2026-01-02", True),
        ("20260101T120000Z", True),
    ],
)
def test_as_of_is_inclusive_and_honours_its_offset(run, store, as_of, found):
    done = run("recall", store, "ferry", "--agent-id", "ana", "--as-of", as_of)
    assert done.lines[0] == f'Recalling "ferry"  (k=5, mode=hybrid, as-of={as_of})'
    assert any(FERRY in line for line in done.lines) == found


@pytest.mark.parametrize("option", ["--as-of", "--since", "--until"])
@pytest.mark.parametrize("date", ["", "soon", "2026-13-01", "9999-12-31T23:59-01:00"])
def test_a_bad_date_names_its_option(run, store, option, date):
    done = run("recall", store, "ferry", option, date)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {option} is no date: {date!r} (")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--cross-agent"], {"F", "P", "B"}),
        ([], {"F", "P"}),
        (["--tags", "food"], {"P"}),
        (["--tags", "food", "travel"], set()),
        (["--actors", "Ana", "Ben"], {"F"}),
        (["--since", "2026-02-01"], {"P"}),
        (["--until", "2026-01-31"], {"F"}),
        (["--cross-agent", "--since", "2026-02-28T18:30Z"], {"B"}),
        (["--provenance", "user"], {"F"}),
        (["--provenance", "user", "external"], {"F", "P"}),
        (["--mode", "cosine", "--min-score", "0.5"], {"F"}),
        (["--exclude-quarantined"], {"F", "P"}),
    ],
)
def test_filters(run, store, options, expected):
    done = run("recall", store, "ferry to Kos", "--agent-id", "ana", *options, "--json")
    assert {content[0].replace("T", "F") for content in contents(done)} == expected


@pytest.mark.parametrize(
    ("k", "text"), [("0", "k must be at least 1"), ("-3", "at least 1"), ("5000", "at most 4096")]
)
def test_k_out_of_range_is_an_error(run, store, k, text):
    done = run("recall", store, "ferry", "--k", k)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert text in done.err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--mode", "magic"], "'magic' is not one of 'hybrid', 'cosine', 'spreading'"),
        (["--k", "many"], "'many' is not a valid integer"),
        (["--provenance", "gossip"], "'gossip' is not one of"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_a_wrong_command_line_exits_with_2(run, store, options, text):
    done = run("recall", store, "ferry", *options)
    assert (done.code, done.out) == (2, "")
    assert text in done.err


@pytest.mark.parametrize(
    "query", ["", '"', "a AND (", "🐝", "東京", "x" * 30_000, "-- ;", "\udcff"]
)
def test_any_query_is_one(run, store, query):
    assert run("recall", store, "--agent-id", "ana", "--", query).code == 0
    assert len(contents(run("recall", store, "--agent-id", "ana", "--json", "--", query))) == 2


def test_a_missing_file_is_not_made(run, path):
    done = run("recall", path, "ferry")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: file not found: {path}\n"
    assert not path.exists()


def test_text_cannot_drive_the_terminal_or_pass_for_another_hit(run, path):
    with Engram(path) as memory:
        memory.observe_many([ObserveInput("a\x00b\x1b[2Jc\n  2. [1.000] forged", tags=["t\x9b"])])
    done = run("recall", path, "forged")
    assert done.lines[1].endswith("a\\x00b\\x1b[2Jc")
    assert done.lines[2] == "         2. [1.000] forged"
    assert done.lines[4] == "       tags: t\\x9b"
    document = run("recall", path, "forged", "--json").document
    assert document["results"][0]["episode"]["content"].startswith("a\x00b\x1b")


def test_the_score_has_three_digits(run, store):
    done = run("recall", store, "ferry", "--agent-id", "ana")
    assert re.match(r"  1\. \[[01]\.\d{3}\] ", done.lines[1])


def test_facts_among_the_hits(run, store):
    with Engram(store, agent_id="ana") as memory:
        uid = memory.assert_fact("Ana", "favourite island", "Kos")
    question = "Ana favourite island"
    document = run(
        "recall", store, question, "--kind", "any", "--k", 1, "--agent-id", "ana", "--json"
    ).document
    (hit,) = document["results"]
    assert document["kind"] == "any"
    assert (hit["fact"]["id"], hit["provenance"], hit["quarantined"]) == (uid, "unknown", False)
    done = run("recall", store, question, "--kind", "semantic", "--agent-id", "ana")
    assert done.lines[1].endswith("Ana favourite island Kos")
    assert done.lines[2].startswith("       fact, since ")
    assert done.lines[2].endswith(f"id: {uid}")
    assert all(
        "fact" not in h for h in run("recall", store, question, "--json").document["results"]
    )


def test_the_blending_is_that_of_the_library(run, store):
    with Engram(store, agent_id="ana") as memory:
        for blending in ("complete", "min_max", "reciprocal_rank"):
            told = [hit.score for hit in memory.recall("ferry at noon", blending=blending)]
            document = run(
                "recall",
                store,
                "ferry at noon",
                "--agent-id",
                "ana",
                "--blending",
                blending,
                "--json",
            ).document
            assert [hit["score"] for hit in document["results"]] == pytest.approx(told)
    refused = run("recall", store, "ferry", "--blending", "best")
    assert refused.code == 2
