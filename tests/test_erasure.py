"""`forget_entity`: everything of a person goes, everywhere, and the receipt says what."""

from __future__ import annotations

import json
import random
import re
import unicodedata

import numpy as np
import pytest
from files import every_byte
from stand_ins import WordEmbedder

from engram import ForgetResult, ObserveInput
from engram.errors import InvalidArgument, InvalidType
from engram.storage import NewEpisode, Store
from engram.storage.connection import Connection
from engram.storage.folding import folded, mentions


def remember_summary(memory, content: str, *, of: list[str], actors: tuple[str, ...] = ()) -> str:
    """Store what `compress` stores, with its sources still there."""
    embedder = WordEmbedder()
    now = memory._now()
    with memory._store.writing():
        [uid] = memory._store.add_episodes(
            [NewEpisode(content, now, actors=actors, summary_of=tuple(of))],
            embedder.embed([content]),
            np.array([1]),
            model=memory._store.model().id,
            agent=memory.agent_id,
            now=now,
        )
    return uid


def left(memory) -> list[str]:
    return sorted(e.content for e in memory.episodes(cross_agent=True, limit=1000).episodes)


def test_an_unknown_name_is_zeros(memory):
    memory.observe("kept", actors=["Ann"])
    result = memory.forget_entity("Ivan")
    assert result == ForgetResult("Ivan", 0, 0, wiped=True)
    assert left(memory) == ["kept"]


def test_it_reaches_every_agent_from_any_scope(open_memory):
    ann, bob, operator = open_memory("ann"), open_memory("bob"), open_memory()
    for memory in (ann, bob, operator):
        memory.observe("with Ivan", actors=["Ivan", "Ann"])
        memory.observe("without", actors=["Ivana"])
        memory.assert_fact("Ivan", "likes", "tea", shared=False)
        memory.assert_fact("Ann", "knows", "Ivan")
        memory.assert_fact("Ann", "likes", "tea")
    result = bob.forget_entity("Ivan")
    assert (result.episodes_deleted, result.facts_deleted) == (3, 6)
    assert left(operator) == ["without"] * 3
    assert operator.timeline("Ivan") == []
    assert [f.object for f in operator.timeline("Ann")] == ["tea"] * 3
    assert operator.check() == []


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("ivan", "IVAN"),
        ("Ivan  Petrov", " ivan petrov"),
        ("Zoë", unicodedata.normalize("NFD", "zoë")),
        ("STRASSE", "Straße"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("山田", "山田"),
    ],
)
def test_spellings_of_one_name_are_one(memory, asked, stored):
    memory.observe("x", actors=["Ann", stored])
    memory.assert_fact(stored, "is", "here")
    result = memory.forget_entity(asked)
    assert (result.episodes_deleted, result.facts_deleted) == (1, 1)
    assert result.entity == asked


@pytest.mark.parametrize("asked", ["Robert", "bob", "BOBBY"])
def test_aliases_stand_for_each_other(memory, asked):
    memory.add_alias("Robert", "Bob")
    memory.add_alias("Robert", "Bobby")
    memory.observe("one", actors=["Bob"])
    memory.observe("two", actors=["robert"])
    memory.observe("three", actors=["Rob"])
    memory.assert_fact("bobby", "likes", "tea")
    result = memory.forget_entity(asked)
    assert (result.episodes_deleted, result.facts_deleted) == (2, 1)
    assert (result.removed["entity"], result.removed["entity_alias"]) == (1, 2)
    assert left(memory) == ["three"]
    assert memory.counts().entities == 0


def test_edges_go_with_their_entity_and_their_episode(open_memory):
    memory = open_memory("ann")
    first, second = memory.observe("tea", actors=["Ivan"]), memory.observe("cake")
    graph = memory._store.graph
    with memory._store.writing():
        for uid in (first, second):
            key = memory._store.episodes.key(uid, None)
            for name in ("Ivan", "Tea"):
                graph.mention(key, graph.entity(name, 1), 0.5, "ann", 1)
    assert len(memory.recall("tea", mode="spreading")) == 2
    result = memory.forget_entity("Ivan")
    assert result.removed["edge"] == 3
    assert [r.episode.id for r in memory.recall("tea", mode="spreading")] == [second]
    with memory._store.reading():
        assert len(graph.edges(None).targets) == 1


