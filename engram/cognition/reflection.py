"""Reflection: a language model reads what was remembered, and what it finds is kept as facts.

An agent's episodes are read in windows, in the order they were written. The model is asked outside
every transaction; what it found is committed with the agent's watermark, or not at all: whoever
moved the watermark or forgot an episode of the window meanwhile makes the reply worthless.
"""

from __future__ import annotations

import threading
import uuid
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engram.cognition.extraction import extract
from engram.storage import FactSource, NewFact
from engram.times import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engram.cognition.extraction import Statement
    from engram.llm import LLMAdapter
    from engram.models import Episode, ReflectionRun
    from engram.storage import Store

MAX_WINDOW = 10_000
"""Episodes a window may hold."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A new fact that closed an older one which says otherwise, by their public ids."""

    fact: str
    closed: str


@dataclass(frozen=True, slots=True)
class _Window:
    agent: str | None
    keys: NDArray[np.int64]
    episodes: list[Episode]


class Reflection:
    """One run over the episodes that wait.

    Args:
        store: The store.
        llm: The model to ask.
        run: The run to keep count in.
        clock: The time, in microseconds.
        window: Episodes to read at once.
        shared: Whether other agents see what is found in an agent's episodes. What is found in
            those of nobody is shared, like all that is written without an agent.
    """

    def __init__(
        self,
        store: Store,
        llm: LLMAdapter,
        run: ReflectionRun,
        clock: Callable[[], int],
        *,
        window: int,
        shared: bool,
    ) -> None:
        self._store = store
        self._llm = llm
        self._run = run
        self._clock = clock
        self._size = window
        self._shared = shared

    def windows(self, agent: str | None) -> Iterator[list[Conflict]]:
        """Process what waits as the run begins; yield each window's conflicts once committed.

        Args:
            agent: Whose episodes; None is every agent's, one after the other, each as that agent:
                its facts belong to it, and its watermark moves.
        """
        with self._store.reading():
            waiting = self._store.reflections.waiting(agent)
        for one in waiting:
            while window := self._read(one.agent, one.last):
                statements, tokens = extract(self._llm, window.episodes)
                self._run.cost_tokens += tokens
                conflicts = self._commit(window, one.last, statements, tokens)
                if conflicts is not None:
                    yield conflicts

    def _read(self, agent: str | None, last: int) -> _Window | None:
        with self._store.reading():
            keys = self._store.reflections.window(agent, last, self._size)
            return _Window(agent, keys, self._store.episodes.fetch(keys)) if len(keys) else None

    def _commit(
        self, window: _Window, last: int, statements: Sequence[Statement], tokens: int
    ) -> list[Conflict] | None:
        """Store what a window gave, and its watermark; None when the window has changed."""
        reflections = self._store.reflections
        with self._store.writing():
            now = self._clock()
            keys = reflections.window(window.agent, last, self._size)
            if keys.tolist() != window.keys.tolist():
                return None
            key = reflections.add(
                self._run.id,
                window.agent,
                started_at=to_micros(self._run.started_at),
                finished_at=now,
                model=self._run.model_used,
                tokens=tokens,
                episodes=len(keys),
                last=int(keys[-1]),
            )
            conflicts: list[Conflict] = []
            for statement in statements:
                conflicts += self._store_fact(window, statement, key, now)
            reflections.note(key, len(statements), len(conflicts))
        self._run.episodes_processed += len(keys)
        self._run.facts_extracted += len(statements)
        self._run.contradictions_resolved += len(conflicts)
        return conflicts

    def _store_fact(
        self, window: _Window, statement: Statement, reflection: int, now: int
    ) -> list[Conflict]:
        facts, sources = self._store.facts, []
        for at in statement.sources:
            episode = window.episodes[at]
            sources.append(FactSource(episode.id, int(window.keys[at]), episode.provenance))
        new = NewFact(
            uid=str(uuid.uuid4()),
            subject=statement.subject,
            predicate=statement.predicate,
            object=statement.object,
            valid_from=now,
            recorded_at=now,
            confidence=statement.confidence,
            sources=tuple(sources),
            reflection=reflection,
            shared=self._shared or window.agent is None,
            quarantined=any(window.episodes[at].quarantined for at in statement.sources),
        )
        key = facts.add(new, window.agent)
        closed = facts.superseded_by(new, window.agent)
        for old, _ in closed:
            facts.supersede(old, key, now)
        self._link(window, statement, now)
        return [Conflict(new.uid, old.id) for _, old in closed if old.object != new.object]

    def _link(self, window: _Window, statement: Statement, now: int) -> None:
        """Join the fact's source episodes, and no others, to what it is about."""
        graph = self._store.graph
        names = dict.fromkeys((statement.subject, statement.object))
        entities = dict.fromkeys(graph.entity(name, now) for name in names)
        if statement.confidence > 0.0:
            for at in statement.sources:
                for entity in entities:
                    graph.mention(
                        int(window.keys[at]), entity, statement.confidence, window.agent, now
                    )


class ReflectionThread(threading.Thread):
    """A reflection in the background, started; a daemon, so that it keeps no process alive.

    It runs in the context of whoever starts it, as a task of asyncio does.

    Attributes:
        result: The run; None while it goes on, and when it failed.
    """

    def __init__(self, reflect: Callable[[], ReflectionRun]) -> None:
        super().__init__(name="engram-reflection", daemon=True)
        self.result: ReflectionRun | None = None
        self._reflect = reflect
        self._context = copy_context()
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Reflect, and keep what comes of it."""
        try:
            self.result = self._context.run(self._reflect)
        except BaseException as error:  # noqa: BLE001 - join raises it, in the thread that asks
            self._error = error

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end, for `timeout` seconds at most, and raise what the reflection raised."""
        super().join(timeout)
        if self._error is not None and not self.is_alive():
            raise self._error
