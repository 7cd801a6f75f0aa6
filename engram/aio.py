"""`AsyncEngram`: every call of `Engram` as a coroutine, on threads of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, Self, TypeVar

from engram import arguments
from engram.engine import Engram
from engram.errors import Closed, Forked
from engram.index import DEFAULT_BUDGET
from engram.times import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from datetime import datetime
    from types import TracebackType

    from engram.cognition.decay import DecayConfig
    from engram.embedding import Embedder
    from engram.llm import LLMAdapter

__all__ = ["AsyncEngram"]

_MAX_WORKERS = 64

P = ParamSpec("P")
R = TypeVar("R")


def _closed() -> Closed:
    return Closed("this AsyncEngram is closed", "open a new one")


def _awaited(
    method: Callable[Concatenate[Engram, P], R],
) -> Callable[Concatenate[AsyncEngram, P], Coroutine[object, object, R]]:
    """Return a method of `Engram` as a coroutine method of the same signature."""

    @wraps(method)
    async def call(self: AsyncEngram, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(lambda memory: method(memory, *args, **kwargs))

    return call


class AsyncEngram:
    """`Engram` for asyncio: the same calls, each a coroutine that runs on a thread of its own pool.

    The store is opened on such a thread too, by `async with` or by the first call, which is where
    the constructor's errors appear. Reading and writing, embedding and waiting for another
    process's lock never hold up the event loop.

    A call that has begun is finished even when the coroutine that awaits it is cancelled: nothing
    is ever half written. One that still waits for a thread is then left out. `close` lets what was
    called before it finish.

    `reflect_async` gives a `ReflectionThread`, as that of `Engram` does. Its `join` blocks, so in a
    coroutine `asyncio.create_task(memory.reflect())` is the better way. Callbacks, such as the
    `progress` of `reembed`, are called on the threads.

    Args:
        path: See `Engram`, also for the others.
        embedder_model: A model's name or folder.
        embedder: An embedder of the caller's own; it is called on several threads at once.
        agent_id: Whose memory this is.
        key: Passphrase.
        durability: "normal" or "full".
        busy_timeout: Seconds to wait while another connection writes.
        clock: Where "now" comes from.
        decay_config: How importance fades.
        llm: The language model that `reflect` and `compress` ask.
        events_path: A file that gets a line for every memory written or forgotten.
        memory_budget: Bytes that the index may keep in memory.
        max_workers: Threads, 1 to 64, started when they are needed; None is one per core, but at
            least 2 and at most 4.

    Raises:
        InvalidArgument, InvalidType: `max_workers` is refused.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        embedder_model: str | None = None,
        embedder: Embedder | None = None,
        agent_id: str | None = None,
        key: str | None = None,
        durability: Literal["normal", "full"] = "normal",
        busy_timeout: float = 10.0,
        clock: Callable[[], datetime] = utc_now,
        decay_config: DecayConfig | None = None,
        llm: LLMAdapter | None = None,
        events_path: str | os.PathLike[str] | None = None,
        memory_budget: int = DEFAULT_BUDGET,
        create: bool = True,
        max_workers: int | None = None,
    ) -> None:
        self._open = partial(
            Engram,
            path,
            embedder_model=embedder_model,
            embedder=embedder,
            agent_id=agent_id,
            key=key,
            durability=durability,
            busy_timeout=busy_timeout,
            clock=clock,
            decay_config=decay_config,
            llm=llm,
            events_path=events_path,
            memory_budget=memory_budget,
            create=create,
        )
        self._agent = agent_id
        self._memory: Engram | None = None
        # Held while the store is opened, so that several first calls open it once.
        self._opening = threading.Lock()
        workers = min(4, max(2, os.cpu_count() or 1))
        if max_workers is not None:
            workers = arguments.integer(max_workers, "max_workers", 1, _MAX_WORKERS)
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="engram")
        # As many calls are handed to the threads as keep them busy. A burst would otherwise hold
        # up the loop for as long as handing it over takes.
        self._limit = 2 * workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = self._finished = False
        self._process = os.getpid()

    @property
    def agent_id(self) -> str | None:
        """Whose memory this is; None is everyone's."""
        return self._agent

    async def __aenter__(self) -> Self:
        await self._run(lambda _: None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the calls made so far finish, then close the file; closing twice is harmless."""
        self._closed = True
        if self._process != os.getpid():
            return
        slots, closing = self._gate()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(closing)
            # Slots are given in the order they were asked for: with the last of them in hand, all
            # earlier calls have come back, or were cancelled and end with their thread.
            for _ in range(self._limit):
                await stack.enter_async_context(slots)
            await asyncio.to_thread(self._finish)

    def _finish(self) -> None:
        self._finished = True
        self._executor.shutdown(wait=True)
        if self._memory is not None:
            self._memory.close()

    async def _run(self, call: Callable[[Engram], R]) -> R:
        if self._closed:
            raise _closed()
        if self._process != os.getpid():
            message = "this AsyncEngram was opened by another process"
            raise Forked(message, "open the store again in the child process")
        context = copy_context()
        slots, _ = self._gate()
        async with slots:
            if self._finished:
                raise _closed()
            return await asyncio.get_running_loop().run_in_executor(
                self._executor, lambda: context.run(lambda: call(self._opened()))
            )

    def _gate(self) -> tuple[asyncio.Semaphore, asyncio.Lock]:
        """Return what calls, and what closing, must hold; they belong to one event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._locks = asyncio.Semaphore(self._limit), asyncio.Lock()
        return self._locks

    def _opened(self) -> Engram:
        with self._opening:
            if self._memory is None:
                self._memory = self._open()
            return self._memory

    observe = _awaited(Engram.observe)
    observe_many = _awaited(Engram.observe_many)
    recall = _awaited(Engram.recall)
    recall_memories = _awaited(Engram.recall_memories)
    search = _awaited(Engram.search)
    search_explained = _awaited(Engram.search_explained)
    get = _awaited(Engram.get)
    accesses = _awaited(Engram.accesses)
    episodes = _awaited(Engram.episodes)
    count = _awaited(Engram.count)
    forget = _awaited(Engram.forget)
    forget_many = _awaited(Engram.forget_many)
    forget_entity = _awaited(Engram.forget_entity)
    assert_fact = _awaited(Engram.assert_fact)
    get_fact = _awaited(Engram.get_fact)
    facts = _awaited(Engram.facts)
    why = _awaited(Engram.why)
    trust_of = _awaited(Engram.trust_of)
    timeline = _awaited(Engram.timeline)
    contradictions = _awaited(Engram.contradictions)
    forget_fact = _awaited(Engram.forget_fact)
    forget_evidence = _awaited(Engram.forget_evidence)
    add_alias = _awaited(Engram.add_alias)
    declare_predicate = _awaited(Engram.declare_predicate)
    decay = _awaited(Engram.decay)
    prune = _awaited(Engram.prune)
    reflect = _awaited(Engram.reflect)
    reflect_async = _awaited(Engram.reflect_async)
    reflect_every = _awaited(Engram.reflect_every)
    compress = _awaited(Engram.compress)
    list_agents = _awaited(Engram.list_agents)
    counts = _awaited(Engram.counts)
    model = _awaited(Engram.model)
    check = _awaited(Engram.check)
    reembed = _awaited(Engram.reembed)
    compact = _awaited(Engram.compact)
    wipe = _awaited(Engram.wipe)
    maintain = _awaited(Engram.maintain)
    backup = _awaited(Engram.backup)
    rekey = _awaited(Engram.rekey)
    export_json = _awaited(Engram.export_json)
    import_json = _awaited(Engram.import_json)
    export_lines = _awaited(Engram.export_lines)
    import_lines = _awaited(Engram.import_lines)
    import_store = _awaited(Engram.import_store)
    remember = _awaited(Engram.remember)
    import_memories = _awaited(Engram.import_memories)