def test_facts_left_without_a_source_go(memory):
    ivan, ann = memory.observe("x", actors=["Ivan"]), memory.observe("y", actors=["Ann"])
    alone = memory.assert_fact("sky", "is", "blue", source=ivan)
    memory.assert_fact("sky", "is", "high", source=ann)
    memory.assert_fact("sea", "is", "blue")
    memory.assert_fact("sea", "is", "deep", source="a book")
    named = memory.assert_fact("sea", "is", "wide", source="ivan")
    result = memory.forget_entity("Ivan")
    assert result.fact_ids == [alone, named]
    assert [f.object for f in memory.timeline("sky")] == ["high"]
    assert [f.object for f in memory.timeline("sea")] == ["blue", "deep"]
    # A fact whose source was forgotten earlier does not go because of that.
    memory.forget(ann)
    memory.observe("z", actors=["Ivan"])
    assert memory.forget_entity("Ivan").facts_deleted == 0


def test_summaries_of_what_goes_go_too(memory):
    ivan, ann = memory.observe("x", actors=["Ivan"]), memory.observe("y", actors=["Ann"])
    first = remember_summary(memory, "they met", of=[ivan, ann])
    second = remember_summary(memory, "a long week", of=[first])
    remember_summary(memory, "about Ann", of=[ann])
    fact = memory.assert_fact("week", "was", "long", source=second)
    result = memory.forget_entity("Ivan")
    assert result.episode_ids == [ivan, first, second]
    assert result.fact_ids == [fact]
    assert left(memory) == ["about Ann", "y"]


def test_a_summary_keeps_its_actors_and_is_found_by_them(memory):
    memory.observe("before")
    uid = remember_summary(memory, "an old week", of=["gone"], actors=("Ivan", "Ann"))
    assert memory.forget_entity("Ivan").episode_ids == [uid]


def test_mentions_stay_without_a_sweep_and_go_with_one(memory):
    mentioned = [
        memory.observe("Yesterday IVAN called."),
        memory.observe("met at ivan's place"),
        memory.observe("tagged", tags=["Ivan"]),
        memory.observe("noted", metadata={"who": "Ivan"}),
    ]
    kept = ["Ivanov called", "vivant", "the ivanhoe book"]
    memory.observe_many([ObserveInput(text) for text in kept])
    memory.assert_fact("Ann", "said", "that Ivan is late")
    memory.assert_fact("Ann", "reads", "Ivanhoe")
    assert memory.forget_entity("ivan").episodes_deleted == 0
    result = memory.forget_entity("ivan", content_sweep=True)
    assert result.episode_ids == mentioned
    assert result.facts_deleted == 1
    assert left(memory) == sorted(kept)
    assert memory.check() == []


@pytest.mark.parametrize(
    ("name", "text", "contained"),
    [
        ("Ivan", "(Ivan)", True),
        ("Ivan Petrov", "ivan\n petrov was here", True),
        ("Ivan Petrov", "Petrov, Ivan", False),
        ("C++", "we talked about c++.", True),
        ("C++", "the c language", False),
        ("++", "a++b", True),
        ("山田", "昨日山田さんと話した", True),
        ("田", "昨日山田さんと話した", True),
        ("राम", "राम आया", True),
        ("राम", "रामायण", False),
        ("Zoë", "with zoe\u0308 there", True),
        ("Zoë", "with zoe there", False),
        ("Ivan", "ivan\u0301", False),
        ("O'Neil", "ask O'Neil", True),
        ("Mr. X", "as mr. x said", True),
        ("ΣΊΣΥΦΟΣ", "ο Σίσυφος έσπρωχνε", True),
    ],
)
def test_a_sweep_finds_names_as_words_in_any_script(memory, name, text, contained):
    assert mentions(text, [folded(name)]) is contained
    memory.observe(text)
    result = memory.forget_entity(name, content_sweep=True)
    assert result.episodes_deleted == contained


def test_the_words_found_through_the_index_are_all_there_are(memory):
    """The index only narrows the search: reading every text finds the same."""
    chance = random.Random(5)
    parts = [
        "ivan",
        "Ivan",
        "IVANA",
        "山田",
        "さん",
        "Zoë",
        "zoe\u0308",
        "-",
        "'s",
        " ",
        " ",
        ".",
        "é",
    ]
    texts = ["".join(chance.choices(parts, k=8)) for _ in range(400)]
    ids = memory.observe_many([ObserveInput(text) for text in texts])
    for name in ("Ivan", "山田", "zoë", "é"):
        expected = [i for i, t in zip(ids, texts, strict=True) if mentions(t, [folded(name)])]
        result = memory.forget_entity(name, content_sweep=True)
        assert result.episode_ids == expected
        kept = [(i, t) for i, t in zip(ids, texts, strict=True) if i not in set(expected)]
        ids, texts = [i for i, _ in kept], [t for _, t in kept]


