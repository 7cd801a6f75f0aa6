"""`recall_memories`: facts found by words and by meaning, in one ranking with episodes."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from files import every_byte
from older import older
from stand_ins import WordEmbedder

from engram import AsyncEngram, Engram, FactResult, ObserveInput, SearchResult
from engram.engine import recalling
from engram.errors import InvalidArgument, InvalidType, ModelMismatch
from engram.index import fact_index, rows
from engram.retrieval import memories
from engram.storage import NewEpisode
from engram.storage.fact_search import FactSearch

MODES = ["hybrid", "cosine", "spreading"]
WORDS = ["tea", "coffee", "berlin", "plan", "Ann", "works", "Globex", "on-call"]


class Watched(WordEmbedder):
    """Keeps what it embedded."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.texts: list[str] = []

    def embed(self, texts):
        self.texts += texts
        return super().embed(texts)


def said(results) -> list[str]:
    return [
        f"{r.fact.subject} {r.fact.predicate} {r.fact.object}"
        if isinstance(r, FactResult)
        else r.episode.content
        for r in results
    ]


def facts_of(memory, query: str, k: int = 50, **options) -> list[str]:
    return said(memory.recall_memories(query, k, kind="semantic", **options))


@pytest.mark.parametrize("mode", MODES)
def test_a_fact_is_found_among_unrelated_ones(memory, mode):
    for number in range(30):
        memory.assert_fact(f"thing {number}", "is", f"number {number}")
        memory.observe(f"note {number}")
    uid = memory.assert_fact("Alice", "works at", "Globex")
    memory.observe("Bob sleeps")
    [best] = memory.recall_memories("Alice works at what", 1, mode=mode)
    assert isinstance(best, FactResult)
    assert (best.fact.id, best.provenance, best.quarantined) == (uid, "unknown", False)
    assert 0 < best.distance < 2
    assert 0 <= best.score <= 1


def test_both_kinds_come_in_one_ranking(memory):
    memory.observe("tea in the morning")
    memory.assert_fact("Ann", "likes", "tea in the morning")
    memory.observe("nothing of the kind")
    memory.assert_fact("Ann", "knows", "nobody")
    found = memory.recall_memories("tea in the morning", 4)
    assert [type(r) for r in found[:2]] == [SearchResult, FactResult]
    assert said(found[:2]) == ["tea in the morning", "Ann likes tea in the morning"]
    scores = [r.score for r in found]
    assert scores == sorted(scores, reverse=True)
    assert len(found) == 4


@pytest.mark.parametrize("mode", MODES)
def test_ties_are_episodes_then_facts_in_insertion_order(memory, mode):
    facts = [memory.assert_fact("a", "b", "c") for _ in range(3)]
    episodes = [memory.observe("a b c") for _ in range(3)]
    found = memory.recall_memories("a b c", 6, mode=mode)
    if mode != "spreading":
        assert [r.episode.id for r in found[:3]] == episodes
        assert [r.fact.id for r in found[3:]] == facts
        assert len({r.score for r in found}) == 1
    again = memory.recall_memories("a b c", 6, mode=mode)
    assert again == found


def scene(memory, seed: int, episodes: int = 60, facts: int = 60) -> None:
    chance = random.Random(seed)

    def words(n: int) -> str:
        return " ".join(chance.choices(WORDS, k=n))

    for _ in range(max(episodes, facts)):
        memory.observe(words(6), provenance=chance.choice(["user", "tool"]), tags=["t"])
        memory.assert_fact(words(1), words(1), words(3), shared=chance.random() < 0.7)


@pytest.mark.parametrize("mode", MODES)
def test_episodic_is_recall_itself(open_memory, mode):
    memory = open_memory("a")
    scene(memory, 1)
    chance = random.Random(2)
    for _ in range(20):
        query = " ".join(chance.choices(WORDS, k=3))
        options = chance.choice([{}, {"tags": ["t"]}, {"provenance": "user"}, {"depth": 3}])
        assert memory.recall_memories(
            query, 7, kind="episodic", mode=mode, **options
        ) == memory.recall(query, 7, mode=mode, **options)


