"""engdbram and engram, called in turn in one process over the same texts and vectors.

Both are packages named `engram`: the peer's lies in a folder of its own, and its modules are put in
place of ours while it is called. Its embedder hands out the vectors it is given; `pysqlite3` stands
in for an `sqlite3` that loads no extensions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pysqlite3
import pysqlite3.dbapi2
from protocol import WARM_UPS, Corpus, answer, memory, quantiles, size_mb, timed

from engram import Engram, ObserveInput
from engram.bench.building import HALF, NOW, agents, graph_lines
from engram.bench.precomputed import PrecomputedEmbedder

START = HALF - (NOW - HALF)
BATCH = 500
OBSERVATIONS = 100
SECONDS = 20.0
"""How long the peer may take over a column, once it has answered `FEWEST` questions."""
FEWEST = 3
SLOW_CALLS = 2
RELATION = "mentions"
Call = Callable[[str], list[str]]
"""The texts that a question finds, best first."""


class OtherPackage:
    """A package that has the name of ours.

    Args:
        folder: Where it was installed, apart from everything else.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._modules: dict[str, Any] = {}

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let `engram` be the peer until the block ends."""
        ours = self._taken_out()
        sys.modules.update(self._modules)
        sys.path.insert(0, self._folder)
        try:
            yield
        finally:
            sys.path.remove(self._folder)
            self._modules = self._taken_out()
            sys.modules.update(ours)

    @staticmethod
    def _taken_out() -> dict[str, Any]:
        names = [name for name in sys.modules if name.partition(".")[0] == "engram"]
        return {name: sys.modules.pop(name) for name in names}


class Vectors:
    """The embedder of both sides."""

    def __init__(self, corpus: Corpus) -> None:
        kinds = ("decisions", "eight", "fifteen")
        self.questions = [text for kind in kinds for text in corpus.questions[kind]]
        self.asked = dict(zip(self.questions, corpus.asked, strict=True))
        self.ours = PrecomputedEmbedder(
            "peers", None, corpus.asked.shape[1], self.questions, corpus.asked
        )
        self.next = np.empty((0, corpus.asked.shape[1]), np.float32)

    def hand_out(self, vectors: np.ndarray) -> None:
        self.next = np.ascontiguousarray(vectors)
        self.ours.hand_out(self.next)

    def patch(self) -> None:
        """Have the peer's embedder hand the same vectors out; the peer must be in place."""
        peers = import_module("engram.embedder")

        def embed(_: object, text: str) -> np.ndarray:
            return self.asked[text] if text in self.asked else self.next[0]

        peers.Embedder.embed = embed
        peers.Embedder.embed_batch = lambda _self, _texts: list(self.next)


