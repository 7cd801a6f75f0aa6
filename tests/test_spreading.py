"""Spreading recall: what the graph adds, what no hop may cross, and how edges grow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_twin import PlainMemory, Row
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.errors import InvalidArgument, InvalidType
from engram.storage.graph import LEARNING_RATE

START = Clock().now
DAY = timedelta(days=1)
WORDS = ["tea", "coffee", "berlin", "paris", "alice", "bob", "piano", "cat"]


def link(memory: Engram, uid: str, *names: str, weight: float = 1.0, **scope: Any) -> None:
    """Say that an episode mentions entities, as reflection does."""
    store, now = memory._store, memory._now()
    agent = scope.get("agent", memory.agent_id)
    with store.writing():
        key = store.episodes.key(uid, None)
        for name in names:
            store.graph.mention(key, store.graph.entity(name, now), weight, agent, now)


def ids(memory: Engram, query: str, k: int = 5, **options: Any) -> list[str]:
    return [r.episode.id for r in memory.recall(query, k, mode="spreading", **options)]


def weights(memory: Engram) -> dict[str, float]:
    with memory._store.reading():
        return dict(
            memory._store._connection.execute(
                "SELECT e.content || ' - ' || n.name, g.weight FROM edge AS g"
                " JOIN episode AS e ON e.id = g.episode JOIN entity AS n ON n.id = g.target"
            )
        )


def test_an_entity_brings_what_words_do_not(memory):
    near = memory.observe("ivan signed the contract")
    other = [memory.observe(f"ivan {n}") for n in range(12)]
    far = memory.observe("globex moved offices")
    link(memory, near, "Globex")
    link(memory, far, "Globex")
    query = "ivan signed the contract"
    assert far not in [r.episode.id for r in memory.recall(query, 3, mode="cosine")]
    found = memory.recall(query, 3, mode="spreading")
    assert found[0].episode.id == near
    # Reached, it has activation 0.5 · 0.5 of the seed's energy; unreached ones have none.
    assert ids(memory, query, 14).index(far) == 1
    assert set(ids(memory, query, 14)) == {near, far, *other}


class GraphTwin(PlainMemory):
    """Spreading in plain Python, node by node, as the contract tells it."""

    def __init__(self) -> None:
        super().__init__()
        self.edges: list[tuple[str | None, str, str, float]] = []

    def spreading(
        self, query: str, k: int, rows: list[Row], agent: str | None, depth: int, decay: float
    ) -> list[tuple[str, float]]:
        seeds = dict(self.cosine(query, min(3 * k, 4096), rows))
        open_ids = {row.id for row in rows}
        activation: dict[str, float] = {}
        frontier = dict(seeds)
        for _ in range(depth):
            received: dict[str, float] = {}
            for node, energy in frontier.items():
                for owner, episode, entity, weight in self.edges:
                    if (agent is not None and owner != agent) or node not in (episode, entity):
                        continue
                    neighbour = entity if node == episode else episode
                    if neighbour == episode and episode not in open_ids:
                        continue
                    passed = energy * decay * float(np.float32(min(max(weight, 0.0), 1.0)))
                    received[neighbour] = received.get(neighbour, 0.0) + passed
            for node, energy in received.items():
                activation[node] = activation.get(node, 0.0) + energy
            frontier = {node: energy for node, energy in received.items() if energy > 0}
        reached = {uid: a for uid, a in activation.items() if uid in open_ids and a > 0}
        bound = max(1.0, *reached.values()) if reached else 1.0
        near = {row.id: 1 / (1 + self.distance(query, row)) for row in rows}
        scores = {
            uid: 0.6 * near[uid] + 0.3 * reached.get(uid, 0.0) / bound + 0.1
            for uid in seeds.keys() | reached.keys()
        }
        order = {row.id: at for at, row in enumerate(self.rows)}
        return sorted(scores.items(), key=lambda one: (-one[1], order[one[0]]))[:k]


rows = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        st.sampled_from([None, "a", "b"]),
        st.integers(0, 4),
        st.booleans(),
    ),
    min_size=1,
    max_size=16,
)
links = st.lists(
    st.tuples(
        st.integers(0, 15),
        st.sampled_from(["X", "Y", "Z"]),
        st.sampled_from([0.25, 0.5, 1.0, 3.0]),
    ),
    max_size=30,
)


@settings(max_examples=120)
@given(
    rows,
    links,
    st.sampled_from([None, "a", "b"]),
    st.integers(1, 6),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.none() | st.integers(0, 4),
    st.booleans(),
)
def test_scores_equal_those_of_the_plain_twin(
    made, joined, agent, k, depth, decay, until, unmarked
):
    twin = GraphTwin()
    with Engram(agent_id=agent, embedder=WordEmbedder(), clock=Clock()) as memory:
        for content, writer, day, quarantined in made:
            memory._agent = writer
            at = START + day * DAY
            uid = memory.observe(content, timestamp=at, quarantined=quarantined)
            twin.rows.append(Row(uid, content, writer, at, (), (), "external", quarantined))
        memory._agent = agent
        edges: dict[tuple[str, str], list[Any]] = {}
        for place, name, weight in joined:
            row = twin.rows[place % len(made)]
            link(memory, row.id, name, weight=weight, agent=row.agent)
            edges.setdefault((row.id, name), [row.agent, 0.0])[1] += weight
        twin.edges = [(who, e, n, w) for (e, n), (who, w) in edges.items()]
        moment = None if until is None else START + until * DAY
        found = memory.recall(
            "tea berlin alice", k, mode="spreading", depth=depth, decay=decay,
            as_of=moment, exclude_quarantined=unmarked,
        )  # fmt: skip
        allowed = twin.matching(agent, until=moment, exclude_quarantined=unmarked)
        expected = twin.spreading("tea berlin alice", k, allowed, agent, depth, decay)
        assert [r.score for r in found] == pytest.approx([score for _, score in expected])
        by_id = dict(twin.spreading("tea berlin alice", 99, allowed, agent, depth, decay))
        assert len(found) == min(k, len(allowed))
        for result in found:
            row = next(row for row in allowed if row.id == result.episode.id)
            assert result.distance == pytest.approx(twin.distance("tea berlin alice", row))
            assert 0.0 <= result.score <= 1.0
        if k * 3 >= len(allowed):
            assert all(by_id[r.episode.id] == pytest.approx(r.score) for r in found)


QUERY = "ivan signed the contract"


def scores(memory: Engram, **options: Any) -> dict[str, float]:
    found = memory.recall(QUERY, 20, mode="spreading", depth=4, **options)
    return {r.episode.id: r.score for r in found}


def gap(memory: Engram, **middle: Any) -> tuple[str, str, str]:
    """Three episodes: the first like the query, an entity at both ends, nothing in between yet."""
    first = memory.observe(QUERY)
    between = memory.observe("quite another thing", **middle)
    last = memory.observe("globex moved offices")
    link(memory, first, "X")
    link(memory, last, "Y")
    for number in range(12):
        memory.observe(f"ivan {number}")
    return first, between, last


@pytest.mark.parametrize(
    ("middle", "filters"),
    [
        ({"timestamp": START + 9 * DAY}, {"as_of": START + DAY}),
        ({"timestamp": START - 9 * DAY}, {"since": START - DAY}),
        ({"quarantined": True}, {"exclude_quarantined": True}),
        ({"provenance": "external"}, {"provenance": "user"}),
        ({"tags": ["other"]}, {"tags": ["this"]}),
        ({"actors": ["other"]}, {"actors": ["this"]}),
    ],
)
def test_what_a_filter_leaves_out_neither_appears_nor_conducts(memory, middle, filters):
    write = memory.observe
    usual = {"provenance": "user", "tags": ["this"], "actors": ["this"]}
    memory.observe = lambda text, **change: write(text, **{**usual, **change})
    _, between, last = gap(memory, **middle)
    apart, filtered = scores(memory), scores(memory, **filters)
    link(memory, between, "X", "Y")
    assert scores(memory)[last] > apart[last]
    assert scores(memory, **filters) == filtered
    assert between not in filtered
    assert len(filtered) == len(apart) - 1


def test_another_agents_edges_and_episodes_conduct_nothing(open_memory):
    a, b, operator = open_memory("a"), open_memory("b"), open_memory()
    _, _, last = gap(a)
    foreign = b.observe("quite another thing")
    own, everyone, crossing = scores(a), scores(operator), scores(a, cross_agent=True)
    link(b, foreign, "X", "Y")
    assert scores(a) == own
    assert foreign not in own
    assert scores(operator)[last] > everyone[last]
    # Looking at every agent's episodes means walking every agent's edges.
    assert scores(a, cross_agent=True)[last] > crossing[last]
    # An edge of a's own that leads to b's episode opens no way through it either.
    link(b, foreign, "X", "Y", agent="a")
    assert scores(a) == own


@pytest.mark.parametrize("k", [1, 1366, 4096])
def test_every_k_works_and_none_costs_answers(memory, k):
    made = [memory.observe(f"note {n}") for n in range(30)]
    link(memory, made[3], "X")
    link(memory, made[29], "X")
    assert len(ids(memory, "note 3", k)) == min(k, 30)
    with pytest.raises(InvalidArgument, match="4096"):
        memory.recall("note", 4097, mode="spreading")


def test_scores_stay_within_one_in_a_dense_graph(memory):
    for number in range(40):
        uid = memory.observe(f"note {number}")
        link(memory, uid, *[f"entity {n}" for n in range(20)])
    with memory._store.writing():
        memory._store.strength.importance.set(np.array([1, 2]), np.array([9.0, -9.0]))
        memory._store.changed("decay", 0, 0, 0)
    found = memory.recall("note 1", 40, mode="spreading", depth=6, decay=1.0)
    assert len(found) == 40
    assert all(0.0 <= r.score <= 1.0 for r in found)
    assert len({r.score for r in found}) > 30
    assert 9.0 in [r.importance for r in found]


def test_without_edges_or_hops_the_nearest_come_back(memory):
    made = [memory.observe(f"note {n}") for n in range(9)]
    nearest = [r.episode.id for r in memory.recall("note 4", 9, mode="cosine")]
    assert ids(memory, "note 4", 9) == nearest
    link(memory, made[0], "X")
    link(memory, made[8], "X")
    assert ids(memory, "note 4", 9, depth=0) == nearest
    assert Engram(embedder=WordEmbedder()).recall("note", mode="spreading") == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"depth": -1}, InvalidArgument),
        ({"depth": 101}, InvalidArgument),
        ({"depth": 1.5}, InvalidType),
        ({"decay": -0.1}, InvalidArgument),
        ({"decay": 1.1}, InvalidArgument),
        ({"decay": float("nan")}, InvalidArgument),
        ({"decay": "x"}, InvalidType),
        ({"mode": "Spreading"}, InvalidArgument),
    ],
)
def test_refused_arguments(memory, change, error):
    with pytest.raises(error, match=next(iter(change))):
        memory.recall("note", **{"mode": "spreading", **change})


def test_the_graph_follows_every_write_of_any_instance(open_memory):
    one, two = open_memory("a"), open_memory("a")
    first, between, last = gap(one)
    apart = scores(two)[last]
    link(one, between, "X", "Why")
    assert scores(two)[last] == apart
    one.add_alias("Y", "Why")
    joined = scores(two)[last]
    assert joined > apart
    one.observe("rain in paris")
    assert scores(two)[last] == joined
    one.forget(between)
    assert scores(two)[last] == apart
    one.forget(last)
    assert last not in scores(two)
    one.forget(first)
    assert len(scores(two)) == 13
    assert one.check() == []


def test_merging_entities_adds_their_edges_up(memory):
    uid = memory.observe("note")
    link(memory, uid, "Bob", weight=0.25)
    link(memory, uid, "Robert", weight=0.5)
    memory.add_alias("Robert", "Bob")
    link(memory, uid, "Bob", weight=0.125)
    assert weights(memory) == {"note - Robert": 0.875}


def test_recalling_together_strengthens_what_is_shared(open_memory):
    memory = open_memory("a")
    texts = ["note one", "note two", "note three"]
    made = {text: memory.observe(text) for text in texts}
    link(memory, made["note one"], "X", "Alone", weight=0.5)
    link(memory, made["note two"], "X", weight=0.2)
    link(memory, made["note three"], "X", weight=1.5)
    before = weights(memory)
    changes = memory._store.last_change
    with memory._store.reading():
        seq = changes()
    memory.recall("note", 3, mode="cosine")
    assert weights(memory) == before  # a recall writes nothing
    with memory._store.reading():
        assert changes() == seq
    memory._store.flush()
    after = weights(memory)
    assert after["note one - X"] == pytest.approx(0.5 + LEARNING_RATE * 0.5)
    assert after["note two - X"] == pytest.approx(0.2 + LEARNING_RATE * 0.8)
    # Shared with nobody; and already past the bound by repeated mention.
    assert (after["note one - Alone"], after["note three - X"]) == (0.5, 1.5)
    for _ in range(200):
        memory.recall("note", 3, mode="cosine")
    memory._store.flush()
    final = weights(memory)
    assert 0.999 < final["note one - X"] <= 1.0
    assert final["note three - X"] == 1.5


def test_one_result_or_no_common_entity_strengthens_nothing(memory):
    one, two = memory.observe("note one"), memory.observe("note two")
    link(memory, one, "X", weight=0.5)
    link(memory, two, "Y", weight=0.5)
    for k in (1, 2):
        memory.recall("note", k)
    memory._store.flush()
    assert set(weights(memory).values()) == {0.5}


def test_an_agents_recall_strengthens_only_its_own_edges(open_memory):
    a, b = open_memory("a"), open_memory("b")
    for memory, name in ((a, "a"), (a, "a also"), (b, "b"), (b, "b also")):
        link(memory, memory.observe(f"note {name}"), "X", weight=0.5)
    a.recall("note", 4, cross_agent=True)
    a._store.flush()
    after = weights(b)
    assert after["note a - X"] == after["note a also - X"] == pytest.approx(0.55)
    assert after["note b - X"] == after["note b also - X"] == 0.5


def test_edges_of_unscoped_writers_add_up_too(memory):
    uid = memory.observe("note")
    link(memory, uid, "X", weight=0.25)
    link(memory, uid, "X", weight=0.5)
    assert weights(memory) == {"note - X": 0.75}


def test_strengthening_shows_in_the_next_recall(memory):
    _, between, last = gap(memory)
    link(memory, between, "X", "Y", weight=0.01)
    weak = scores(memory)[last]
    memory._store.flush()
    assert scores(memory)[last] > weak