@pytest.mark.parametrize(("tail", "segment"), [(4, 8), (4, 64), (1024, 32_768)])
def test_the_answer_is_that_of_a_plain_search(open_memory, monkeypatch, tail, segment):
    """By meaning against all distances, whatever the parts of the index are."""
    monkeypatch.setattr(fact_index, "_TAIL_ROWS", tail)
    monkeypatch.setattr(fact_index, "_SEGMENT_ROWS", segment)
    memory, embedder = open_memory(), WordEmbedder()
    chance = random.Random(3)
    live: dict[str, str] = {}
    for step in range(120):
        text = chance.choice(WORDS), chance.choice(WORDS), " ".join(chance.choices(WORDS, k=3))
        live[memory.assert_fact(*text)] = " ".join(text)
        if chance.random() < 0.3:
            gone = chance.choice([*live])
            memory.forget_fact(gone)
            del live[gone]
        if step % 5:
            continue
        query = " ".join(chance.choices(WORDS, k=3))
        vector = embedder.vector(query)
        order = sorted(live, key=lambda uid: round(np.linalg.norm(
            embedder.vector(live[uid]) - vector), 3))  # fmt: skip
        found = memory.recall_memories(query, 10, kind="semantic", mode="cosine")
        assert len(found) == min(10, len(live))
        expected = [np.linalg.norm(embedder.vector(live[uid]) - vector) for uid in order[:10]]
        assert [r.distance for r in found] == pytest.approx(expected, abs=2e-3)
        assert {r.fact.id for r in memory.recall_memories(query, 500, kind="semantic")} <= {*live}
    assert memory.check() == []


def test_words_are_ranked_as_one_collection(memory):
    """Of a store with one fact no statistics of its own say that its word is rare."""
    for number in range(50):
        memory.observe(f"common words number {number}")
    memory.assert_fact("zebra", "is", "striped")
    found = memory.recall_memories("zebra common", 1, vector_weight=0.0)
    assert said(found) == ["zebra is striped"]


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("東京", ("私", "住所", "東京都")),
        ("zoe", ("Zoë", "mag", "Tee")),
        ("on-call", ("Ann", "is", "on-call today")),
        ("المدرسة", ("المَدرَسة", "في", "برلين")),
    ],
)
def test_words_of_any_script(memory, query, fact):
    memory.assert_fact("other", "thing", "entirely")
    memory.assert_fact(*fact)
    assert facts_of(memory, query, 1, vector_weight=0.0) == [" ".join(fact)]


def test_a_store_of_facts_alone_gets_its_model_from_them(memory):
    assert memory.recall_memories("x") == []
    assert memory.model() is None
    memory.assert_fact("Ann", "likes", "tea")
    assert memory.model() is None
    assert facts_of(memory, "Ann tea") == ["Ann likes tea"]
    assert memory.model().fingerprint == "words"
    assert memory.recall("tea") == []


def test_no_model_is_needed_to_state_a_fact_and_one_to_find_it(open_memory):
    other = open_memory(embedder=WordEmbedder(fingerprint="other"))
    open_memory().observe("x")
    other.assert_fact("Ann", "likes", "tea")
    with pytest.raises(ModelMismatch):
        other.recall_memories("tea")


def test_only_what_the_caller_may_see_is_found_and_embedded(open_memory):
    ann = open_memory("ann")
    watched = Watched()
    bob = open_memory("bob", embedder=watched)
    ann.assert_fact("secret", "is", "kept", shared=False)
    ann.assert_fact("secret", "is", "out")
    bob.assert_fact("secret", "is", "mine", shared=False)
    assert sorted(facts_of(bob, "secret")) == ["secret is mine", "secret is out"]
    assert "secret is kept" not in watched.texts
    assert sorted(facts_of(bob, "secret", cross_agent=True)) == ["secret is mine", "secret is out"]
    assert sorted(facts_of(ann, "secret")) == ["secret is kept", "secret is out"]
    assert len(facts_of(open_memory(), "secret")) == 3


