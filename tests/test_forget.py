"""Forgetting: gone from every answer at once, and from every byte after a checkpoint."""

from __future__ import annotations

import pytest
from files import every_byte

from engram import FactResult, SearchResult
from engram.errors import InvalidArgument, InvalidType, NotFound


def test_a_forgotten_episode_is_in_no_answer(memory):
    kept, gone = memory.observe("keep the piano"), memory.observe("sell the piano", tags=["t"])
    memory.forget(gone)
    for mode in ("hybrid", "cosine"):
        assert [r.episode.id for r in memory.recall("sell piano", mode=mode)] == [kept]
    assert [e.id for e in memory.episodes().episodes] == [kept]
    assert (memory.count(), memory.count(tags=["t"])) == (1, 0)
    with pytest.raises(NotFound):
        memory.get(gone)
    with pytest.raises(KeyError):
        memory.forget(gone)
    assert memory.check() == []


@pytest.mark.parametrize("uid", ["", "nope", "00000000-0000-0000-0000-000000000000", "é", "\0"])
def test_an_unknown_id_is_not_found(memory, uid):
    for call in (memory.get, memory.forget):
        with pytest.raises(NotFound):
            call(uid)


@pytest.mark.parametrize("uid", [None, 5, b"x"])
def test_an_id_is_text(memory, uid):
    for call in (memory.get, memory.forget):
        with pytest.raises(InvalidType):
            call(uid)


def test_ids_are_never_used_again(memory):
    first = memory.observe("one")
    memory.forget(first)
    second = memory.observe("two")
    assert [r.episode.id for r in memory.recall("one two")] == [second]
    assert memory.check() == []


def test_nothing_of_it_stays_in_the_file(open_memory, path):
    memory = open_memory("a")
    text = "the canary Xylophone-Quetzalcoatl sings 暗号金糸雀暗号"
    uid = memory.observe(text, actors=["Hieronymus"], tags=["Ornithology"])
    memory.observe("an ordinary remark", actors=["Bob"], tags=["small talk"])
    # The query that found it is personal text as well, in the file and still waiting.
    memory.recall("where is Quetzalcoatl-questioned", 2)
    for _ in range(30):
        memory.recall("where is Quetzalcoatl-questioned", 2)
    memory.forget(uid)
    memory.close()
    left = every_byte(path)
    for trace in ("Xylophone", "xylophone", "Quetzalcoatl", "quetzalcoatl", "questioned",
                  "暗号", "金糸", "Hieronymus", "Ornithology"):  # fmt: skip
        assert trace.encode() not in left, trace
    assert b"ordinary remark" in left
    assert b"small talk" in left


def test_many_forgotten_among_many(memory):
    ids = [memory.observe(f"note number {n}") for n in range(200)]
    for uid in ids[::3] + ids[1::3]:
        memory.forget(uid)
    left = {r.episode.id for r in memory.recall("note number", 200)}
    assert left == set(ids[2::3])
    for uid in ids[2::3]:
        memory.forget(uid)
    assert memory.recall("note number") == []
    again = memory.observe("note number 1")
    assert [r.episode.id for r in memory.recall("note", 50, mode="cosine")] == [again]
    assert memory.check() == []


def test_a_recall_that_returned_nothing_else_is_not_logged(memory):
    uid = memory.observe("alone")
    memory.recall("alone")
    memory.forget(uid)
    memory.observe("next")
    for _ in range(60):
        memory.recall("next")
    logged = memory._store._connection.execute("SELECT count(*) FROM recall_log").get
    assert logged >= 50
    assert memory.check() == []


@pytest.mark.parametrize("way", ["forget_fact", "forget_entity", "forget"])
@pytest.mark.parametrize("flushed", [True, False])
def test_no_query_that_found_an_erased_fact_stays(open_memory, path, way, flushed):
    with open_memory() as memory:
        memory.observe("Ann and Bob played chess")
        source = memory.observe("a note")
        uid = memory.assert_fact("Bob", "has", "leukaemia", source=source)
        found = memory.recall_memories("who has leukaemia or played chess", k=9)
        assert {type(one) for one in found} == {SearchResult, FactResult}
        if flushed:
            memory._store.flush()
        if way == "forget_fact":
            memory.forget_fact(uid)
        elif way == "forget_entity":
            assert memory.forget_entity("Bob").wiped
        else:
            memory.forget(source)
            memory.forget_fact(uid)
        memory.recall("chess")
    assert b"leukaemia" not in every_byte(path)
    assert b"chess" in every_byte(path)


class TestMany:
    """`forget_many`: what is there, in one transaction."""

    def test_what_is_not_there_is_passed_over(self, open_memory, tmp_path):
        events = tmp_path / "events.ndjson"
        ann, bob = open_memory("ann", events_path=events), open_memory("bob")
        mine = [ann.observe(f"note {n}") for n in range(4)]
        his = bob.observe("his")
        assert ann.forget_many(iter([*mine[:3], mine[0], "none", his])) == 3
        assert ann.forget_many(mine[:3]) == 0
        assert ann.forget_many([]) == 0
        assert [e.id for e in ann.episodes().episodes] == [mine[3]]
        assert bob.get(his).content == "his"
        said = [line for line in events.read_text("utf-8").splitlines() if "forgotten" in line]
        assert [uid for line in said for uid in mine if uid in line] == mine[:3]
        assert ann.check() == []

    @pytest.mark.parametrize(
        ("wrong", "error"),
        [(5, InvalidType), (b"x", InvalidType), (None, InvalidType), ("\ud800", InvalidArgument)],
    )
    def test_one_refused_id_and_nothing_is_erased(self, memory, wrong, error):
        uid = memory.observe("x")
        with pytest.raises(error):
            memory.forget_many([uid, wrong])
        with pytest.raises(InvalidType):
            memory.forget_many(uid)
        assert memory.count() == 1

    def test_a_failure_leaves_all(self, memory, monkeypatch):
        ids = [memory.observe(f"note {n}") for n in range(5)]
        remove = memory._store.episodes.remove

        def fails(key: int) -> None:
            if memory._store.episodes.key(ids[3], None) == key:
                raise MemoryError
            remove(key)

        monkeypatch.setattr(memory._store.episodes, "remove", fails)
        with pytest.raises(MemoryError):
            memory.forget_many(ids)
        monkeypatch.undo()
        assert memory.count() == 5
        assert memory.check() == []
