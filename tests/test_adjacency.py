"""The graph in memory: whatever was written, it walks as one built anew would."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.index import Adjacency, adjacency, rows
from engram.index.rows import ENTITY, Rows
from engram.retrieval.spreading import activate
from engram.storage import Edges

NAMES = ["X", "Y", "Z", "W"]


def arcs(graph: Rows) -> dict[int, list[tuple[int, float]]]:
    """The arcs that are walked from each node that is there, in order."""
    found = {}
    for node in np.flatnonzero(graph.codes).tolist():
        row = slice(graph.starts[node], graph.starts[node] + graph.counts[node])
        ends = graph.codes[graph.indices[row]].tolist()
        joined = [
            (end, weight)
            for end, weight in zip(ends, graph.weights[row].tolist(), strict=True)
            if weight > 0
        ]
        if joined:
            found[int(graph.codes[node])] = joined
    return found


def walk(graph: Rows, seeds: list[int]) -> tuple[list[int], list[float]]:
    class Near:
        episodes = np.array(seeds, dtype=np.int64)
        distances = np.linspace(0.1, 1.9, len(seeds))

    everyone = lambda keys: np.ones(len(keys), dtype=np.bool_)  # noqa: E731
    found = activate(graph, Near, everyone, 3, 0.5)
    return found.episodes.tolist(), found.of_episodes.tolist()


class Writer:
    """Random writes to the graph of one store."""

    def __init__(self, memory: Engram, chance: random.Random) -> None:
        self.memory, self.chance = memory, chance
        self.alive: list[str] = []

    def observe(self) -> None:
        self.alive.append(self.memory.observe(f"note {len(self.alive)}"))

    def link(self) -> None:
        store = self.memory._store
        agent = self.chance.choice([None, "a", "b"])
        with store.writing():
            for _ in range(self.chance.randrange(1, 4)):
                key = store.episodes.key(self.chance.choice(self.alive), None)
                entity = store.graph.entity(self.chance.choice(NAMES), 0)
                weight = self.chance.choice([0.25, 0.5, 0.5, 0.75])
                store.graph.mention(key, entity, weight, agent, 0)

    def join(self) -> None:
        """An edge between entities, as imports bring them."""
        store = self.memory._store
        with store.writing():
            ends = [store.graph.entity(name, 0) for name in self.chance.sample(NAMES, 2)]
            edge = store._connection.execute(
                "INSERT INTO edge (entity, target, relation, weight, created_at)"
                " VALUES (?, ?, 'knows', 0.5, 0) ON CONFLICT DO NOTHING RETURNING id", ends,
            ).get  # fmt: skip
            if edge is not None:
                store.changed("link", edge, edge, 0)

    def alias(self) -> None:
        self.memory.add_alias(*self.chance.sample(NAMES, 2))

    def recall(self) -> None:
        self.memory.recall("note", self.chance.randrange(2, 9), mode="cosine")
        self.memory._store.flush()

    def forget(self) -> None:
        if len(self.alive) > 2:
            self.memory.forget(self.alive.pop(self.chance.randrange(len(self.alive))))

    def forget_entity(self) -> None:
        self.memory.forget_entity(self.chance.choice(NAMES))


STEPS = ["observe", "link", "link", "link", "join", "alias", "recall", "recall", "forget",
         "forget_entity"]  # fmt: skip


@pytest.mark.parametrize("hub", [1, 2, 4, 200])
@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 4))
def test_a_changed_graph_equals_one_built_anew(hub, seed, count, every):
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "HUB_ARCS", hub)
        patch.setattr(rows, "_LEAST_ROOM", chance.choice([8, 64, 1_024]))
        with Engram(embedder=WordEmbedder(), clock=Clock()) as memory:
            writer = Writer(memory, chance)
            for _ in range(5):
                writer.observe()
            followed = Adjacency(memory._store)
            for step in range(count):
                getattr(writer, chance.choice(STEPS))()
                if step % every:
                    continue
                with memory._store.reading():
                    for agent in (None, "a"):
                        ours, anew = followed.of(agent), Rows(memory._store.graph.edges(agent))
                        assert arcs(ours) == arcs(anew)
                        seeds = list(range(1, 6))
                        assert walk(ours, seeds) == walk(anew, seeds)


def joined(pairs: list[tuple[int, int]], weights: list[float]) -> Edges:
    episodes, targets = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    return Edges(episodes, np.zeros_like(episodes), targets, np.array(weights, dtype=np.float32))


def test_a_write_to_the_graph_changes_rows_and_builds_none(memory, monkeypatch):
    store = memory._store
    made = [memory.observe(f"note {n}") for n in range(6)]

    def link(at: int, name: str) -> None:
        with store.writing():
            key = store.episodes.key(made[at], None)
            store.graph.mention(key, store.graph.entity(name, 0), 0.5, None, 0)

    for at in range(4):
        link(at, "X")
    followed = Adjacency(store)
    with store.reading():
        graph = followed.of(None)
    monkeypatch.setattr(adjacency, "Rows", None)
    writes = [
        lambda: link(4, "X"),
        lambda: link(5, "Y"),
        lambda: link(0, "X"),
        lambda: memory.add_alias("X", "Ex"),
        lambda: memory.add_alias("X", "Y"),
        lambda: (memory.recall("note", 3, mode="cosine"), store.flush()),
        lambda: memory.forget(made[1]),
    ]
    for write in writes:
        write()
        with store.reading():
            assert followed.of(None) is graph
            assert arcs(graph) == arcs(Rows(store.graph.edges(None)))


def test_a_graph_that_is_full_is_built_anew(monkeypatch):
    monkeypatch.setattr(rows, "_LEAST_ROOM", 20)
    graph = Rows(joined([(1, 1)], [0.5]))
    outcomes = [graph.update(joined([(key, 1)], [0.5])) for key in range(2, 30)]
    assert outcomes[0]
    assert not outcomes[-1]


class TestHubs:
    """A node of more than `HUB_ARCS` arcs is walked along the strongest, the earlier of equals."""

    def weights(self, count: int) -> list[float]:
        chance = random.Random(1)
        return [chance.choice([0.125, 0.25, 0.5, 0.75, 1.0]) for _ in range(count)]

    @pytest.mark.parametrize("count", [rows.HUB_ARCS, rows.HUB_ARCS + 1, 3 * rows.HUB_ARCS])
    def test_the_strongest_arcs_are_walked(self, count):
        weights = self.weights(count)
        graph = Rows(joined([(key, 1) for key in range(1, count + 1)], weights))
        ranked = sorted(range(count), key=lambda at: (-weights[at], at))[: rows.HUB_ARCS]
        expected = [(at + 1, weights[at]) for at in sorted(ranked)]
        assert arcs(graph)[ENTITY + 1] == expected
        # The way to the hub is open from everywhere.
        assert len(arcs(graph)) == count + 1

    def test_an_arc_that_grows_takes_the_place_of_a_weaker_one(self):
        count = rows.HUB_ARCS + 50
        graph = Rows(joined([(key, 1) for key in range(1, count + 1)], [0.5] * count))
        assert graph.update(joined([(count, 1), (count + 1, 1)], [0.75, 0.25]))
        walked = [end for end, _ in arcs(graph)[ENTITY + 1]]
        assert walked == [*range(1, rows.HUB_ARCS), count]
        graph.remove(np.array([1, 2]))
        assert [end for end, _ in arcs(graph)[ENTITY + 1]] == [*range(3, rows.HUB_ARCS + 2), count]

    def test_a_walk_through_a_hub_costs_no_more_than_its_strongest_arcs(self, monkeypatch):
        count = 20 * rows.HUB_ARCS
        graph = Rows(joined([(key, 1) for key in range(1, count + 1)], self.weights(count)))
        episodes, _ = walk(graph, [1, 2, 3])
        assert len(episodes) <= rows.HUB_ARCS + 3


def test_a_graph_without_edges_is_walked_nowhere():
    graph = Rows(joined([], []))
    assert walk(graph, [1, 2]) == ([], [])
    graph.remove(np.array([1]))
    assert graph.update(joined([(1, 1)], [0.5]))
    assert arcs(graph) == {1: [(ENTITY + 1, 0.5)], ENTITY + 1: [(1, 0.5)]}


def test_only_what_is_reached_is_asked_about():
    asked: list[Any] = []
    graph = Rows(joined([(1, 1), (2, 1), (3, 2)], [1.0, 1.0, 1.0]))

    class Near:
        episodes = np.array([1])
        distances = np.array([0.0])

    def allowed(keys: Any) -> Any:
        asked.append(keys.tolist())
        return np.ones(len(keys), dtype=np.bool_)

    activate(graph, Near, allowed, 2, 0.5)
    assert asked == [[], [1, 2]]


def test_an_import_that_makes_an_edge_heavier_shows_in_the_graph(open_memory, tmp_path):
    def knows(memory: Engram) -> None:
        with memory._store.writing():
            ends = [memory._store.graph.entity(name, 0) for name in NAMES[:2]]
            memory._store._connection.execute(
                "INSERT INTO edge (entity, target, relation, weight, created_at)"
                " VALUES (?, ?, 'knows', 0.25, 0)", ends,
            )  # fmt: skip
            memory._store.changed("link", 1, 1, 0)

    source, target = open_memory(path=tmp_path / "source"), open_memory(path=tmp_path / "target")
    for memory in (source, target):
        knows(memory)
    source.export_lines(tmp_path / "lines")
    store = target._store
    followed = Adjacency(store)
    with store.reading():
        before = arcs(followed.of(None))
    target.import_lines(tmp_path / "lines")
    with store.reading():
        after = arcs(followed.of(None))
        assert after == arcs(Rows(store.graph.edges(None)))
    assert before[ENTITY + 1] == [(ENTITY + 2, 0.25)]
    assert after[ENTITY + 1] == [(ENTITY + 2, 0.5)]
