"""`engram stats`: the same figures for people, for programs and in Prometheus's text format."""

from __future__ import annotations

import re

import pytest
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput, StubLLMAdapter
from engram._version import __version__

HELP = re.compile(r"# HELP (engram_\w+) [^\n]+")
TYPE = re.compile(r"# TYPE (engram_\w+) gauge")
SAMPLE = re.compile(r'(engram_\w+)(?:\{(\w+)="((?:[^"\\\n]|\\[\\n"])*)"\})? (-?[0-9.e+-]+)')


def parsed(text: str) -> dict[str, tuple[dict[str, str], float]]:
    """The samples by name with their labels; HELP and TYPE come before each, in that order."""
    assert text.endswith("\n")
    lines = text.split("\n")[:-1]
    found = {}
    for told, kind, sample in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name, label, value, number = SAMPLE.fullmatch(sample).groups()
        assert HELP.fullmatch(told)[1] == TYPE.fullmatch(kind)[1] == name
        assert name not in found
        meant = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value or "")
        found[name] = ({label: meant} if label else {}, float(number))
    return found


def test_figures_as_people_read_them(run, store):
    done = run("stats", store)
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        f"Figures of {store}  ({store.stat().st_size // 1024} KB)",
        "  episodes:                   3",
        "  episodes with vectors:      3",
        "  facts:                      0",
        "  active facts:               0",
        "  entities:                   0",
        "  reflections:                0",
        "  last reflection: never",
        "  index: 0 KB",
    ]


def test_json_has_what_inspect_has_and_the_index(run, store):
    document = run("stats", store, "--json", "--agent-id", "ana").document
    inspected = run("inspect", store, "--json", "--agent-id", "ana").document
    del inspected["model"]
    assert document == {**inspected, "index_bytes": 0}


def test_prometheus(run, store):
    found = parsed(run("stats", store, "--prometheus").out)
    assert found.pop("engram_store_bytes") == ({}, store.stat().st_size)
    assert found == {
        "engram_episodes": ({}, 3),
        "engram_episodes_embedded": ({}, 3),
        "engram_reflections": ({}, 0),
        "engram_facts": ({}, 0),
        "engram_facts_active": ({}, 0),
        "engram_entities": ({}, 0),
        "engram_index_bytes": ({}, 0),
        "engram_build_info": ({"version": __version__}, 1),
    }


def test_prometheus_has_the_time_of_the_last_reflection(run, path, clock):
    with Engram(path, embedder=WordEmbedder(), clock=clock, llm=StubLLMAdapter()) as memory:
        memory.assert_fact("Ann", "likes", "tea")
        memory.reflect()
    found = parsed(run("stats", path, "--prometheus").out)
    assert found["engram_last_reflection_timestamp_seconds"] == ({}, clock.now.timestamp())
    assert found["engram_facts_active"] == ({}, 1)


@pytest.mark.parametrize(
    "agent", ["ben", 'a"b', "a\\b", "a\nb", 'x"} 1\nengram_episodes 7', "你好"]
)
def test_an_agent_is_a_label_whatever_its_name(run, path, agent):
    with Engram(path, embedder=WordEmbedder(), agent_id=agent) as memory:
        memory.observe("red")
    with Engram(path, embedder=WordEmbedder(), agent_id="other") as memory:
        memory.assert_fact("Ann", "likes", "tea")
    found = parsed(run("stats", path, "--prometheus", "--agent-id", agent).out)
    assert found["engram_episodes"] == ({"agent_id": agent}, 1)
    assert found["engram_facts"] == ({}, 1)


def test_the_index_is_measured_in_bytes(run, path):
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.observe_many([ObserveInput(f"number {number}") for number in range(5000)])
        memory.maintain()
    folder = path.with_name(f"{path.name}-index")
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert size > 0
    assert run("stats", path, "--json").document["index_bytes"] == size
    assert parsed(run("stats", path, "--prometheus").out)["engram_index_bytes"] == ({}, size)


def test_a_store_in_memory_has_a_size(memory):
    before = memory.counts()
    assert before.index_bytes == 0
    memory.observe_many([ObserveInput("x" * 1000) for _ in range(200)])
    assert memory.counts().store_bytes > before.store_bytes > 0


def test_two_formats_at_once_are_refused(run, store):
    done = run("stats", store, "--json", "--prometheus")
    assert done.code == 2
    assert done.out == ""


def test_a_missing_store_is_not_made(run, path):
    assert run("stats", path, "--prometheus").code == 1
    assert not path.exists()
