"""Everything that is measured at one size, in order."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from engram import Engram
from engram.bench import probe, writer
from engram.bench.building import Clock, add_graph, fill
from engram.bench.files import drop_from_page_cache, file_sizes, megabytes
from engram.bench.point import Opening, ScalePoint
from engram.bench.precomputed import PrecomputedEmbedder
from engram.bench.searching import COLUMNS, DELETED, SPREADING, Column, agents, search
from engram.bench.sentences import decisions, sentences
from engram.bench.stats import WARM_UPS, LatencyStats, call_times

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engram.bench.corpus import Questions, Texts, Vectors
    from engram.embedding import Embedder

__all__ = ["Plan", "measure"]

_OBSERVATIONS = 100
_DECAYS = 3
_HALF = 0.45
"""A salience between those of the two halves, 0 to 0.4 and 0.5 to 0.9."""


@dataclass
class Plan:
    """What is the same at every size.

    Attributes:
        texts: At least as many as the largest size.
        vectors: The vectors of the texts.
        questions: What is asked.
        asked: The vectors of `questions.every`, float32[n, dim].
        embedder: The model.
        k: Answers to a question.
        seed: Where chance begins.
        options: More arguments of `Engram`, such as `memory_budget`.
        recall_options: More arguments of `recall`, such as `accuracy`.
        deleted: Measure with half of the episodes erased, too.
        concurrent: Measure while another process writes, too.
        folder: Where the stores are made.
        progress: Called with what is done, and of how much.
    """

    texts: Texts
    vectors: Vectors
    questions: Questions
    asked: NDArray[np.float32]
    embedder: Embedder
    k: int
    seed: int
    options: dict[str, Any]
    recall_options: dict[str, Any]
    deleted: bool
    concurrent: bool
    folder: Path
    progress: Callable[[int, int], None]

    @property
    def model_name(self) -> str | None:
        """The name of the model, None where it has none and cannot be loaded by it."""
        name = getattr(self.embedder, "name", None)
        return name if isinstance(name, str) else None

    def precomputed(self) -> PrecomputedEmbedder:
        """Return what stands in for the model."""
        model = self.embedder
        return PrecomputedEmbedder(
            model.fingerprint, self.model_name, model.dim, self.questions.every, self.asked
        )


def measure(plan: Plan, count: int) -> ScalePoint:
    """Make a store of `count` episodes, measure it and remove it."""
    with tempfile.TemporaryDirectory(prefix="engram-bench-", dir=plan.folder) as folder:
        return _Size(plan, count, Path(folder)).measured()


class _Size:
    """The measurements at one size; each adds to the same point."""

    def __init__(self, plan: Plan, count: int, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._store = folder / "store" / "bench.engram"
        self._store.parent.mkdir()
        self._embedder = plan.precomputed()
        self._clock = Clock()
        self._ids, seconds = fill(
            self._store,
            plan.texts.stored[:count],
            plan.vectors,
            self._embedder,
            plan.options,
            plan.progress,
        )
        self._point = ScalePoint(
            count,
            0.0,
            None,
            seconds,
            real_share=plan.vectors.real_share(count),
            given_texts=min(count, plan.texts.read),
            ingest_per_s=count / seconds,
        )

    def measured(self) -> ScalePoint:
        """Measure everything, what changes the store last."""
        point = self._point
        point.upkeep_s = self._upkeep()
        point.files = file_sizes(self._store)
        point.file_mb = megabytes(point.files)
        self._open_in_children()
        self._search(COLUMNS)
        self._embed_and_recall()
        if self._plan.deleted:
            self._delete_half()
        if self._plan.concurrent:
            self._read_while_writing()
        self._observe()
        self._spread()
        self._decay()
        return point

    def _memory(self, agent: str | None = None, store: Path | None = None) -> Engram:
        return Engram(
            store or self._store,
            agent_id=agent,
            embedder=self._embedder,
            clock=self._clock,
            **self._plan.options,
        )

    def _upkeep(self) -> float:
        """Let the indexes catch up."""
        with self._memory() as memory:
            started = time.perf_counter()
            memory.maintain()
            return time.perf_counter() - started

    def _open_in_children(self) -> None:
        self._child(with_model=False)  # brings the files into the page cache
        self._point.warm = self._child(with_model=False)
        self._point.rss_mb = self._point.warm.rss_mb
        if drop_from_page_cache(self._store):
            self._point.cold = self._child(with_model=False)
        if self._plan.model_name is not None:
            self._point.with_model = self._child(with_model=True)

    def _child(self, *, with_model: bool) -> Opening:
        plan, saved = self._plan, self._folder / "questions.npz"
        if not saved.exists():
            model = plan.embedder
            asked = plan.questions.every
            probe.save_embedder(saved, model.fingerprint, plan.model_name, asked, plan.asked)
        questions = plan.questions.eight[: probe.RECALLS]
        job = probe.Job(
            str(self._store),
            None if with_model else str(saved),
            questions,
            plan.k,
            plan.options,
            plan.recall_options,
        )
        done = subprocess.run(  # noqa: S603 - our own module
            _python(probe.__name__), input=msgspec.json.encode(job), capture_output=True, check=True
        )
        return msgspec.json.decode(done.stdout, type=Opening)

    def _search(self, columns: Sequence[Column], store: Path | None = None) -> None:
        # One store at a time is open, so that none holds memory while another is measured.
        for agent in agents(columns):
            with self._memory(agent, store) as memory:
                for column in columns:
                    if column.agent == agent:
                        times, found = search(
                            memory,
                            column,
                            self._plan.questions,
                            self._plan.k,
                            self._plan.recall_options,
                        )
                        self._add(column.name, times, found)

    def _add(self, name: str, times: LatencyStats, found: float | None = None) -> None:
        self._point.latencies[name] = times
        if found is not None:
            self._point.recall_at_k[name] = found

    def _embed_and_recall(self) -> None:
        """Ask what was never asked at any size, so that the model embeds every question."""
        plan = self._plan
        first = plan.questions.decisions[:WARM_UPS]
        fresh = decisions(len(first) + len(plan.questions.decisions), self._point.n_episodes)
        with Engram(
            self._store, embedder=plan.embedder, clock=self._clock, **plan.options
        ) as memory:
            times = call_times(
                lambda question: memory.recall(question, plan.k, **plan.recall_options),
                fresh,
                len(first),
            )
        self._add("recall_with_embedding", times)

    def _delete_half(self) -> None:
        copy = self._folder / "half" / "bench.engram"
        copy.parent.mkdir()
        with self._memory() as memory:
            memory.backup(copy)
        with self._memory(store=copy) as memory:
            started = time.perf_counter()
            memory.prune(threshold=_HALF)
            self._point.delete_s = time.perf_counter() - started
        self._search(DELETED, copy)
        shutil.rmtree(copy.parent)

    def _read_while_writing(self) -> None:
        plan, model = self._plan, self._plan.embedder
        job = writer.Job(
            str(self._store), model.fingerprint, plan.model_name, model.dim, plan.seed + 2
        )
        child = subprocess.Popen(  # noqa: S603 - our own module
            _python(writer.__name__), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with child, self._memory() as memory:
            assert child.stdin is not None  # noqa: S101 - asked for above
            assert child.stdout is not None  # noqa: S101
            child.stdin.write(msgspec.json.encode(job) + b"\n")
            child.stdin.flush()
            child.stdout.readline()
            column = Column("reading_while_writing", asks="eight")
            times, _ = search(memory, column, plan.questions, plan.k, plan.recall_options)
            child.stdin.close()
            written = child.stdout.read()
        self._add("reading_while_writing", times)
        self._add("writing_while_reading", msgspec.json.decode(written, type=LatencyStats))

    def _observe(self) -> None:
        plan = self._plan
        texts = sentences(WARM_UPS + _OBSERVATIONS, plan.seed + 3)
        # Vectors behind those of the largest store: none of them is in it.
        rows = plan.vectors.rows(len(plan.texts.stored), len(plan.texts.stored) + len(texts))
        with self._memory("bulk") as memory:

            def observe(at: int) -> None:
                self._embedder.hand_out(rows[at : at + 1])
                memory.observe(texts[at])

            self._add("observe", call_times(observe, range(len(texts))))

    def _spread(self) -> None:
        with self._memory() as memory:
            file = self._folder / "graph.jsonl"
            self._point.graph_s = add_graph(memory, self._ids, file, self._plan.seed)
            file.unlink()
        self._point.graph_file_mb = megabytes(file_sizes(self._store))
        self._search(SPREADING)

    def _decay(self) -> None:
        """Let a day pass before each time, and the recalls of all columns count."""
        with self._memory() as memory:

            def decay(_: int) -> None:
                self._clock.now += timedelta(days=1)
                memory.decay()

            self._add("decay", call_times(decay, range(_DECAYS), 0))


def _python(module: str) -> list[str]:
    return [sys.executable, "-P", "-m", module]
