"""The contract's scoping matrix, cell by cell: who sees and changes whose rows.

Every row names an operation and what it reaches for an instance of "own", for one of "own" that
asks for all agents where it can, and for one without an agent. Rows are labelled by their owner;
facts of other agents also by whether they are shared.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from stand_ins import WordEmbedder

from engram import StubLLMAdapter
from engram.errors import InvalidArgument, NotFound, ScopeError

OWNERS = {"own": "own", "other": "other", "nobody": None}
EPISODES = set(OWNERS)
FACTS = {
    "own private": ("own", False),
    "own shared": ("own", True),
    "other's private": ("other", False),
    "other's shared": ("other", True),
    "nobody's": (None, True),
}
VISIBLE = set(FACTS) - {"other's private"}


class Reader(StubLLMAdapter):
    """Keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: set[str] = set()

    def extract_facts(self, episodes):
        self.shown |= {episode.id for episode in episodes}
        return super().extract_facts(episodes)

    def summarise(self, episodes):
        self.shown |= {episode.id for episode in episodes}
        return super().summarise(episodes)


@pytest.fixture
def world(open_memory, clock, tmp_path):
    """A row of every owner, all alike, and an edge of every owner's from each episode."""
    memories = {
        label: open_memory(agent, llm=Reader(), events_path=tmp_path / f"{label}.ndjson")
        for label, agent in OWNERS.items()
    }
    episodes = {
        label: memory.observe("tea", salience=0.2, actors=["Ann"])
        for label, memory in memories.items()
    }
    by_agent = {memory.agent_id: memory for memory in memories.values()}
    facts = {
        label: by_agent[agent].assert_fact("Ann", "likes", label, shared=shared)
        for label, (agent, shared) in FACTS.items()
    }
    store = memories["nobody"]._store
    with store.writing():
        for label, agent in OWNERS.items():
            entity = store.graph.entity(f"cup of {label}", 1)
            for uid in episodes.values():
                store.graph.mention(store.episodes.key(uid, None), entity, 0.5, agent, 1)
    clock.advance(days=30)
    return SimpleNamespace(
        memories=memories,
        operator=memories["nobody"],
        episodes=episodes,
        facts=facts,
        labels={uid: label for label, uid in (episodes | facts).items()},
        folder=tmp_path,
    )


def shown(memory):
    return memory._llm.shown


def faded(world, memory):
    memory.decay()
    return [
        episode.id
        for episode in world.operator.episodes().episodes
        if episode.importance_score != 1.0
    ]


def left(world):
    return {e.id for e in world.operator.episodes().episodes}


def exported(world, memory, table):
    return [row["id"] for row in memory.export_json(world.folder / "dump.json")[table]]


def exported_lines(world, memory, kind):
    path = world.folder / "dump.jsonl"
    memory.export_lines(path)
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [record["uid"] for record in records if record.get("kind") == kind]


def recalled(mode):
    return lambda w, m, **scope: [r.episode.id for r in m.recall("tea", 50, mode=mode, **scope)]


def found(w, call):
    ids = []
    for uid in w.labels:
        try:
            ids.append(call(uid))
        except NotFound:
            continue
    return ids