def test_facts_are_embedded_once_for_all_instances(open_memory):
    one, two = Watched(), Watched()
    first = open_memory(embedder=one)
    for number in range(300):
        first.assert_fact("Ann", "has", f"thing {number}")
    first.recall_memories("Ann")
    assert len(one.texts) == 301
    second = open_memory(embedder=two)
    second.recall_memories("Ann")
    assert two.texts == ["Ann"]


def test_every_commit_before_the_call_is_seen(open_memory):
    reader, writer = open_memory(), open_memory()
    reader.recall_memories("x")
    uid = writer.assert_fact("Ann", "likes", "tea")
    assert facts_of(reader, "tea") == ["Ann likes tea"]
    writer.assert_fact("Ann", "likes", "cake")
    assert len(facts_of(reader, "tea")) == 2
    writer.forget_fact(uid)
    assert facts_of(reader, "tea") == ["Ann likes cake"]


def test_a_fact_is_found_while_it_holds(memory, clock):
    now = clock()
    memory.assert_fact("Ann", "lives in", "Rome", valid_to=now + timedelta(days=2))
    memory.assert_fact("Ann", "lives in", "Oslo", valid_from=now + timedelta(days=2))

    def cities(**options):
        return [r.fact.object for r in memory.recall_memories(
            "Ann lives in", 9, kind="semantic", **options)]  # fmt: skip

    assert cities() == ["Rome"]
    clock.advance(days=2)
    assert cities() == ["Oslo"]
    assert cities(as_of=now + timedelta(days=1)) == ["Rome"]
    assert cities(as_of=now - timedelta(days=1)) == []
    assert cities(as_of=now + timedelta(days=2)) == ["Oslo"]


def test_a_superseded_fact_is_found_when_it_held(open_memory, clock):
    from engram import StubLLMAdapter

    class States(StubLLMAdapter):
        def extract_facts(self, episodes):
            return [
                {"subject": "Ann", "predicate": "works at", "object": e.content, "sources": [1]}
                for e in episodes
            ], 1

    memory = open_memory(llm=States())
    for place in ("Initech", "Globex"):
        memory.observe(place)
        memory.reflect()
        clock.advance(days=10)
    assert facts_of(memory, "Ann works at") == ["Ann works at Globex"]
    then = clock() - timedelta(days=15)
    assert facts_of(memory, "Ann works at", as_of=then) == ["Ann works at Initech"]
    # What an erased fact had superseded holds again, at once.
    [later] = memory.recall_memories("Ann works at", kind="semantic")
    memory.forget_fact(later.fact.id)
    assert facts_of(memory, "Ann works at") == ["Ann works at Initech"]


def test_filters_apply_before_the_choice(memory):
    trusted = memory.observe("told", provenance="user")
    doubtful = memory.observe("read", provenance="tool", quarantined=True)
    for number in range(40):
        memory.assert_fact("Ann", "heard", f"rumour {number}")
    memory.assert_fact("Ann", "said", "so", source=trusted)
    memory.assert_fact("Ann", "read", "so", source=doubtful)
    memory.assert_fact("Ann", "typed", "so", quarantined=True)
    query = "Ann heard rumour"
    assert facts_of(memory, query, 3, provenance="user") == ["Ann said so"]
    [found] = memory.recall_memories(query, 3, kind="semantic", provenance=["user", "tool"],
                                     exclude_quarantined=True)  # fmt: skip
    assert (found.provenance, found.quarantined) == ("user", False)
    [found] = memory.recall_memories(query, 3, kind="semantic", provenance="tool")
    assert (found.provenance, found.quarantined) == ("tool", True)
    for result in memory.recall_memories(query, 99, kind="semantic"):
        told = memory.why(result.fact.id)
        assert (result.provenance, result.quarantined) == (told["provenance"], told["quarantined"])
    assert len(facts_of(memory, query, 99, exclude_quarantined=True)) == 41
    assert facts_of(memory, query, tags=["t"]) == []
    assert facts_of(memory, query, actors=["Ann"]) == []
    # An erased source still tells how far the fact is trusted.
    memory.forget(doubtful)
    assert facts_of(memory, query, 3, provenance="tool") == ["Ann read so"]