class Duel:
    """The two stores, and what is called in each."""

    def __init__(self, corpus: Corpus, package: Path, folder: Path) -> None:
        sys.modules["sqlite3"] = pysqlite3
        sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
        self.corpus = corpus
        self.vectors = Vectors(corpus)
        self.package = OtherPackage(package)
        self.paths = {"peer": folder / "peer" / "p.engram", "ours": folder / "ours" / "o.engram"}
        for path in self.paths.values():
            path.parent.mkdir(parents=True)
        self.figures: dict[str, Any] = {}
        self.ids: dict[str, list[str]] = {"peer": [], "ours": []}
        with self.package.in_place():
            self.vectors.patch()
            self._peer = import_module("engram").Engram
            self._peer_input = import_module("engram.models").ObserveInput
            self.peer = {agent: self.open_peer(agent) for agent in ("solo", "mid", "bulk", None)}
        self.ours = {agent: self.open_ours(agent) for agent in ("solo", "mid", "bulk", None)}

    def open_peer(self, agent: str | None) -> Any:
        return self._peer(path=str(self.paths["peer"]), agent_id=agent)

    def open_ours(self, agent: str | None) -> Engram:
        return Engram(self.paths["ours"], agent_id=agent, embedder=self.vectors.ours)

    def ingest(self) -> None:
        """Write the texts into both, a batch of each in turn."""
        corpus = self.corpus
        step = (NOW - START) / len(corpus.texts)
        spent = {"peer": 0.0, "ours": 0.0}
        at = 0
        for agent, size in agents(len(corpus.texts)):
            end = at + size
            while at < end:
                stop = min(at + BATCH, end)
                self.vectors.hand_out(corpus.vectors[at:stop])
                rows = [(corpus.texts[i], START + i * step) for i in range(at, stop)]
                with self.package.in_place():
                    spent["peer"] += self._write("peer", agent, rows)
                spent["ours"] += self._write("ours", agent, rows)
                at = stop
        self.figures["upkeep_s"] = round(timed(self.ours[None].maintain) / 1000, 2)
        per_s = {side: round(1000 * len(corpus.texts) / ms) for side, ms in spent.items()}
        self.figures["ingest_per_s"] = {**per_s, "ratio": round(per_s["ours"] / per_s["peer"], 2)}

    def _write(self, side: str, agent: str | None, rows: Sequence[tuple[str, datetime]]) -> float:
        """Write rows into one side and return the milliseconds it took."""
        memory, make = (
            (self.peer[agent], self._peer_input)
            if side == "peer"
            else (self.ours[agent], ObserveInput)
        )
        started = time.perf_counter()
        self.ids[side] += memory.observe_many(
            [make(content=text, timestamp=when) for text, when in rows]
        )
        return 1000.0 * (time.perf_counter() - started)

    def alternate(
        self,
        name: str,
        peer: Call,
        ours: Call,
        questions: Sequence[str],
        warm_ups: int = WARM_UPS,
    ) -> None:
        """Ask both the same questions in turn and note the times and how far they agree."""
        times: dict[str, list[float]] = {"peer": [], "ours": []}
        same, began = [], time.perf_counter()
        for at, question in enumerate([*questions[:warm_ups], *questions]):
            with self.package.in_place():
                theirs, peer_ms = _answers(peer, question)
            answers, our_ms = _answers(ours, question)
            if at >= min(warm_ups, len(questions)):
                times["peer"].append(peer_ms)
                times["ours"].append(our_ms)
                same.append(len({*theirs} & {*answers}) / max(1, len({*theirs})))
            if len(same) >= FEWEST and time.perf_counter() - began > SECONDS:
                break
        self._note(name, times, float(np.mean(same)))

    def _note(
        self, name: str, times: dict[str, list[float]], agreement: float | None = None
    ) -> None:
        sides = {side: quantiles(samples) for side, samples in times.items()}
        ratio = round(sides["peer"]["p50_ms"] / max(sides["ours"]["p50_ms"], 1e-4), 2)
        self.figures[name] = {**sides, "ratio": ratio, "agreement": agreement}

    def search(self, k: int) -> None:
        """Time the searches: the peer's own, without its `recall` around, and our `recall`."""
        asked, corpus, store = self.vectors.asked, self.corpus, self.peer[None]._store  # noqa: SLF001
        meaning = {
            "cosine": (lambda q: store.search_episodes(asked[q], k), None, {}),
            "as_of_now": self._as_of(NOW, k),
            "as_of_half": self._as_of(HALF, k),
            "scoped_5": self._scoped("solo", k),
            "scoped_1000": self._scoped("mid", k),
        }
        for name, (peer, agent, options) in meaning.items():
            ours = self._recall(agent, k, mode="cosine", **options)
            self.alternate(name, _texts(peer), ours, corpus.questions["decisions"])
        words = {
            "hybrid": (None, "decisions"),
            "hybrid_8_terms": (None, "eight"),
            "hybrid_15_terms": (None, "fifteen"),
            "hybrid_scoped_1000": ("mid", "eight"),
        }
        for name, (agent, kind) in words.items():
            self.alternate(
                name, self._hybrid(agent, k), self._recall(agent, k), corpus.questions[kind]
            )
        whole = self.peer[None]
        self.alternate(
            "recall",
            lambda q: [hit.episode.content for hit in whole.recall(q, k=k)],
            self._recall(None, k),
            corpus.questions["eight"],
        )

    def _recall(self, agent: str | None, k: int, **options: Any) -> Call:
        memory = self.ours[agent]
        return lambda q: [hit.episode.content for hit in memory.recall(q, k, **options)]

    def _as_of(self, moment: datetime, k: int) -> tuple[Call, None, dict[str, Any]]:
        store, asked = self.peer[None]._store, self.vectors.asked  # noqa: SLF001
        return lambda q: store.search_episodes_as_of(asked[q], k, moment), None, {"as_of": moment}

    def _scoped(self, agent: str, k: int) -> tuple[Call, str, dict[str, Any]]:
        store, asked = self.peer[None]._store, self.vectors.asked  # noqa: SLF001
        return lambda q: store.search_episodes(asked[q], k, agent_id=agent), agent, {}

    def _hybrid(self, agent: str | None, k: int) -> Call:
        store, asked = self.peer[None]._store, self.vectors.asked  # noqa: SLF001
        scope = {} if agent is None else {"agent_id": agent}
        return _texts(lambda q: store.search_episodes_hybrid(q, asked[q], k, **scope))

    def spread(self, k: int, file: Path) -> None:
        """Give both the same graph and time recall through it."""
        with file.open("w", encoding="utf-8") as out:
            for line in graph_lines(self.ids["ours"], 0):
                out.write(f"{json.dumps(line)}\n")
        peers_id = dict(zip(self.ids["ours"], self.ids["peer"], strict=True))
        edges = (line for line in map(json.loads, file.open(encoding="utf-8")) if "target" in line)
        written = datetime.now(UTC).isoformat()
        connection = self.peer[None]._store._conn  # noqa: SLF001
        with self.package.in_place():
            connection.executemany(
                "INSERT OR IGNORE INTO edges VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (peers_id[e["episode"]], e["target"], RELATION, 1.0, written, e["agent"])
                    for e in edges
                ),
            )
            connection.commit()
        self.ours[None].import_lines(file, merge=True)
        self.ours[None].recall(self.corpus.questions["eight"][0], k, mode="spreading")
        self.alternate(
            "spreading",
            lambda q: [h.episode.content for h in self.peer[None].recall(q, k=k, mode="spreading")],
            lambda q: [h.episode.content for h in self.ours[None].recall(q, k, mode="spreading")],
            self.corpus.questions["eight"],
            0,
        )

    def observe(self) -> None:
        """Time single writes, each with a commit of its own."""
        times: dict[str, list[float]] = {"peer": [], "ours": []}
        for at in range(OBSERVATIONS):
            self.vectors.hand_out(self.corpus.vectors[at : at + 1][:, ::-1])
            text = f"{self.corpus.texts[at]} again {at}"
            with self.package.in_place():
                times["peer"].append(timed(lambda: self.peer["bulk"].observe(text)))  # noqa: B023
            times["ours"].append(timed(lambda: self.ours["bulk"].observe(text)))  # noqa: B023
        self._note("observe", times)

    def decay(self) -> None:
        """Time the fading of one agent's memories."""
        times: dict[str, list[float]] = {"peer": [], "ours": []}
        for _ in range(SLOW_CALLS):
            with self.package.in_place():
                times["peer"].append(timed(self.peer["bulk"].decay))
            times["ours"].append(timed(self.ours["bulk"].decay))
        self._note("decay", times)

    def sizes(self) -> None:
        """Note the files once their logs are written back into them."""
        with self.package.in_place():
            self.peer[None]._store._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # noqa: SLF001
        for engram in self.ours.values():
            engram.close()
        sizes = {side: size_mb(path) for side, path in self.paths.items()}
        self.figures["file_mb"] = {**sizes, "ratio": round(sizes["ours"] / sizes["peer"], 3)}
        self.ours = {agent: self.open_ours(agent) for agent in self.ours}


