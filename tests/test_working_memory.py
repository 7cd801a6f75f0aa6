"""Working memory: what it keeps, what it lets go, and that nothing is lost on the way."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from engram import AsyncEngram, WorkingMemory, WorkingMemoryItem
from engram.errors import InvalidArgument, InvalidType

TAG = "working_memory_eviction"


@pytest.fixture
def pad(clock) -> WorkingMemory:
    return WorkingMemory(3, clock=clock)


def keys(pad: WorkingMemory) -> list[str]:
    return [item.key for item in pad.items()]


def test_it_holds_seven_by_default():
    pad = WorkingMemory()
    assert (pad.capacity, len(pad), repr(pad)) == (7, 0, "WorkingMemory(capacity=7, size=0)")
    for number in range(9):
        pad.set(str(number), "x")
    assert (len(pad), keys(pad)[0]) == (7, "2")
    assert repr(pad) == "WorkingMemory(capacity=7, size=7)"


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity):
    with pytest.raises(ValueError, match="capacity"):
        WorkingMemory(capacity)


@pytest.mark.parametrize("capacity", [True, 1.5, "7", None])
def test_a_capacity_is_an_integer(capacity):
    with pytest.raises(InvalidType, match="capacity"):
        WorkingMemory(capacity)


def test_set_get_and_peek(pad, clock):
    start = clock.now
    pad.set("a", "one", priority=1)
    pad.set("b", "two")
    clock.advance(minutes=1)
    assert pad.peek("a") == WorkingMemoryItem("a", "one", {"priority": 1}, start, start)
    assert keys(pad) == ["a", "b"]
    assert pad.get("a") == WorkingMemoryItem("a", "one", {"priority": 1}, start, clock.now)
    assert keys(pad) == ["b", "a"]
    assert (pad.get("z"), pad.peek("z")) == (None, None)
    assert ("a" in pad, "z" in pad, 5 in pad) == (True, False, False)


def test_setting_again_replaces_and_keeps_when_it_was_made(pad, clock):
    start = clock.now
    pad.set("a", "one", priority=1)
    pad.set("b", "two")
    held = pad.peek("a")
    clock.advance(minutes=1)
    pad.set("a", "uno", mood="good")
    assert pad.peek("a") == WorkingMemoryItem("a", "uno", {"mood": "good"}, start, clock.now)
    assert keys(pad) == ["b", "a"]
    assert held == WorkingMemoryItem("a", "one", {"priority": 1}, start, start)


def test_times_are_aware_and_in_utc(clock):
    clock.now = datetime(2026, 1, 1)  # noqa: DTZ001 - a naive clock is taken as UTC
    pad = WorkingMemory(clock=clock)
    pad.set("a", "x")
    assert pad.peek("a").created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert pad.peek("a").accessed_at.utcoffset() == timedelta(0)


def test_delete_clear_and_flush_without_a_store(pad):
    for key in "abc":
        pad.set(key, key)
    assert (pad.delete("b"), pad.delete("b"), keys(pad)) == (True, False, ["a", "c"])
    assert (pad.flush(), len(pad), pad.flush()) == (2, 0, 0)
    pad.set("d", "d")
    pad.clear()
    assert pad.items() == []


def test_an_evicted_item_becomes_an_episode_with_key_and_metadata(memory, clock):
    pad = WorkingMemory(2, memory, clock=clock)
    pad.set("plan", "buy the piano", priority=1, nested={"a": [1, None]})
    pad.set("b", "two")
    pad.get("plan")
    pad.set("c", "three")
    [episode] = memory.episodes().episodes
    assert (episode.content, episode.tags, episode.metadata) == ("two", [TAG], {"key": "b"})
    pad.set("d", "four")
    found = memory.recall("piano", 1)[0].episode
    assert found.metadata == {"key": "plan", "priority": 1, "nested": {"a": [1, None]}}
    assert keys(pad) == ["c", "d"]


def test_a_flush_writes_the_least_recently_used_first(memory, clock):
    pad = WorkingMemory(engram=memory, clock=clock)
    for key in "abc":
        pad.set(key, f"text {key}")
    pad.get("a")
    assert pad.flush() == 3
    found = memory.episodes(newest_first=False).episodes
    assert [e.metadata["key"] for e in found] == ["b", "c", "a"]
    assert {tag for e in found for tag in e.tags} == {TAG}
    assert (len(pad), pad.flush(), memory.count()) == (0, 0, 3)


def test_clear_and_delete_write_nothing(memory):
    pad = WorkingMemory(engram=memory)
    pad.set("a", "x")
    pad.set("b", "y")
    pad.delete("a")
    pad.clear()
    assert memory.count() == 0


def test_an_item_that_cannot_be_written_stays(memory, monkeypatch):
    pad = WorkingMemory(2, memory)
    pad.set("a", "one")
    pad.set("b", "two")

    def fail(*_: object, **__: object) -> None:
        message = "disk full"
        raise OSError(message)

    with monkeypatch.context() as patch:
        patch.setattr(memory._store, "add_episodes", fail)
        with pytest.raises(OSError, match="disk full"):
            pad.set("c", "three")
        with pytest.raises(OSError, match="disk full"):
            pad.flush()
        pad.set("b", "dos")
    assert [(i.key, i.content) for i in pad.items()] == [("a", "one"), ("b", "dos")]
    assert memory.count() == 0
    pad.set("c", "three")
    assert [e.content for e in memory.episodes().episodes] == ["one"]


def test_what_could_not_be_written_later_is_refused_at_once(memory):
    pad = WorkingMemory(1, memory)
    pad.set("a", "kept")
    for bad in ({"x": object()}, {"x": {1: 2}}):
        with pytest.raises(InvalidType, match="metadata"):
            pad.set("b", "text", **bad)
    with pytest.raises(InvalidArgument, match="metadata"):
        pad.set("b", "text", x=float("nan"))
    for key, content in ((1, "text"), ("b", None)):
        with pytest.raises(InvalidType):
            pad.set(key, content)
    assert keys(pad) == ["a"]
    assert memory.count() == 0


def test_without_a_store_metadata_may_be_anything(pad):
    thing = object()
    pad.set("a", "x", thing=thing)
    assert pad.get("a").metadata["thing"] is thing


def test_an_async_memory_is_refused():
    with pytest.raises(InvalidType, match="AsyncEngram"):
        WorkingMemory(engram=AsyncEngram())


def test_many_threads_lose_nothing(memory):
    pad = WorkingMemory(5, memory)

    def write(name: int) -> None:
        for number in range(40):
            pad.set(f"{name}-{number}", f"text {name} {number}")
            pad.get(f"{name}-{number}")
            pad.items()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pad) == 5
    pad.flush()
    found = memory.episodes(limit=200).episodes
    assert len(found) == len({e.metadata["key"] for e in found}) == 160