def test_since_and_until_ask_when_a_fact_began(memory):
    for year in (2020, 2021, 2022):
        memory.assert_fact("Ann", "moved", str(year), valid_from=datetime(year, 1, 1, tzinfo=UTC))
    middle = datetime(2021, 1, 1, tzinfo=UTC)
    assert facts_of(memory, "Ann", since=middle, until=middle) == ["Ann moved 2021"]
    assert len(facts_of(memory, "Ann", until=middle)) == 2
    assert facts_of(memory, "Ann", as_of=datetime(2025, 1, 1, tzinfo=UTC), since=middle,
                    until=middle) == ["Ann moved 2021"]  # fmt: skip


def test_min_score_and_refused_arguments(memory):
    memory.assert_fact("Ann", "likes", "tea")
    assert memory.recall_memories("Ann likes tea", mode="cosine", min_score=0.99)
    assert memory.recall_memories("nothing", mode="cosine", min_score=0.99) == []
    for options in ({"kind": "fact"}, {"mode": "fuzzy"}, {"k": 0}):
        with pytest.raises(InvalidArgument):
            memory.recall_memories("x", **options)
    with pytest.raises(InvalidType):
        memory.recall_memories("x", layer="any")


def test_spreading_reaches_facts_of_what_is_activated(open_memory):
    from engram import StubLLMAdapter

    class Links(StubLLMAdapter):
        def extract_facts(self, episodes):
            return [
                {"subject": "Alice", "predicate": "mentioned", "object": "once", "sources": [1]}
            ], 1

    memory = open_memory(llm=Links())
    memory.observe("the merger was announced by Alice")
    memory.reflect()
    memory.assert_fact("Alice", "salary", "high")
    for number in range(20):
        memory.assert_fact("nobody", "salary", f"high {number}")

    def scores(**options) -> dict[str, float]:
        found = memory.recall_memories(
            "the merger was announced", 99, kind="semantic", mode="spreading", **options
        )
        return {" ".join(said([r])): r.score for r in found}

    near, spread = scores(depth=0), scores()
    assert len(near) == len(spread) == 22
    for text, score in spread.items():
        assert (score > near[text]) == text.startswith("Alice"), text


def globex(memory) -> None:
    """An episode that mentions an entity with one fact, which nothing else leads to."""
    for number in range(30):
        memory.assert_fact(f"thing {number}", "is", f"kickoff {number}", shared=False)
    uid = memory.observe("project kickoff")
    with memory._store.writing():
        graph = memory._store.graph
        episode = memory._store.episodes.key(uid, memory.agent_id)
        graph.mention(episode, graph.entity("Globex", 1), 1.0, memory.agent_id, 1)


def spread(memory):
    return memory.recall_memories("project kickoff", 5, kind="semantic", mode="spreading")


@pytest.mark.parametrize("place", ["subject", "object"])
def test_what_others_may_not_see_displaces_nothing_that_spreading_reaches(open_memory, place):
    ann, bob = open_memory("ann"), open_memory("bob")

    def state(memory, other: str) -> str:
        ends = ("Globex", other) if place == "subject" else (other, "Globex")
        return memory.assert_fact(ends[0], "noted", ends[1], shared=False)

    mine = state(ann, "Zed")
    globex(ann)
    before = spread(ann)
    assert before[0].fact.id == mine
    for number in range(rows.HUB_ARCS + 5):
        state(bob, f"n {number}")
    assert spread(ann) == before


def test_what_no_longer_holds_displaces_nothing_that_spreading_reaches(memory, clock):
    memory.assert_fact("Globex", "ceo", "Zed")
    globex(memory)
    for number in range(rows.HUB_ARCS + 5):
        memory.assert_fact("Globex", "noted", f"n {number}", valid_to=clock() + timedelta(hours=1))
    clock.advance(days=1)
    assert spread(memory)[0].fact.object == "Zed"