def _texts(search: Callable[[str], Any]) -> Call:
    return lambda question: [row[0].content for row in search(question)]


def _answers(call: Call, question: str) -> tuple[list[str], float]:
    started = time.perf_counter()
    found = call(question)
    return found, 1000.0 * (time.perf_counter() - started)


def open_and_recall(duel_folder: Path, corpus: Corpus, package: Path, side: str, k: int) -> None:
    """Print what a fresh process needs to open one side's store and to recall 20 times."""
    vectors = Vectors(corpus)
    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
    eight = corpus.questions["eight"][:20]
    if side == "peer":
        with OtherPackage(package).in_place():
            vectors.patch()
            peers = import_module("engram").Engram
            started = time.perf_counter()
            store = peers(path=str(duel_folder / "peer" / "p.engram"))
            _print_opening(started, lambda q: store.recall(q, k=k), eight)
        return
    started = time.perf_counter()
    with Engram(duel_folder / "ours" / "o.engram", embedder=vectors.ours) as ours:
        _print_opening(started, lambda q: ours.recall(q, k), eight)


def _print_opening(
    started: float,
    recall: Callable[[str], object],
    questions: list[str],
) -> None:
    opened = time.perf_counter()
    first = timed(lambda: recall(questions[0]))
    for question in questions[1:]:
        recall(question)
    open_ms = 1000 * (opened - started)
    answer({"open_ms": round(open_ms, 2), "first_ms": round(first, 2), **memory()})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=("duel", "open-peer", "open-ours"))
    for name in ("corpus", "store", "package"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("size", "k"):
        parser.add_argument(f"--{name}", type=int, required=True)
    asked = parser.parse_args()
    corpus = Corpus(asked.corpus, asked.size)
    if asked.step != "duel":
        side = asked.step.removeprefix("open-")
        open_and_recall(asked.store, corpus, asked.package, side, asked.k)
        return
    duel = Duel(corpus, asked.package, asked.store)
    duel.ingest()
    duel.sizes()
    duel.search(asked.k)
    duel.observe()
    duel.spread(asked.k, asked.store / "graph.jsonl")
    duel.decay()
    answer(duel.figures)


if __name__ == "__main__":
    main()
