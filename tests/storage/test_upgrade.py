"""Stores of before the lists of projects: brought up to date, and while others have them open."""

from __future__ import annotations

import json

import pytest
from older import older
from stand_ins import Clock, WordEmbedder

from engram import Engram, ObserveInput
from engram.errors import StoreTooNew
from engram.ledger import Ledger
from engram.storage import EpisodeFilter, ownership


@pytest.fixture
def before_lists(monkeypatch):
    """Be an engram of before version 3 for a while."""
    return lambda: older(monkeypatch, 2)


def opened(path):
    return Engram(path, embedder=WordEmbedder(), clock=Clock())


METADATA = [
    {"project_path": "/p/a"},
    {"project_root": "/p/a/"},
    {"project_path": "/p/a", "project_root": "/p/b"},
    {"project_path": None},
    {"project_path": "/p/b"},
    {"other": 1},
    None,
]


@pytest.fixture
def old_store(path, before_lists):
    """A store of version 2 with a fact from the episodes 0 and 1, and one from 0 and 4."""
    with before_lists(), opened(path) as memory:
        ids = memory.observe_many([ObserveInput(f"note {n}") for n in range(len(METADATA))])
        with memory._store.writing():
            run = memory._store._connection.execute
            for number, metadata in enumerate(METADATA, start=1):
                run(
                    "UPDATE episode SET metadata = ? WHERE id = ?",
                    (metadata and json.dumps(metadata), number),
                )
            for fact, sources in ((1, (1, 2)), (2, (1, 5))):
                run(
                    "INSERT INTO fact (id, uid, subject, predicate, object, valid_from,"
                    " recorded_at) VALUES (?1, 'f' || ?1, 'Ann', 'drinks', 'tea', 0, 0)",
                    (fact,),
                )
                for place, episode in enumerate(sources):
                    run(
                        "INSERT INTO fact_source VALUES (?, ?, NULL, ?, 'user')",
                        (fact, place, episode),
                    )
                memory._store.changed("assert", fact, fact, 0)
    return ids


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_an_upgrade_decides_whose_the_memories_are(path, old_store, monkeypatch, block):
    monkeypatch.setattr(ownership, "_BLOCK", block)
    with Ledger(path, clock=Clock()) as ledger:
        assert {one.id for one in ledger.recent("/p/a")} == {*old_store[:2], "fact:f1"}
        assert [one.id for one in ledger.recent("/p/b")] == [old_store[4]]
        assert ledger.recent("/p") == []
    with opened(path) as memory:
        assert memory.check() == []
        conflicts = memory._store._connection.execute(
            "SELECT id FROM episode WHERE project_conflict ORDER BY id"
        ).fetchall()
        assert conflicts == [(3,), (4,)]


def test_an_upgrade_that_fails_leaves_the_old_store(path, old_store, before_lists, monkeypatch):
    def fail(*_):
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(ownership.Projects, "fill", fail)
        with pytest.raises(OSError):  # noqa: PT011 - the one raised above
            opened(path)
    with before_lists(), opened(path) as memory:
        assert memory.get(old_store[0]).content == "note 0"
    with opened(path) as memory:
        assert memory.check() == []


def test_an_older_engram_that_has_the_store_open_writes_no_more(path, before_lists):
    """It would erase memories and leave them in the lists."""
    with before_lists():
        older = opened(path)
        uid = older.observe("from the past")
    with opened(path) as newer, Ledger(path) as ledger:
        kept = newer.remember("kept for a project", project="/p")
        with before_lists():
            for write in (
                lambda: older.forget(kept),
                lambda: older.observe("too late"),
                lambda: ledger.hide(uid),
            ):
                with pytest.raises(StoreTooNew, match="upgrade"):
                    write()
            assert older.get(uid).content == "from the past"
            older.close()
        assert [one.id for one in ledger.recent("/p")] == [kept]
        assert newer.count() == 2
        assert newer.check() == []


def test_an_upgrade_knows_old_tags_in_any_case(path, monkeypatch):
    with older(monkeypatch, 3), opened(path) as memory:
        ids = [memory.observe("note", tags=[tag]) for tag in ("Straße", "other", "STRASSE")]
    with opened(path) as memory:
        memory.observe("note", tags=["strasse"])
        with memory._store.reading():
            found = memory._store.episodes.matching(EpisodeFilter(any_case_tags=("Strasse",)))
            index = memory._current_index()
            index.refresh()
            assert index.allows(EpisodeFilter(any_case_tags=("Strasse",)), found).all()
            episodes = memory._store.episodes.fetch(found)
        assert [one.id for one in episodes[:2]] == [ids[0], ids[2]]
        assert len(episodes) == 3
        assert memory.check() == []