def test_of_an_entity_with_many_facts_the_newest_are_reached(memory, monkeypatch):
    monkeypatch.setattr(memories, "HUB_ARCS", 3)
    memory.add_alias("Globex", "Globex Inc.")
    old = memory.assert_fact("Globex", "ceo", "Zed")
    for number in range(2):
        memory.assert_fact("Globex Inc.", "noted", f"n {number}")
    memory.assert_fact("Globex", "same as", "Globex Inc.")
    globex(memory)
    found = [r.fact.id for r in spread(memory) if "Globex" in r.fact.subject]
    assert len(found) == 3
    assert old not in found


def test_another_model_takes_the_place_of_the_old_one_s_vectors(memory):
    memory.observe("x")
    memory.assert_fact("Ann", "likes", "tea")
    memory.recall_memories("tea")
    watched = Watched(dim=16, fingerprint="new")
    memory.reembed(embedder=watched)
    watched.texts.clear()
    [found] = memory.recall_memories("Ann likes tea", kind="semantic")
    assert found.distance == pytest.approx(0, abs=1e-6)
    assert sorted(watched.texts) == ["Ann likes tea", "Ann likes tea"]
    assert memory.check() == []


def test_while_another_process_writes_the_words_answer(open_memory, monkeypatch):
    monkeypatch.setattr(recalling, "_PATIENCE", 0.0)
    reader, writer = open_memory(), open_memory()
    reader.observe("x")
    reader.assert_fact("Ann", "likes", "tea")
    with writer._store.writing():
        [found] = reader.recall_memories("tea", kind="semantic")
        assert found.distance == np.inf
    [found] = reader.recall_memories("tea", kind="semantic")
    assert found.distance < 2


UNWRITABLE = {
    "full": "PRAGMA max_page_count = 1",
    "read-only": "PRAGMA query_only = 1",
}


@pytest.mark.parametrize("why", UNWRITABLE)
@pytest.mark.parametrize("episodes", [0, 1])
def test_a_read_needs_no_room_to_write(open_memory, why, episodes):
    memory = open_memory(embedder=WordEmbedder(4096))
    for _ in range(episodes):
        memory.observe("nothing of the kind")
    memory.assert_fact("Bob", "likes", "cake")
    memory.assert_fact("Ann", "likes", "tea")
    with memory._store.reading():
        memory._store._connection.execute(UNWRITABLE[why]).fetchall()
    [found] = memory.recall_memories("tea", 1, kind="semantic")
    assert said([found]) == ["Ann likes tea"]
    assert found.distance == np.inf
    assert facts_of(memory, "likes", mode="cosine") == []
    with memory._store.reading():
        for undone in ("PRAGMA max_page_count = 1000000", "PRAGMA query_only = 0"):
            memory._store._connection.execute(undone).fetchall()
    [found] = memory.recall_memories("Ann likes tea", 1, mode="cosine")
    assert found.distance == pytest.approx(0, abs=1e-3)


def test_without_a_model_the_words_answer(open_memory, monkeypatch):
    monkeypatch.setattr(recalling, "_PATIENCE", 0.0)
    reader, writer = open_memory("ann"), open_memory("bob")
    writer.assert_fact("tea", "is", "bob's", shared=False)
    reader.assert_fact("Ann", "likes", "coffee")
    reader.assert_fact("Ann", "likes", "green tea, hot tea")
    reader.assert_fact("Bob", "said", "that Ann likes tea")
    with writer._store.writing():
        assert reader.model() is None
        found = reader.recall_memories("tea", 9)
        assert said(found) == ["Ann likes green tea, hot tea", "Bob said that Ann likes tea"]
        assert facts_of(reader, "tea") == said(found)
        assert [r.score for r in found] == sorted((r.score for r in found), reverse=True)
        assert reader.recall_memories("tea", tags=["t"]) == []
        assert reader.recall_memories("tea", mode="spreading") == []
    assert len(facts_of(reader, "tea")) == 3