SEEN_EPISODES = {
    "recall, cosine": recalled("cosine"),
    "recall, hybrid": recalled("hybrid"),
    "recall, spreading": recalled("spreading"),
    "episodes": lambda w, m, **scope: [e.id for e in m.episodes(**scope).episodes],
    "get": lambda w, m: found(w, lambda uid: m.get(uid).id),
    "decay": faded,
    "prune": lambda w, m: m.prune(),
    "prune, erased": lambda w, m: m.prune() and set(w.episodes.values()) - left(w),
    "prune, preview": lambda w, m: m.prune(preview=True),
    "reflect, preview": lambda w, m: m.reflect(dry_run=True).pruned,
    "reflect, pruned": lambda w, m: m.reflect().pruned,
    "reflect, window": lambda w, m: m.reflect() and shown(m),
    "compress, candidates": lambda w, m: m.compress(max_episodes=0) and shown(m),
    "compress, erased": lambda w, m: (
        m.compress(max_episodes=0) and set(w.episodes.values()) - left(w)
    ),
    "export_json": lambda w, m: exported(w, m, "episodes"),
    "export_lines": lambda w, m: exported_lines(w, m, "episode"),
}
COUNTED_EPISODES = {
    "count": lambda m, **scope: m.count(**scope),
    "counts, episodes": lambda m: m.counts().episodes,
    "counts, vectors": lambda m: m.counts().embedded,
    "waiting for reflection": lambda m: m.reflect(dry_run=True).episodes_waiting,
    "decayed": lambda m: m.decay(),
}
SEEN_FACTS = {
    "timeline": lambda w, m: [f.id for f in m.timeline("Ann")],
    "facts": lambda w, m: [f.id for f in m.facts().facts],
    "why": lambda w, m: found(w, lambda uid: m.why(uid) and uid),
    "contradictions": lambda w, m: [f.id for pair in m.contradictions() for f in pair],
    "export_json": lambda w, m: exported(w, m, "facts"),
    "export_lines": lambda w, m: exported_lines(w, m, "fact"),
}


@pytest.mark.parametrize(("who", "expected"), [("own", {"own"}), ("nobody", EPISODES)])
@pytest.mark.parametrize("operation", SEEN_EPISODES)
def test_episodes_are_the_agents_own(world, operation, who, expected):
    ids = SEEN_EPISODES[operation](world, world.memories[who])
    assert {world.labels[uid] for uid in ids} == expected


@pytest.mark.parametrize(
    "operation", ["recall, cosine", "recall, hybrid", "recall, spreading", "episodes"]
)
def test_cross_agent_reaches_every_episode(world, operation):
    ids = SEEN_EPISODES[operation](world, world.memories["own"], cross_agent=True)
    assert {world.labels[uid] for uid in ids} == EPISODES
    assert world.memories["own"].count(cross_agent=True) == 3


@pytest.mark.parametrize(("who", "expected"), [("own", 1), ("nobody", 3)])
@pytest.mark.parametrize("counted", COUNTED_EPISODES)
def test_episodes_are_counted_by_scope(world, counted, who, expected):
    assert COUNTED_EPISODES[counted](world.memories[who]) == expected


@pytest.mark.parametrize(("who", "expected"), [("own", VISIBLE), ("nobody", set(FACTS))])
@pytest.mark.parametrize("operation", SEEN_FACTS)
def test_facts_are_own_shared_and_ownerless(world, operation, who, expected):
    ids = SEEN_FACTS[operation](world, world.memories[who])
    assert {world.labels[uid] for uid in ids} == expected


@pytest.mark.parametrize(("who", "allowed"), [("own", {"own"}), ("nobody", EPISODES)])
@pytest.mark.parametrize("label", OWNERS)
def test_forget_is_for_ones_own(world, who, allowed, label):
    uid = world.episodes[label]
    if label in allowed:
        world.memories[who].forget(uid)
        assert left(world) == set(world.episodes.values()) - {uid}
    else:
        with pytest.raises(NotFound):
            world.memories[who].forget(uid)
        assert left(world) == set(world.episodes.values())


@pytest.mark.parametrize("who", ["own", "nobody"])
@pytest.mark.parametrize("label", FACTS)
def test_forget_fact_is_for_its_owner(world, who, label):
    memory, uid = world.memories[who], world.facts[label]
    before = {f.id for f in world.operator.facts().facts}
    if who == "nobody" or label.startswith("own"):
        memory.forget_fact(uid)
        before -= {uid}
    else:
        with pytest.raises(ScopeError if label in VISIBLE else NotFound):
            memory.forget_fact(uid)
    assert {f.id for f in world.operator.facts().facts} == before


