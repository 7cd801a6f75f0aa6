"""Tags that survivors have from what they absorbed go with it, whichever way it goes."""

from __future__ import annotations

import pytest
from files import every_byte
from imported import imported
from stand_ins import WordEmbedder

from engram import Engram
from engram.ledger import Ledger


def tags(memory, uid="a"):
    return memory.get(uid).tags


def merged(memory, **given):
    """Experiences of some tags, merged into "a"."""
    memory.import_experiences([imported(uid, tags=given[uid]) for uid in sorted(given)])
    return memory.consolidate().run_id


@pytest.mark.parametrize("way", ["delete", "forget"])
def test_an_erased_one_takes_along_what_only_it_brought(experiences, path, way):
    merged(experiences, a=("one",), b=("Mallory", "one"), c=("two",))
    assert tags(experiences) == ("one", "Mallory", "two")
    if way == "delete":
        experiences.delete("b")
    else:
        with Engram(path, embedder=WordEmbedder()) as memory:
            memory.forget("b")
    assert tags(experiences) == ("one", "two")
    assert [hit.id for hit in experiences.search("build", tags=["Mallory"]).hits] == []
    assert experiences.check() == []
    experiences.close()
    assert b"allory" not in every_byte(path)


@pytest.mark.parametrize("way", ["delete", "undo"])
def test_what_another_one_brings_too_stays_until_that_goes(experiences, path, way):
    run = merged(experiences, a=("one",), b=("two", "three"), c=("two",))
    if way == "delete":
        experiences.delete("b")
    else:
        with Ledger(path) as ledger:
            # Its own merge is not undone then.
            ledger.restore("c")
            ledger.set_status("c", "superseded")
        with experiences._store.writing():
            experiences._store._connection.execute(
                "UPDATE experience SET superseded_by = 'a' WHERE episode = 3"
            )
        assert experiences.undo(run) == 1
    assert tags(experiences) == ("one", "two")
    experiences.delete("c")
    assert tags(experiences) == ("one",)


def test_what_a_survivor_loses_its_own_survivor_loses(experiences):
    first = merged(experiences, a=("one",), b=("two",))
    experiences.import_experiences([imported("z", tags=("three",), score=0.9)])
    second = experiences.consolidate().run_id
    assert tags(experiences, "z") == ("three", "one", "two")
    assert experiences.undo(first) == 1
    assert tags(experiences, "z") == ("three", "one")
    assert tags(experiences) == ("one",)
    assert experiences.undo(second) == 1
    assert (tags(experiences, "z"), tags(experiences)) == (("three",), ("one",))


def test_undone_merges_take_nothing_more(experiences):
    run = merged(experiences, a=("one",), b=("two",))
    experiences.undo(run)
    experiences.store("the build fails", "clear the cache", "it passes", tags=["two"])
    assert tags(experiences) == ("one", "two")
    experiences.delete("b")
    assert tags(experiences) == ("one", "two")
