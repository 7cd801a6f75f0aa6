"""AsyncEngram: the same surface as Engram, off the event loop, safe to cancel and to close."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest
from stand_ins import WordEmbedder

from engram import AsyncEngram, Engram, ObserveInput
from engram.errors import Closed, Forked, InvalidArgument, InvalidType, NotAStore, NotFound
from engram.events import verify

AGENT = "agent://acme.example/alice"


def public(cls: type) -> dict[str, object]:
    return {n: getattr(cls, n) for n in dir(cls) if not n.startswith("_")}


def threads() -> set[threading.Thread]:
    """The threads of all memories of this process, those that other tests left open too."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("engram_")}


@pytest.fixture
def open_async(path, clock) -> Iterator[Callable[..., AsyncEngram]]:
    """Open the test's store with a stand-in embedder; every instance is closed at the end."""
    memories: list[AsyncEngram] = []

    def opened(agent_id: str | None = None, **options: object) -> AsyncEngram:
        if "embedder_model" not in options:
            options.setdefault("embedder", WordEmbedder())
        options.setdefault("clock", clock)
        memories.append(AsyncEngram(options.pop("path", path), agent_id=agent_id, **options))
        return memories[-1]

    yield opened
    for memory in memories:
        asyncio.run(memory.close())


class SlowEmbedder(WordEmbedder):
    """Says when it was reached, and goes on when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def embed(self, texts: list[str]) -> object:
        self.reached.set()
        assert self.may_go_on.wait(30)
        return super().embed(texts)


# The surface.


def test_every_public_name_is_there():
    assert public(AsyncEngram).keys() == public(Engram).keys()


@pytest.mark.parametrize("name", sorted(public(Engram)))
def test_a_name_is_the_same_call_awaited(name):
    sync, awaited = getattr(Engram, name), getattr(AsyncEngram, name)
    if isinstance(sync, property):
        assert isinstance(awaited, property)
        assert awaited.__doc__ == sync.__doc__
        return
    assert inspect.iscoroutinefunction(awaited)
    assert inspect.signature(awaited) == inspect.signature(sync)
    if name != "close":
        assert awaited.__doc__ == sync.__doc__


def test_the_constructor_takes_the_same_arguments():
    sync = inspect.signature(Engram).parameters
    awaited = dict(inspect.signature(AsyncEngram).parameters)
    assert awaited.pop("max_workers").default is None
    assert awaited == sync


@pytest.mark.parametrize("workers", [0, 65, -1])
def test_the_number_of_threads_is_checked_at_once(workers):
    with pytest.raises(InvalidArgument, match="max_workers"):
        AsyncEngram(max_workers=workers)
    with pytest.raises(InvalidType, match="max_workers"):
        AsyncEngram(max_workers="4")


# Use.


def test_a_memory_in_a_loop(open_async, clock, tmp_path):
    async def use() -> None:
        events = tmp_path / "events.ndjson"
        async with open_async(AGENT, key="secret", events_path=events) as memory:
            assert memory.agent_id == AGENT
            when = clock.now.replace(year=2020)
            uid = await memory.observe("sell the piano", timestamp=when, tags=["t"])
            await memory.observe_many([ObserveInput("a"), ObserveInput("b")])
            [found] = await memory.recall("piano", 1, mode="cosine", tags=["t"])
            assert (found.episode.id, found.episode.timestamp) == (uid, when)
            assert (await memory.get(uid)).agent_id == AGENT
            assert len((await memory.episodes(limit=2)).episodes) == 2
            await memory.forget(uid)
            assert await memory.count() == 2
            assert await memory.list_agents() == [AGENT]
            assert await memory.check() == []
            with pytest.raises(NotFound):
                await memory.get(uid)
            with pytest.raises(InvalidArgument):
                await memory.recall("x", 0)
        assert len(events.read_bytes().splitlines()) == 4
        assert verify(events) == []

    asyncio.run(use())


def test_both_kinds_share_a_file(open_async, memory):
    async def use() -> None:
        async with open_async() as other:
            await other.observe("from the loop")
            assert memory.count() == 1
            memory.observe("from the thread")
            assert await other.count() == 2

    asyncio.run(use())


def test_without_with_the_first_call_opens(open_async, path):
    async def use() -> None:
        memory = open_async()
        assert not path.exists()
        await asyncio.gather(*(memory.observe(f"note {n}") for n in range(20)))
        assert await memory.count() == 20
        await memory.close()

    asyncio.run(use())


def test_one_instance_outlives_a_loop(open_async):
    memory = open_async()
    for number in range(3):
        asyncio.run(memory.observe(f"note {number}"))
    assert asyncio.run(memory.count()) == 3
    asyncio.run(memory.close())


def test_a_private_store_is_one_store(open_async):
    async def use() -> None:
        async with open_async(path=":memory:", max_workers=8) as memory:
            await asyncio.gather(*(memory.observe(f"note {n}") for n in range(50)))
            assert await memory.count() == 50

    asyncio.run(use())


def test_opening_fails_where_it_is_awaited(open_async, path):
    path.write_bytes(b"no store at all " * 100)

    async def use() -> None:
        memory = open_async()
        for _ in range(2):
            with pytest.raises(NotAStore):
                await memory.count()
        with pytest.raises(NotAStore):
            async with memory:
                pytest.fail("it was opened")
        await memory.close()

    asyncio.run(use())


def test_calls_run_on_named_threads_with_the_callers_context(open_async):
    seen: set[str] = set()
    variable = ContextVar("variable", default="none")

    class Noting(WordEmbedder):
        def embed(self, texts: list[str]) -> object:
            seen.add(f"{threading.current_thread().name.split('_')[0]} {variable.get()}")
            return super().embed(texts)

    async def use() -> None:
        variable.set("the caller's")
        async with open_async(embedder=Noting()) as memory:
            await asyncio.gather(*(memory.observe(f"note {n}") for n in range(5)))

    asyncio.run(use())
    assert seen == {"engram the caller's"}


def test_there_are_no_more_threads_than_allowed(open_async):
    async def use() -> None:
        before = threads()
        async with open_async(max_workers=2) as memory:
            await asyncio.gather(*(memory.observe(f"note {n}") for n in range(40)))
            assert 1 <= len(threads() - before) <= 2

    asyncio.run(use())


def test_the_deprecated_argument_still_warns(open_async):
    async def use() -> None:
        async with open_async() as memory:
            await memory.observe("a")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert len(await memory.recall("a", k_inner=5, candidate_limit=64)) == 1
            assert [w.category for w in caught] == [DeprecationWarning]

    asyncio.run(use())


# The event loop.


def test_the_loop_runs_on_while_a_thousand_episodes_are_written(open_async):
    async def use() -> None:
        ticks, seen = 0, []

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        async def write(memory: AsyncEngram, number: int) -> None:
            await memory.observe(f"note {number}")
            seen.append(ticks)

        async with open_async(max_workers=2) as memory:
            ticker = asyncio.create_task(tick())
            await asyncio.gather(*(write(memory, n) for n in range(1000)))
            ticker.cancel()
            assert await memory.count() == 1000
        # The loop turned at least once for every four calls in the threads' hands.
        assert len(seen) == 1000
        assert max(Counter(seen).values()) <= 8

    asyncio.run(use())


def test_a_slow_call_holds_up_neither_the_loop_nor_other_calls(open_async):
    async def use() -> None:
        embedder = SlowEmbedder()
        async with open_async(embedder=embedder, max_workers=2) as memory:
            slow = asyncio.create_task(memory.observe("slow"))
            await asyncio.to_thread(embedder.reached.wait)
            assert await memory.count() == 0
            assert not slow.done()
            embedder.may_go_on.set()
            await slow
            assert await memory.count() == 1

    asyncio.run(use())


# Cancelling and closing.


def test_a_cancelled_write_that_began_is_finished(open_async, open_memory):
    async def use() -> None:
        embedder = SlowEmbedder()
        async with open_async(embedder=embedder, max_workers=1) as memory:
            begun = asyncio.create_task(memory.observe("begun"))
            await asyncio.to_thread(embedder.reached.wait)
            waiting = [asyncio.create_task(memory.observe(f"waiting {n}")) for n in range(5)]
            await asyncio.sleep(0)
            for task in (begun, *waiting):
                task.cancel()
            done = await asyncio.gather(begun, *waiting, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in done)
            embedder.may_go_on.set()

    asyncio.run(use())
    memory = open_memory()
    assert [e.content for e in memory.episodes().episodes] == ["begun"]
    assert memory.check() == []


def test_cancelling_at_any_moment_leaves_whole_writes(open_async, open_memory):
    items = [ObserveInput("one"), ObserveInput("two")]

    async def use() -> None:
        async with open_async() as memory:
            for turns in range(60):
                task = asyncio.create_task(memory.observe_many(items))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await memory.observe("the last")

    asyncio.run(use())
    memory = open_memory()
    contents = [e.content for e in memory.episodes(limit=1000).episodes]
    assert contents.count("one") == contents.count("two")
    assert contents.count("the last") == 1
    assert memory.check() == []


def test_closing_lets_earlier_calls_finish(open_async, open_memory):
    async def use() -> None:
        memory = open_async(max_workers=1)
        writes = [asyncio.create_task(memory.observe(f"note {n}")) for n in range(30)]
        await asyncio.sleep(0)
        await asyncio.gather(memory.close(), memory.close())
        assert all(task.done() for task in writes)
        assert len({await task for task in writes}) == 30
        with pytest.raises(Closed):
            await memory.count()
        with pytest.raises(Closed):
            async with memory:
                pytest.fail("it was opened")
        await memory.close()

    asyncio.run(use())
    assert open_memory().count() == 30


def test_a_close_that_was_cancelled_can_be_repeated(open_async):
    async def use() -> None:
        embedder = SlowEmbedder()
        memory = open_async(embedder=embedder)
        write = asyncio.create_task(memory.observe("slow"))
        await asyncio.to_thread(embedder.reached.wait)
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        embedder.may_go_on.set()
        await memory.close()
        assert await write
        with pytest.raises(Closed):
            await memory.observe("later")

    asyncio.run(use())


def test_closing_what_was_never_opened_makes_no_file(open_async, path):
    memory = open_async()
    asyncio.run(memory.close())
    assert not path.exists()
    with pytest.raises(Closed):
        asyncio.run(memory.count())


def test_the_threads_end_with_the_memory(open_async):
    async def use() -> None:
        before = threads()
        async with open_async() as memory:
            await memory.observe("a")
            assert threads() - before
        assert not threads() - before

    asyncio.run(use())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_is_told(open_async):
    memory = open_async()
    asyncio.run(memory.observe("a"))
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        code = 1
        try:
            asyncio.run(memory.count())
        except Forked:
            asyncio.run(memory.close())
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asyncio.run(memory.count()) == 1
    asyncio.run(memory.close())
