"""What happens to memories after they were written: fading, reflection, compression."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from engram import arguments
from engram.cognition import fading
from engram.cognition.automatic import AutoReflect
from engram.cognition.compression import batches, erase, summary
from engram.cognition.extraction import summarise
from engram.cognition.reflection import MAX_WINDOW, Reflection, ReflectionThread
from engram.engine.session import Session
from engram.errors import InvalidArgument
from engram.models import CompressionRun, ReflectionRun
from engram.storage import EpisodeFilter
from engram.times import from_micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from engram.llm import LLMAdapter
    from engram.models import Episode
    from engram.storage import NewEpisode

_WINDOW = 200
_BATCH_MAX = 1_000
_SHORTEST_IDLE = 0.1


class Cognition(Session):
    """The calls that fade, prune, reflect on and compress memories."""

    _automatic: AutoReflect | None = None

    def decay(self) -> int:
        """Recompute importance and return how many episodes that covered.

        `salience · exp(-lambda_ · days) + alpha · ln(1 + recalls) + beta · emotional_valence`; days
        since the last recall, or since the event when there was none. Only this agent's episodes
        and recalls; without an agent everyone's.

        Raises:
            Busy, StoreFull, Closed: The store cannot be written.
        """
        with self._store.reading():
            index = self._index_at_hand()
        traces = None if index is None else index.traces(self._agent, fading.SLICE)
        return fading.decay(self._store, self._agent, self._now(), self._decay_config, traces)

    def prune(self, *, preview: bool = False, threshold: float | None = None) -> list[str]:
        """Erase this agent's episodes whose importance is below a threshold; return their ids.

        Importance is computed anew, and age counts from the event or from its writing, whichever
        is later: history that is written down today is not erased today. Items, documents of a
        vector store among them, are left alone: they end by their lifetime or by being erased.

        Args:
            preview: Only say what would be erased.
            threshold: Exclusive; None is the one of `decay_config`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            Busy, StoreFull, Closed: The store cannot be written; what was erased before stays so.
        """
        only_say = arguments.flag(preview, "preview")
        below = (
            self._decay_config.threshold
            if threshold is None
            else arguments.number(threshold, "threshold")
        )
        return self._prune(self._now(), below, preview=only_say)

    def _prune(self, now: int, threshold: float, *, preview: bool) -> list[str]:
        question = (self._store, self._agent, now, self._decay_config, threshold)
        if preview:
            return [uid for _, ids in fading.faded(*question) for uid in ids]
        pruned: list[str] = []
        for ids in fading.prune(*question):
            self._emit("memory_forgotten", [{"memory_id": i, "kind": "episodic"} for i in ids])
            pruned += ids
        return pruned

    def reflect(
        self, *, dry_run: bool = False, window: int = _WINDOW, shared: bool = False
    ) -> ReflectionRun:
        """Extract facts from the episodes that wait, then decay and prune.

        Episodes are read once each, in the order they were written, a window at a time. Every
        window is committed by itself: when one fails, those before it stay, and it is read again
        next time. Without a language model nothing is read, and all keep waiting.

        Without an agent each agent's episodes are read as that agent: the facts are its own.

        Args:
            dry_run: Change nothing and ask no model: say what waits and what would be pruned.
            window: Episodes to show the model at once, 1 to 10,000.
            shared: Whether other agents see the facts; what comes from the episodes of no agent is
                shared in any case.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            LLMCallError, LLMReplyError: The model failed; other errors of an adapter come as they
                are.
            Busy, StoreFull, Closed: The store cannot be written.
        """
        rehearse = arguments.flag(dry_run, "dry_run")
        size = arguments.integer(window, "window", 1, MAX_WINDOW)
        everyone = arguments.flag(shared, "shared")
        if rehearse:
            run = self._new_run()
            run.pruned = self._prune(self._now(), self._decay_config.threshold, preview=True)
            run.episodes_waiting = self._waiting()
            return run
        # One at a time per instance, so that no window is paid for twice.
        with self._store.reflecting:
            return self._reflect(size, everyone)

    def _new_run(self) -> ReflectionRun:
        return ReflectionRun(
            id=str(uuid.uuid4()),
            started_at=from_micros(self._now()),
            model_used=None if self._llm is None else self._llm.model_name,
        )

    def _waiting(self) -> int:
        with self._store.reading():
            return sum(one.episodes for one in self._store.reflections.waiting(self._agent))

    def _reflect(self, window: int, shared: bool) -> ReflectionRun:
        run = self._new_run()
        if self._llm is not None:
            reflection = Reflection(
                self._store, self._llm, run, self._now, window=window, shared=shared
            )
            for conflicts in reflection.windows(self._agent):
                self._emit(
                    "contradiction_found",
                    [{"memory_id": c.fact, "conflicting_memory_id": c.closed} for c in conflicts],
                    run_id=run.id,
                )
        self.decay()
        run.pruned = self._prune(self._now(), self._decay_config.threshold, preview=False)
        run.episodes_waiting = self._waiting()
        self._finish(run)
        return run

    def _finish(self, run: ReflectionRun) -> None:
        finished = self._now()
        if not run.episodes_processed:
            with self._store.writing():
                self._store.reflections.add(
                    run.id,
                    self._agent,
                    started_at=to_micros(run.started_at),
                    finished_at=finished,
                    model=run.model_used,
                    tokens=run.cost_tokens,
                )
        run.finished_at = from_micros(finished)
        counted = {
            name: getattr(run, name)
            for name in ("episodes_processed", "facts_extracted", "contradictions_resolved")
        }
        self._emit("reflection_run", [{"reflection_run_id": run.id, **counted}], run_id=run.id)

    def reflect_async(self, *, window: int = _WINDOW, shared: bool = False) -> ReflectionThread:
        """Start `reflect` in a background thread.

        Returns:
            A started daemon thread: `join()` waits and raises what the run raised, `result` is the
            run.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
        """
        size = arguments.integer(window, "window", 1, MAX_WINDOW)
        everyone = arguments.flag(shared, "shared")
        return ReflectionThread(lambda: self.reflect(window=size, shared=everyone))

    def reflect_every(
        self, *, episodes: int | None = None, idle: float | None = None
    ) -> AutoReflect:
        """Reflect in the background from now on, whenever it is due; off until this is called.

        It takes the place of an earlier one. Close what it returns, or this instance, to stop.

        Args:
            episodes: After this instance observed so many.
            idle: After this instance observed something and then nothing for so many seconds, 0.1
                or more.

        Raises:
            InvalidArgument, InvalidType: An argument is refused, or both are None.
            Closed: The instance was closed.
        """
        if episodes is None and idle is None:
            message = "episodes and idle are both None"
            raise InvalidArgument(message, "pass one of them, or both")
        count = None if episodes is None else arguments.integer(episodes, "episodes", 1, 2**31)
        quiet = None if idle is None else arguments.number(idle, "idle", _SHORTEST_IDLE)
        with self._store.reading():
            pass  # a closed instance says so here, not later in the background
        self._stop_reflecting()
        self._automatic = AutoReflect(self.reflect, self._now, episodes=count, idle=quiet)
        return self._automatic

    def _stop_reflecting(self) -> None:
        if self._automatic is not None:
            self._automatic.close()

    def _emit(
        self, event: str, data: Iterable[Mapping[str, object]], *, run_id: str | None = None
    ) -> None:
        """Append events for what was just committed, and count it for `reflect_every`."""
        items = list(data)
        super()._emit(event, items, run_id=run_id)
        written = sum(item["kind"] == "episodic" for item in items if event == "memory_written")
        if self._automatic is not None and written:
            self._automatic.observed(written)

    def close(self) -> None:
        """Write buffered access-log entries and close the file; closing twice is harmless."""
        self._stop_reflecting()
        super().close()

    def compress(
        self,
        *,
        max_episodes: int = 1000,
        importance_threshold: float = 0.3,
        batch_size: int = 20,
    ) -> CompressionRun:
        """Put summaries by the language model in the place of what has faded.

        Decays first. Every batch is committed by itself: summary and erasure together or not at
        all. A summary whose sources were not all there any more is dropped; summaries are never
        summarised again, experiences keep their parts, hidden episodes are not read. Without a
        language model nothing happens.

        Args:
            max_episodes: Do nothing while this agent has no more episodes than this.
            importance_threshold: Only episodes below this importance.
            batch_size: Episodes per summary, 1 to 1,000; never of two agents.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            LLMCallError, LLMReplyError: The model failed, or its summary is blank: that batch
                stays. Other errors of an adapter come as they are.
            ModelMissing, ModelMismatch: The summary cannot be embedded.
            Busy, StoreFull, Closed: The store cannot be written.
        """
        most = arguments.integer(max_episodes, "max_episodes", 0, 2**63 - 1)
        below = arguments.number(importance_threshold, "importance_threshold")
        size = arguments.integer(batch_size, "batch_size", 1, _BATCH_MAX)
        run = CompressionRun(0, 0)
        if self._llm is not None:
            with self._store.reflecting:
                self._compress(self._llm, run, most, below, size)
        return run

    def _compress(
        self, llm: LLMAdapter, run: CompressionRun, most: int, below: float, size: int
    ) -> None:
        with self._store.reading():
            held = self._store.episodes.count(EpisodeFilter(agent=self._agent))
        if held <= most:
            return
        self.decay()
        for keys, episodes in batches(self._store, self._agent, below, size):
            text, tokens = summarise(llm, episodes)
            run.model_used = llm.model_name
            run.cost_tokens += tokens
            if self._replace(keys, episodes, summary(text, episodes)):
                run.summaries_created += 1
                run.episodes_removed += len(episodes)

    def _replace(self, keys: NDArray[np.int64], sources: list[Episode], new: NewEpisode) -> bool:
        """Write a summary and erase its sources; do neither unless all are there."""
        with self._storing([new.text]) as (model, vectors, counts):
            now = self._now()
            if not erase(self._store, keys, now):
                return False
            agent = sources[0].agent_id
            [uid] = self._store.add_episodes(
                [new], vectors, counts, model=model, agent=agent, now=now
            )
        self._emit("memory_written", [{"memory_id": uid, "kind": "episodic"}])
        self._emit(
            "memory_forgotten",
            [{"memory_id": s.id, "kind": "episodic", "replaced_by": uid} for s in sources],
        )
        return True