@pytest.mark.parametrize("who", ["own", "nobody"])
def test_forget_entity_reaches_every_agent(world, who):
    result = world.memories[who].forget_entity("Ann")
    assert (result.episodes_deleted, result.facts_deleted) == (3, 5)
    assert (world.operator.count(), world.operator.counts().facts) == (0, 0)


@pytest.mark.parametrize("who", ["own", "nobody"])
def test_what_is_the_whole_files(world, who):
    memory = world.memories[who]
    assert memory.list_agents() == ["other", "own"]
    counts = memory.counts()
    assert (counts.facts, counts.active_facts, counts.entities) == (5, 5, 3)
    assert len(exported(world, memory, "entities")) == 3
    assert len(exported_lines(world, memory, "entity")) == 3


@pytest.mark.parametrize(("who", "runs"), [("own", 1), ("other", 1), ("nobody", 3)])
def test_reflections_are_counted_by_scope(world, who, runs):
    for memory in world.memories.values():
        memory.reflect()
    assert world.memories[who].counts().reflections == runs


@pytest.mark.parametrize(
    ("who", "expected"), [("own", {"own"}), ("nobody", {"own", "other", None})]
)
def test_edges_are_exported_by_owner(world, who, expected):
    edges = world.memories[who].export_json(world.folder / "dump.json")["edges"]
    assert {edge["agent_id"] for edge in edges} == expected


def test_spreading_walks_ones_own_edges(world):
    def scores(who, **scope):
        found = world.memories[who].recall("tea", 50, mode="spreading", **scope)
        return {world.labels[r.episode.id]: r.score for r in found}

    before = scores("own"), scores("own", cross_agent=True), scores("nobody")
    store = world.operator._store
    with store.writing():
        for label in ("other", "nobody"):
            entity = store.graph.entity(f"cup of {label}", 1)
            for uid in world.episodes.values():
                key = store.episodes.key(uid, None)
                store.graph.mention(key, entity, 0.4, OWNERS[label], 1)
    assert scores("own") == before[0]
    # Whoever asks for all agents' episodes walks all edges; a deliberate difference.
    assert scores("own", cross_agent=True) != before[1]
    assert scores("nobody") != before[2]


@pytest.mark.parametrize("who", ["own", "nobody"])
@pytest.mark.parametrize("form", ["json", "lines"])
def test_import_writes_whoever_the_document_names(world, open_memory, who, form):
    path = world.folder / f"all.{form}"
    getattr(world.operator, f"export_{form}")(path)
    target = world.folder / "target.engram"
    memory = open_memory(OWNERS[who], path=target)
    getattr(memory, f"import_{form}")(path)
    assert memory.count() == {"own": 1, "nobody": 3}[who]
    assert {f.id for f in memory.timeline("Ann")} == {
        world.facts[label] for label in (VISIBLE if who == "own" else FACTS)
    }
    everything = open_memory(path=target)
    assert {e.agent_id for e in everything.episodes().episodes} == set(OWNERS.values())
    assert everything.counts().facts == 5


@pytest.mark.parametrize("form", ["json", "lines"])
def test_a_scoped_export_brings_back_what_its_agent_sees(world, open_memory, form):
    path = world.folder / f"own.{form}"
    getattr(world.memories["own"], f"export_{form}")(path)
    everything = open_memory(path=world.folder / "target.engram")
    getattr(everything, f"import_{form}")(path)
    assert {world.labels[e.id] for e in everything.episodes().episodes} == {"own"}
    assert {world.labels[f.id] for f in everything.facts().facts} == VISIBLE


def test_backup_is_the_operators(world, open_memory):
    copy = world.folder / "copy.engram"
    with pytest.raises(InvalidArgument, match="export_json"):
        world.memories["own"].backup(copy)
    assert not copy.exists()
    world.operator.backup(copy)
    assert open_memory(path=copy).count() == 3


def test_changing_the_model_is_the_operators(world):
    new = WordEmbedder(fingerprint="new")
    with pytest.raises(ScopeError):
        world.memories["own"].reembed(embedder=new)
    assert world.operator.reembed(embedder=new) == 3
