"""An item ends by its lifetime, a put, a delete or an erasure: by nothing else."""

from __future__ import annotations

import pytest
from stand_ins import WordEmbedder

from engram.items import DocumentMemory, ItemPut
from engram.llm import StubLLMAdapter


@pytest.fixture
def items(path, clock):
    with DocumentMemory(path, embedder=WordEmbedder(), clock=clock) as opened:
        yield opened


@pytest.mark.parametrize("texts", [["tea"], []])
@pytest.mark.parametrize("agent", [None, "ann"])
def test_no_item_fades_away(path, open_memory, clock, texts, agent):
    memory = open_memory(agent, llm=StubLLMAdapter())
    with DocumentMemory(path, embedder=WordEmbedder(), clock=clock, agent_id=agent) as items:
        items.put([ItemPut(("a",), "k", {"n": 1}, texts)])
        faded = memory.observe("an episode")
        clock.advance(days=4000)
        assert memory.reflect(dry_run=True).pruned == [faded]
        assert memory.prune(preview=True, threshold=9.0) == [faded]
        assert memory.reflect().pruned == [faded]
        assert memory.prune(threshold=9.0) == []
        memory.compress(max_episodes=0, importance_threshold=9.0)
        assert items.get(("a",), "k").value == {"n": 1}
        assert memory.check() == []


def test_a_clock_that_is_set_back_shortens_no_life(items, clock):
    items.put([ItemPut(("a",), "k", {}, (), 60)])
    clock.advance(days=-5)
    assert items.get(("a",), "k", prolong=True) is not None
    clock.advance(days=5, seconds=59)
    assert items.get(("a",), "k", prolong=True) is not None
    clock.advance(seconds=59)
    assert items.get(("a",), "k") is not None


@pytest.mark.parametrize(
    "wanted",
    [
        "note", 'quo"te\\', "山田\x00", "a\nb", "", 0, 1, 2, -2, 2.0, 2.5, 10**15, 10**16, 10**17,
        1e16, 10**30, True, False, None,
    ],
)  # fmt: skip
def test_a_plain_member_is_found_in_every_way_it_can_be_written(items, wanted):
    values = [
        "note", 'quo"te\\', "山田\x00", "山田", "a\nb", "", "2", 0, 1, 2, -2, 22, 0.0, 1.0, 2.0,
        -2.0, 2.5, 10**15, 1e15, 10**16, 1e16, 10**17, 1e17, 10**30, True, False, None,
        [2], {"n": 2},
    ]  # fmt: skip
    items.put(
        ItemPut(("a",), str(at), {"n": one, 'in "': {"山": one}}) for at, one in enumerate(values)
    )
    items.put([ItemPut(("a",), "elsewhere", {"m": {"n": wanted}, "text": f'"n":{wanted}'})])
    same = {str(at) for at, one in enumerate(values) if one == wanted}
    nested = items.search(filter={'in "': {"山": wanted}}, limit=99)
    assert {one.key for one in nested} == same
    found = {one.key for one in items.search(filter={"n": wanted}, limit=99)}
    assert found == same | ({"elsewhere"} if wanted is None else set())
