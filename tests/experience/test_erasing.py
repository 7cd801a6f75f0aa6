"""Erased is erased: whichever way it goes, what rests on it goes too, and no byte stays."""

from __future__ import annotations

import json

import pytest
from files import every_byte
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import NotFound
from engram.experience import ExperienceMemory, ImportedExperience

AGENT = "agent://acme.example/alice"
WAYS = ["delete", "forget", "forget_entity"]


class Store:
    """A store with a survivor, what it absorbed, insights and a child, and ways to erase."""

    def __init__(self, memory: ExperienceMemory, engram: Engram) -> None:
        self.memory, self.engram = memory, engram
        store = memory.store
        self.survivor = store("Quaggaplain here", "act", "res", tags=["Zebrawood"]).id
        self.absorbed = store("absorbed Okapitext", "act", "res", project="Gnuproject").id
        self.second = store("absorbed Bongotext", "other", "res").id
        self.kept = store("kept text", "act", "res").id
        self.imported("insight", "insight", source_ids=f"{self.survivor},{self.kept}")
        self.imported("deeper", "insight", source_ids="insight")
        self.imported("pattern", "pattern", source_ids=self.survivor)
        self.imported("child", "decision", parent_id=self.survivor)
        self.imported("orphan", "decision", parent_id="nobody")
        self.merge(self.absorbed, self.survivor)
        self.merge(self.second, self.absorbed)

    def imported(self, uid: str, memory_type: str, **more: str) -> None:
        record = ImportedExperience(
            id=uid,
            memory_type=memory_type,
            context=f"imported {uid}",
            action="",
            result="",
            score=0.0,
            created_at="2025-01-01T00:00:00Z",
            updated_at="2025-01-01T00:00:00Z",
            used_count=0,
            **more,
        )
        self.memory.import_experiences([record])

    def run(self, sql: str, *values: object) -> None:
        with self.memory._store.writing():
            self.memory._store._connection.execute(sql, values)

    def merge(self, absorbed: str, survivor: str) -> None:
        store = self.memory._store
        with store.writing():
            found = store.lifecycle.find(absorbed)
            store.lifecycle.set(
                found,
                absorbed,
                1,
                action="merge",
                reason="Kududetail",
                columns={"status": "superseded"},
            )
            store._connection.execute(
                "UPDATE experience SET superseded_by = (SELECT uid FROM episode WHERE id = ?)"
                " WHERE episode = ?",
                (store.episodes.key(survivor, None), found.key),
            )
            store._connection.execute(
                "INSERT INTO consolidation (uid, at) VALUES (?, 1)", (f"run {absorbed}",)
            )
            run = store._connection.last_id
            store._connection.execute(
                "INSERT INTO consolidation_step VALUES (NULL, ?, ?, 'merge', ?, 'Kududetail', 'me',"
                ' \'{"tags": ["Zebrawood"]}\', 1, NULL)',
                (f"step {absorbed}", run, json.dumps([survivor, absorbed])),
            )

    def left(self) -> list[str]:
        rows = self.memory._store._connection.execute(
            "SELECT content FROM episode ORDER BY id"
        ).fetchall()
        return [content.split("\n")[0] for (content,) in rows]

    def count(self, table: str) -> int:
        return self.memory._store._connection.execute(f"SELECT count(*) FROM {table}").get

    def erase(self, way: str) -> None:
        if way == "forget_entity":
            self.engram.forget_entity("Quaggaplain", content_sweep=True)
        else:
            getattr(self.memory if way == "delete" else self.engram, way)(self.survivor)


@pytest.fixture
def store(experiences, memory) -> Store:
    return Store(experiences, memory)


@pytest.mark.parametrize("way", WAYS)
def test_what_rests_on_it_goes_with_it(store, way):
    store.erase(way)
    assert store.left() == ["kept text", "imported pattern", "imported child", "imported orphan"]
    assert store.memory.get("child").parent_id is None
    assert store.memory.get("orphan").parent_id == "nobody"
    assert store.count("consolidation_step") == 0
    assert store.count("lifecycle_change") == 0
    for memory in (store.memory, store.engram):
        assert memory.check() == []