def test_without_a_model_episodes_and_facts_are_ranked_together(open_memory, monkeypatch):
    """An experience waits for its vectors: till then nothing of the store has any."""
    monkeypatch.setattr(recalling, "_PATIENCE", 0.0)
    reader, writer = open_memory(), open_memory()
    reader.assert_fact("Ann", "likes", "tea")
    reader.assert_fact("Ann", "likes", "cake")
    with reader._store.writing():
        reader._store.add_episodes(
            [NewEpisode("hot tea", 0), NewEpisode("cold water", 0)],
            np.empty((0, 4), dtype=np.float32), np.zeros(2, dtype=np.int64),
            model=0, agent=None, now=0,
        )  # fmt: skip
    with writer._store.writing():
        assert sorted(said(reader.recall_memories("tea", 9))) == ["Ann likes tea", "hot tea"]
        assert facts_of(reader, "tea") == ["Ann likes tea"]


def test_the_long_fact_has_a_vector_for_each_chunk(open_memory):
    class Chunks(WordEmbedder):
        def embed_documents(self, texts):
            parts = [text.split() for text in texts]
            return self.embed([w for one in parts for w in one]), np.array([len(p) for p in parts])

        def embed_query(self, text):
            return self.vector(text)

    memory = open_memory(embedder=Chunks())
    memory.assert_fact("Ann", "likes", "tea")
    memory.assert_fact("Bob", "likes", "cake and more")
    [found, _] = memory.recall_memories("cake", mode="cosine")
    assert found.fact.object == "cake and more"
    assert found.distance == pytest.approx(0, abs=1e-3)
    assert memory.check() == []


SECRET = "zanzibarium"


@pytest.mark.parametrize("way", ["forget_fact", "forget_entity", "sweep"])
def test_nothing_of_an_erased_fact_stays(memory, path, way):
    uid = memory.assert_fact("Ivan", "collects", SECRET)
    memory.assert_fact("Ann", "likes", "tea")
    assert facts_of(memory, SECRET, 1) == [f"Ivan collects {SECRET}"]
    vector = WordEmbedder().vector(f"Ivan collects {SECRET}").astype("<f2").tobytes()
    assert vector in every_byte(path)
    if way == "forget_fact":
        memory.forget_fact(uid)
        assert memory.wipe()
    else:
        name = "Ivan" if way == "forget_entity" else SECRET
        result = memory.forget_entity(name, content_sweep=way == "sweep")
        assert result.wiped
        assert (result.removed["fact"], result.removed["fact_embedding"]) == (1, 1)
    assert SECRET.encode() not in every_byte(path)
    assert vector not in every_byte(path)
    assert facts_of(memory, SECRET, 9) == ["Ann likes tea"]
    assert memory.check() == []


def test_many_facts_are_erased_at_once(memory):
    for number in range(300):
        memory.assert_fact("Ivan", "knows", f"number {number}")
        memory.assert_fact("Ann", "knows", f"number {number}")
    memory.recall_memories("knows")
    assert memory.forget_entity("Ivan").facts_deleted == 300
    assert {r.split()[0] for r in facts_of(memory, "number knows", 999)} == {"Ann"}
    assert memory.check() == []


@pytest.mark.parametrize("version", [3, 4])
def test_the_facts_of_an_older_store_are_found(open_memory, monkeypatch, version):
    with older(monkeypatch, version):
        old = open_memory()
        old.assert_fact("Ann", "likes", "green tea")
        old.assert_fact("私", "住所", "東京都")
        old.close()
    memory = open_memory()
    assert memory.check() == []
    assert facts_of(memory, "green", 1, vector_weight=0.0) == ["Ann likes green tea"]
    assert facts_of(memory, "東京", 1, vector_weight=0.0) == ["私 住所 東京都"]


