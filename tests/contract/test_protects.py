"""What the contract's weak spots ask for and no feature's own tests show."""

from __future__ import annotations

from contextlib import suppress

import pytest

from engram import ObserveInput, StubLLMAdapter


def test_another_instances_erasure_is_no_damage(open_memory):
    one, other = open_memory(), open_memory()
    uid = one.observe("tea")
    other.recall("tea")
    one.forget(uid)
    assert other.check() == []


def stop(*_):
    raise KeyboardInterrupt


READING_ALL = {
    "check": lambda memory, _: memory.check(),
    "export_lines, stopped": lambda memory, file: memory.export_lines(file, progress=stop),
    "export_json": lambda memory, file: memory.export_json(file),
}


@pytest.mark.parametrize("call", READING_ALL)
def test_a_call_that_reads_all_holds_no_one_up(open_memory, tmp_path, call):
    one, other = open_memory(), open_memory()
    one.observe_many([ObserveInput(f"tea {n}") for n in range(600)])
    for n in range(3):
        one.assert_fact("Ann", "likes", f"tea {n}")
    with suppress(KeyboardInterrupt):
        READING_ALL[call](one, tmp_path / "dump")
    other.observe("coffee")
    one.observe("cake")
    assert one.count() == other.count() == 602


@pytest.fixture
def moved(open_memory, tmp_path):
    """Moves a store's contents to a new one by the documented format."""

    def move(memory):
        memory.export_json(tmp_path / "dump.json")
        other = open_memory(path=tmp_path / "other.engram")
        other.import_json(tmp_path / "dump.json")
        return other

    return move


def test_a_forgotten_source_launders_nothing_on_its_way_through_a_document(open_memory, moved):
    said = {"subject": "Ann", "predicate": "likes", "object": "tea", "sources": [1, 2]}
    memory = open_memory(llm=StubLLMAdapter(facts=[said]))
    memory.observe("Ann likes tea", provenance="user")
    page = memory.observe("tea, says a page", provenance="external")
    memory.reflect()
    memory.forget(page)
    other = moved(memory)
    [fact] = other.timeline("Ann")
    assert len(fact.derived_from) == 1
    assert other.why(fact.id)["provenance"] == "unknown"


def test_an_episode_that_an_agent_only_names_stays_a_name_on_its_way(open_memory, moved):
    uid = open_memory("a").observe("mine", provenance="user", quarantined=True)
    fact = open_memory("b").assert_fact("Ann", "likes", "tea", source=uid)
    told = moved(open_memory()).why(fact)
    assert (told["provenance"], told["quarantined"]) == ("unknown", False)
    assert told["extracted_from"] == [uid]