@pytest.mark.parametrize("way", WAYS)
def test_no_byte_of_it_stays(store, path, way):
    words = (b"Quaggaplain", b"Okapitext", b"Bongotext", b"Gnuproject", b"Zebrawood", b"zebrawood")
    words += (b"Kududetail", b"imported deeper")
    before = every_byte(path)
    assert all(word in before for word in words)
    store.erase(way)
    store.memory.close()
    store.engram.close()
    after = every_byte(path)
    assert [word for word in words if word in after] == []
    assert b"kept text" in after


def test_erasing_what_was_absorbed_leaves_the_survivor(store):
    store.memory.delete(store.absorbed)
    assert store.left()[:2] == ["Quaggaplain here", "kept text"]
    assert store.memory.get(store.survivor).id == store.survivor


def test_the_receipt_of_an_entity_counts_all(store):
    result = store.engram.forget_entity("Quaggaplain", content_sweep=True)
    assert result.episodes_deleted == 5
    assert result.episode_ids == [
        store.survivor,
        store.absorbed,
        store.second,
        "insight",
        "deeper",
    ]
    assert result.removed["experience"] == 5
    assert result.removed["consolidation_step"] == 2


def test_a_sweep_finds_names_beside_the_texts(experiences, memory):
    plain = {"memory_type": "decision", "context": "c", "action": "a", "result": "r"}
    more = {"score": 0.0, "created_at": "x", "updated_at": "y", "used_count": 0}
    records = [
        ImportedExperience(id="project", project="the gnu project", **plain, **more),
        ImportedExperience(id="sources", source_ids="x,GNU", **plain, **more),
        ImportedExperience(id="times", **plain, **(more | {"updated_at": "when gnu came"})),
        ImportedExperience(id="tag", tags=("Gnu",), **plain, **more),
        ImportedExperience(id="none", project="gnuish", **plain, **more),
    ]
    experiences.import_experiences(records)
    with experiences._store.writing():
        run = experiences._store._connection.execute
        run("INSERT INTO consolidation VALUES (1, 'run', 1)")
        for name, reason, who, before in (
            ("a", "of gnu", "me", "{}"),
            ("b", "of", "Gnu", "{}"),
            ("c", "of", "me", '{"tags": ["gnu"]}'),
            ("d", "of", "me", "{}"),
        ):
            run(
                "INSERT INTO consolidation_step VALUES"
                " (NULL, ?, 1, 'merge', '[]', ?, ?, ?, 1, NULL)",
                (name, reason, who, before),
            )
        run("INSERT INTO training_run (id, uid, started_at, finished_at) VALUES (1, 't', 0, 0)")
        run("INSERT INTO recommendation SELECT NULL, 1, id, 'merge', 'as gnu says' FROM episode")
        run("INSERT INTO metric VALUES (NULL, 1, 'gnu count', 1.0), (NULL, 1, 'count', 1.0)")
        run("INSERT INTO artifact VALUES (NULL, 1, '/home/gnu/m', 1, NULL)")
    result = memory.forget_entity("gnu", content_sweep=True)
    assert sorted(result.episode_ids) == ["project", "sources", "tag", "times"]
    assert [one.id for one in experiences.export()] == ["none"]
    assert result.removed["consolidation_step"] == 3
    assert (result.removed["recommendation"], result.removed["metric"]) == (5, 1)
    assert result.removed["artifact"] == 1
    assert memory.check() == []


def test_it_says_what_it_erased(path, clock, tmp_path):
    log = tmp_path / "events.jsonl"
    options = {"embedder": WordEmbedder(), "clock": clock}
    with (
        ExperienceMemory(path, events_path=log, agent_id=AGENT, **options) as memory,
        Engram(path, **options) as engram,
    ):
        store = Store(memory, engram)
        memory.delete(store.survivor)
        said = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    gone = [one["data"]["memory_id"] for one in said if one["type"] == "memory_forgotten"]
    assert gone == [store.survivor, store.absorbed, store.second, "insight", "deeper"]


def test_what_is_gone_is_not_there(experiences):
    with pytest.raises(NotFound):
        experiences.delete("nothing")
    uid = experiences.store("a", "b", "c").id
    experiences.delete(uid)
    for call in (experiences.delete, experiences.get):
        with pytest.raises(NotFound):
            call(uid)


def test_pruning_takes_what_rests_on_it(store, clock):
    clock.advance(days=5000)
    gone = store.engram.prune(threshold=2.0)
    assert set(gone) >= {store.survivor, store.absorbed, "insight", "deeper"}
    assert store.left() == []
    assert store.engram.check() == []