def test_facts_of_an_import_are_found(memory, other, file):
    memory.observe("x")
    memory.assert_fact("Ann", "likes", "green tea")
    memory.assert_fact("私", "住所", "東京都")
    memory.export_lines(file)
    other.import_lines(file)
    assert facts_of(other, "green", 1) == ["Ann likes green tea"]
    assert facts_of(other, "東京", 1, vector_weight=0.0) == ["私 住所 東京都"]
    assert other.check() == []


def test_a_check_knows_the_text_and_the_vectors_of_facts(memory):
    memory.observe("x")
    memory.assert_fact("Ann", "likes", "tea")
    memory.recall_memories("tea")
    with memory._store.writing():
        memory._store._connection.execute("UPDATE fact_embedding SET vector = x'00'")
        memory._store._connection.execute("DELETE FROM fact_fts_docsize")
    assert memory.check() == [
        "1 vectors of facts do not have their model's dimension",
        "the full-text index differs from the facts",
    ]


def test_a_damaged_vector_is_made_anew(open_memory):
    memory = open_memory()
    memory.observe("x")
    memory.assert_fact("Ann", "likes", "tea")
    memory.recall_memories("tea")
    with memory._store.writing():
        memory._store._connection.execute("UPDATE fact_embedding SET vector = x'00'")
    [found] = open_memory().recall_memories("Ann likes tea", kind="semantic")
    assert found.distance == pytest.approx(0, abs=1e-6)
    assert memory.check() == []


def test_hidden_sources_hide_a_fact(open_memory, path, clock):
    from engram import Ledger

    memory = open_memory()
    source = memory.observe("told")
    memory.assert_fact("Ann", "likes", "tea", source=source)
    assert facts_of(memory, "tea") == ["Ann likes tea"]
    with Ledger(path, clock=clock) as ledger:
        ledger.hide(source)
        assert facts_of(memory, "tea") == []
        ledger.restore(source)
    assert facts_of(memory, "tea") == ["Ann likes tea"]


def test_a_forgotten_episode_has_only_its_own_facts_read_again(memory, monkeypatch):
    source, other = memory.observe("told", provenance="user"), memory.observe("heard")
    for number in range(20):
        memory.assert_fact("Ann", "knows", f"number {number}")
    memory.assert_fact("Ann", "likes", "tea", source=source)
    later = memory.assert_fact("Ann", "likes", "cake", source=source)
    facts_of(memory, "tea")
    read = []
    columns = FactSearch.columns

    def counted(self, *between):
        found = columns(self, *between)
        read.extend(found.keys.tolist())
        return found

    monkeypatch.setattr(FactSearch, "columns", counted)
    memory.forget(other)
    memory.forget_fact(later)
    assert facts_of(memory, "likes tea", 1) == ["Ann likes tea"]
    assert read == []
    memory.forget(source)
    assert facts_of(memory, "likes tea", 1, provenance="user") == ["Ann likes tea"]
    assert len(read) == 1


def test_the_recall_of_episodes_is_logged(memory):
    memory.observe("tea time")
    memory.recall_memories("tea")
    memory.assert_fact("Ann", "likes", "tea")
    memory.recall_memories("what tea")
    memory.recall_memories("who", kind="semantic")
    memory._store.flush()
    log = "SELECT query FROM recall_log ORDER BY id"
    with memory._store.reading():
        # With a fact among the results, the query would outlive the fact.
        assert memory._store._connection.execute(log).fetchall() == [("tea",), (None,)]


def test_it_works_encrypted_and_async(tmp_path):
    async def session() -> list[str]:
        where = tmp_path / "locked.engram"
        async with AsyncEngram(where, key="k", embedder=WordEmbedder()) as memory:
            await memory.observe_many([ObserveInput("nothing")])
            await memory.assert_fact("Ann", "likes", "tea")
            return said(await memory.recall_memories("Ann tea", 1))

    assert asyncio.run(session()) == ["Ann likes tea"]
    with Engram(tmp_path / "locked.engram", key="k", embedder=WordEmbedder()) as again:
        assert facts_of(again, "tea") == ["Ann likes tea"]