def test_queries_about_them_go(open_memory):
    memory = open_memory("ann")
    memory.observe("the safe", actors=["Ivan"])
    memory.observe("the garden")
    for query in ("where is the safe", "what does ivan like in the garden"):
        for _ in range(40):
            memory.recall(query, 1)
    memory.recall("garden plants", 1)
    memory._store.flush()
    memory.recall("where is the safe", 1)
    memory.recall("ivan waits in memory", 1)
    result = memory.forget_entity("Ivan")
    assert result.removed["query"] == 80
    memory._store.flush()
    with memory._store.reading():
        queries = memory._store._connection.execute(
            "SELECT DISTINCT query FROM recall_log ORDER BY query"
        ).fetchall()
    assert queries == [(None,), ("garden plants",)]


def test_a_query_that_waits_in_another_process_goes_as_well(open_memory):
    memory, other = open_memory(), open_memory()
    memory.observe("the safe", actors=["Ivan"])
    other.recall("Quetzalcoatl-questioned", 1)
    memory.forget_entity("Ivan")
    other._store.flush()
    with memory._store.reading():
        assert memory._store._connection.execute("SELECT count(query) FROM recall_log").get == 0


def test_the_receipt_counts_what_each_table_lost(memory):
    ids = memory.observe_many(
        [ObserveInput(f"note {n}", actors=["Ivan", "Ann"], tags=["t"]) for n in range(3)]
    )
    memory.observe("other", tags=["t"])
    fact = memory.assert_fact("Ivan", "likes", "tea", source=ids[0])
    memory.recall("note", 2, mode="cosine")
    memory._store.flush()
    assert memory.forget_entity("Ivan") == ForgetResult(
        entity="Ivan",
        episodes_deleted=3,
        facts_deleted=1,
        episode_ids=ids,
        fact_ids=[fact],
        removed={
            "episode": 3,
            "episode_label": 9,
            "label": 2,
            "embedding": 3,
            "turn": 3,
            "access_log": 2,
            "fact": 1,
            "fact_source": 1,
            "query": 1,
        },
        wiped=True,
    )


def test_events_come_after_the_commit_episodes_first(open_memory, tmp_path):
    log = tmp_path / "events.ndjson"
    memory = open_memory("agent://test/ann", events_path=log)
    fact = memory.assert_fact("Ivan", "likes", "tea")
    episode = memory.observe("x", actors=["Ivan"])
    memory.forget_entity("IVAN")
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(e["type"], e["data"]) for e in events[2:]] == [
        ("memory_forgotten", {"memory_id": episode, "kind": "episodic", "entity": "IVAN"}),
        ("memory_forgotten", {"memory_id": fact, "kind": "semantic", "entity": "IVAN"}),
    ]


@pytest.mark.parametrize(
    ("name", "error"),
    [("", InvalidArgument), (" \n", InvalidArgument), (None, InvalidType), (b"x", InvalidType)],
)
def test_names_that_are_refused(memory, name, error):
    memory.observe("x", actors=["", " "])
    with pytest.raises(error):
        memory.forget_entity(name, content_sweep=True)
    with pytest.raises(InvalidType):
        memory.forget_entity("x", content_sweep=1)
    assert memory.count() == 1


TRACES = ("Xylophone", "xylophone", "Quetzalcoatl", "questioned", "Hieronymus", "hieronymus",
          "暗号", "金糸", "Ornithology", "Nickname")  # fmt: skip


@pytest.mark.parametrize("key", [None, "pass"])
def test_no_byte_of_them_is_left_while_the_store_is_open(open_memory, path, key):
    memory, other = open_memory("ann", key=key), open_memory("bob", key=key)
    for writer in (memory, other):
        writer.observe_many(
            [
                ObserveInput(f"Xylophone-Quetzalcoatl {n} 暗号金糸雀", actors=["Hieronymus"],
                             tags=["Ornithology"], metadata={"k": "Xylophone"})
                for n in range(30)
            ]
        )  # fmt: skip
        writer.assert_fact("Hieronymus", "plays", "Xylophone")
        writer.observe("an ordinary remark", actors=["Bob"])
        for _ in range(30):
            writer.recall("Xylophone questioned", 3)
    memory.add_alias("Hieronymus", "Nickname")
    assert memory.forget_entity("nickname").wiped
    content = every_byte(path)
    for trace in TRACES:
        assert trace.encode() not in content, trace
    assert (b"ordinary remark" in content) == (key is None)
    # What others still had waiting does not bring it back.
    other.close()
    memory.close()
    content = every_byte(path)
    for trace in TRACES:
        assert trace.encode() not in content, trace


