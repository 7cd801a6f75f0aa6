"""`assert`, `facts`, `timeline`, `why` and `contradictions`; section 14 documents the timeline."""

from __future__ import annotations

import re

import pytest
from stand_ins import Clock

from engram import Engram


@pytest.fixture
def facts(path):
    """Two facts about Ana; the one recorded last holds for longer."""
    with Engram(path, clock=Clock(), agent_id="ana") as memory:
        memory.assert_fact("Ana", "lives in", "Kos", confidence=0.5)
        memory.assert_fact("Ana", "likes", "tea", valid_from=Clock().now.replace(year=2020))
    return path


def test_a_timeline_as_documented(run, facts):
    done = run("timeline", facts, "Ana")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        'Fact timeline for "Ana"',
        "  [2020-01-01 → now    ]  Ana likes tea  (conf: 1.00)",
        "  [2026-01-01 → now    ]  Ana lives in Kos  (conf: 0.50)",
    ]
    assert run("timeline", facts, "ana").lines == [
        'Fact timeline for "ana"',
        "  (no facts found)",
    ]


def test_superseded_facts_are_marked(run, path):
    from engram import StubLLMAdapter

    clock = Clock()
    llm = StubLLMAdapter()
    with Engram(path, clock=clock, llm=llm) as memory:
        for place in ("Kos", "Rhodes"):
            llm._facts = [{"subject": "Ana", "predicate": "lives in", "object": place}]
            memory.observe(f"Ana moved to {place}")
            memory.reflect()
            clock.advance(days=1)
    assert run("timeline", path, "Ana").lines[1:] == [
        "  [2026-01-01 → 2026-01-02]  Ana lives in Kos  (conf: 0.50) ← superseded",
        "  [2026-01-02 → now    ]  Ana lives in Rhodes  (conf: 0.50)",
    ]
    known = run("timeline", path, "Ana", "--known-at", "2026-01-01T12:00")
    assert known.lines[1:] == ["  [2026-01-01 → now    ]  Ana lives in Kos  (conf: 0.50)"]
    assert len(run("facts", path, "--json").document["facts"]) == 1
    assert [fact["object"] for fact in run("facts", path, "--all", "--json").document["facts"]] == [
        "Kos",
        "Rhodes",
    ]
    assert " ← superseded" in run("facts", path, "--all").out


@pytest.mark.parametrize(
    ("moment", "rows"),
    [("2025-12-31", 1), ("2026-01-01T01:59+02:00", 1), ("2026-01-01T02:00+02:00", 2)],
)
def test_an_offset_in_as_of_is_honoured(run, facts, moment, rows):
    document = run("timeline", facts, "Ana", "--as-of", moment, "--json").document
    assert len(document["facts"]) == rows


@pytest.mark.parametrize("option", ["--as-of", "--known-at"])
def test_a_bad_date_names_its_option(run, facts, option):
    done = run("timeline", facts, "Ana", option, "tomorrow")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {option} is no date: 'tomorrow'")


def test_a_fact_is_asserted(run, path):
    done = run("assert", path, "Ana", "lives in", "Kos")
    assert done.code == 0
    assert re.fullmatch(r"Asserted: [0-9a-f-]{36}\n  Ana lives in Kos\n", done.out)
    options = ("--confidence", "0.25", "--source", "a letter", "--private", "--agent-id", "ana",
               "--valid-from", "2026-01-01T01:00+01:00", "--valid-to", "2027-01-01")  # fmt: skip
    document = run("assert", path, "Ana", "likes", "tea", *options, "--json").document
    assert re.fullmatch("[0-9a-f-]{36}", document.pop("id"))
    assert document.pop("recorded_at")
    assert document == {
        "subject": "Ana",
        "predicate": "likes",
        "object": "tea",
        "valid_from": "2026-01-01T00:00:00Z",
        "valid_to": "2027-01-01T00:00:00Z",
        "superseded_at": None,
        "superseded_by": None,
        "confidence": 0.25,
        "derived_from": ["a letter"],
        "extracted_by": None,
        "agent_id": "ana",
        "shared": False,
        "quarantined": False,
    }
    assert "likes tea" not in run("timeline", path, "Ana", "--agent-id", "ben").out


@pytest.mark.parametrize(
    "options",
    [["--confidence", "nan"], ["--confidence", "2"], ["--valid-to", "1999-01-01"]],
)
def test_a_refused_fact_is_an_error(run, path, options):
    done = run("assert", path, "Ana", "likes", "tea", *options)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert run("facts", path).lines == [f"Facts in {path}", "  (no facts found)"]


def test_active_facts_are_listed_page_by_page(run, facts):
    lines = run("facts", facts).lines
    assert lines[:2] == [f"Facts in {facts}", "  Ana lives in Kos  (conf: 0.50)"]
    assert lines[2].startswith("       since 2026-01-01  |  id: ")
    first = run("facts", facts, "--limit", "1", "--json").document
    assert [fact["object"] for fact in first["facts"]] == ["Kos"]
    assert f"--cursor {first['cursor']}" in run("facts", facts, "--limit", "1").out
    rest = run("facts", facts, "--cursor", first["cursor"], "--json").document
    assert [fact["object"] for fact in rest["facts"]] == ["tea"]
    assert rest["cursor"] is None
    for option in (["--cursor", "x"], ["--limit", "0"]):
        assert run("facts", facts, *option).err.startswith("error: ")


def test_why_says_what_a_fact_rests_on(run, store):
    episode = run("recall", store, "ferry", "--json").document["results"][0]["episode"]["id"]
    uid = run("assert", store, "ferry", "goes to", "Kos", "--source", episode, "--json").document[
        "id"
    ]
    assert run("why", store, uid).lines == [
        "ferry goes to Kos",
        "  confidence:     1.00",
        "  provenance:     user",
        "  quarantined:    no",
        "  shared:         yes",
        f"  extracted from: {episode}",
    ]
    assert run("why", store, uid, "--json").document == {
        "id": uid,
        "fact": "ferry goes to Kos",
        "extracted_from": [episode],
        "extracted_by": None,
        "confidence": 1.0,
        "model": None,
        "provenance": "user",
        "quarantined": False,
        "agent_id": None,
        "shared": True,
    }


def test_an_unknown_fact_is_an_error(run, facts):
    done = run("why", facts, "it's")
    assert (done.code, done.out, done.err) == (1, "", 'error: fact not found: "it\'s"\n')


def test_contradictions_come_in_pairs(run, facts):
    assert run("contradictions", facts).lines == [
        f"Contradictions in {facts}",
        "  (no contradictions found)",
    ]
    run("assert", facts, "Ana", "lives in", "Rhodes", "--private", "--agent-id", "ben")
    lines = run("contradictions", facts).lines
    assert lines[1::2][:2] == ["  Ana lives in Kos", "  Ana lives in Rhodes"]
    assert lines[2].startswith("       conf: 0.50  |  since 2026-01-01  |  id: ")
    (pair,) = run("contradictions", facts, "--json").document["contradictions"]
    assert [fact["object"] for fact in pair] == ["Kos", "Rhodes"]
    assert run("contradictions", facts, "--agent-id", "ana", "--json").document == {
        "path": str(facts),
        "agent_id": "ana",
        "contradictions": [],
    }


def test_a_text_of_several_lines_is_one_row(run, path):
    run("assert", path, "Ana", "said", "one\n  [2020-01-01 → now    ]  Ana owes Ben")
    rows = [line for line in run("timeline", path, "Ana").lines if line.startswith("  [")]
    assert len(rows) == 1