def test_a_reader_in_the_way_is_said(open_memory):
    memory, other = open_memory(busy_timeout=0.05), open_memory()
    memory.observe("x", actors=["Ivan"])
    with other._store.reading():
        other._store.counts(None)
        memory.observe("y")
        assert memory.forget_entity("Ivan").wiped is False
        assert memory.wipe() is False
    assert memory.wipe() is True
    assert memory.forget_entity("Ivan").wiped is True


def test_a_reader_in_the_way_is_waited_for_once(open_memory, monkeypatch):
    memory, other = open_memory(busy_timeout=0.05), open_memory()
    memory.observe("x", actors=["Ivan"])
    waited = []

    def checkpoint(connection):
        waited.append(moved(connection))
        return waited[-1]

    moved = Connection.checkpoint
    monkeypatch.setattr(Connection, "checkpoint", checkpoint)
    with other._store.reading():
        other._store.counts(None)
        assert memory.forget_entity("Ivan").wiped is False
        memory.close()
    assert waited == [False]


@pytest.mark.parametrize(("again", "attempts"), [(False, 1), (True, 2)])
def test_closing_waits_no_second_time_for_who_is_in_the_way(
    open_memory, monkeypatch, again, attempts
):
    memory, other = open_memory(busy_timeout=0.05), open_memory()
    memory.observe("x", actors=["Ivan"])
    later = memory.observe("y")
    tried = []

    def wipe(store):
        tried.append(store)
        return wiped(store)

    wiped = Store.wipe
    monkeypatch.setattr(Store, "wipe", wipe)
    with other._store.reading():
        other._store.counts(None)
        assert memory.forget_entity("Ivan").wiped is False
        if again:
            memory.forget(later)
        memory.close()
    assert len(tried) == attempts
    assert other.wipe() is True  # The mark is in the file, for whoever comes next.


@pytest.mark.parametrize("others", [20, 3000])
def test_many_go_as_cleanly_as_few(memory, path, others):
    """A large share has the index rebuilt, a small one is taken out of it."""
    memory.observe_many([ObserveInput(f"plain note {n}") for n in range(others)])
    memory.observe_many([ObserveInput(f"Xylophone {n}", actors=["Hieronymus"]) for n in range(150)])
    assert memory.forget_entity("Hieronymus").episodes_deleted == 150
    assert memory.check() == []
    assert len(memory.recall("plain", 4000, min_score=0.1)) == others
    content = every_byte(path)
    assert b"ylophone" not in content
    assert b"Hieronymus" not in content


def test_erasing_again_and_again_leaves_no_byte(open_memory, path):
    # SQLite leaves a copy where it moves a row, about once in 300 of these.
    chance, memory = random.Random(4), open_memory("eraser")
    alive: list[str] = []
    for number in range(250):
        if len(alive) > 2 and chance.random() < 0.5:
            gone = alive.pop(chance.randrange(len(alive)))
            assert memory.forget_entity(gone.upper()).wiped
            left = set(re.findall(rb"person\d+z", every_byte(path)))
            assert left <= {name.encode() for name in alive}
            continue
        person = f"person{number}z"
        memory.observe_many(
            [ObserveInput(f"{person} was here {n}", [person], [f"t{person}"]) for n in range(12)]
        )
        alive.append(person)


def test_the_mark_of_an_erasure_outlives_the_process_and_goes_with_the_rebuilding(open_memory):
    memory, other = open_memory(), open_memory()

    def due():
        return other._store._connection.execute("SELECT count(*) FROM store").get

    memory.forget(memory.observe("tea"))
    assert due() == 1
    memory.close()
    assert due() == 0
    other.forget(other.observe("tea"))
    other.compact()
    assert due() == 0


def test_a_large_store_says_that_it_is_not_wiped(memory, monkeypatch):
    monkeypatch.setattr("engram.storage.store_file.REBUILT_BELOW", 0)
    memory.observe("tea", actors=["Ann"])
    assert not memory.forget_entity("Ann").wiped
    monkeypatch.undo()
    memory.observe("tea", actors=["Bob"])
    assert memory.forget_entity("Bob").wiped
