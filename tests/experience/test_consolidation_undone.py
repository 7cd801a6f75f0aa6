"""Taking back what a consolidation did."""

from __future__ import annotations

import pytest
from advised import recommended
from hypothesis import given, settings
from hypothesis import strategies as st
from imported import FRESH, imported
from stand_ins import Clock, WordEmbedder

from engram.errors import NotFound
from engram.experience import ExperienceMemory
from engram.ledger import Ledger

OLD = "2025-01-01T00:00:00Z"


def test_a_survivor_gets_the_tags_until_that_is_undone(experiences):
    experiences.import_experiences(
        [imported("a", tags=("x", "y", "x")), imported("b", tags=("z", "y")), imported("c")]
    )
    run = experiences.consolidate().run_id
    assert experiences.get("a").tags == ("x", "y", "x", "z")
    assert [hit.id for hit in experiences.search("build", tags=["z"]).hits] == ["a"]
    assert experiences.undo(run) == 2
    assert experiences.get("a").tags == ("x", "y", "x")
    assert experiences.get("b").superseded_by is None
    assert [hit.id for hit in experiences.search("build", tags=["z"]).hits] == ["b"]


def test_what_changed_since_is_not_undone(experiences, path):
    experiences.import_experiences([imported(uid) for uid in "abcd"])
    run = experiences.consolidate().run_id
    with Ledger(path) as ledger:
        ledger.hide("b", reason="mine")
        ledger.restore("c")
    experiences.delete("d")
    assert experiences.undo(run) == 0
    assert [one.id for one in experiences.export()] == ["a", "c"]
    assert [step.memory_ids for step in experiences.consolidation_log()] == [("a", "c"), ("a", "b")]
    # What was restored stands for itself: it outlives what it was merged into.
    experiences.delete("a")
    assert [one.id for one in experiences.export()] == ["c"]
    with pytest.raises(NotFound):
        experiences.undo("nothing")


def test_an_undone_run_stays_undone(experiences):
    experiences.import_experiences([imported("m", created_at=OLD, score=0.0)])
    first = experiences.consolidate().run_id
    assert experiences.undo(first) == 1
    second = experiences.consolidate().run_id
    assert experiences.undo(first) == 0
    assert experiences.get("m").archived
    assert experiences.undo(second) == 1
    assert not experiences.get("m").archived


_WORDS = st.sampled_from(["alpha", "beta", "gamma", "delta", "7"])
_TEXTS = st.lists(_WORDS, max_size=3).map(" ".join)
_RECORDS = st.lists(
    st.builds(
        lambda texts, changes: (texts, changes),
        st.tuples(_TEXTS, _TEXTS, _TEXTS),
        st.fixed_dictionaries(
            {
                "score": st.sampled_from([0.0, 0.5]),
                "used_count": st.sampled_from([0, 0, 2]),
                "created_at": st.sampled_from([OLD, FRESH, "some day"]),
                "project": st.sampled_from([None, "web"]),
                "memory_type": st.sampled_from(["decision", "decision", "insight"]),
                "parent_id": st.sampled_from([None, None, "m0", "nobody"]),
                "tags": st.lists(st.sampled_from(["s", "t"]), max_size=3).map(tuple),
            }
        ),
    ),
    max_size=12,
)


def everything(memory: ExperienceMemory) -> tuple[object, ...]:
    searches = [("alpha", {}), ("beta gamma", {"tags": ["s"]}), ("7", {"project": "web"})]
    found = [memory.search(query, limit=50, **options).hits for query, options in searches]
    return memory.export(), found, memory.check()


@settings(max_examples=40)
@given(_RECORDS)
def test_what_was_done_and_undone_was_never_done(records):
    with ExperienceMemory(embedder=WordEmbedder(), clock=Clock()) as memory:
        memory.import_experiences(
            [imported(f"m{n}", *texts, **changes) for n, (texts, changes) in enumerate(records)]
        )
        before = everything(memory)
        seen = memory.preview()
        grouped = [
            uid
            for group in seen.duplicate_groups
            for uid in (group.primary_id, *group.duplicate_ids)
        ]
        assert len(grouped) == len(set(grouped))
        given_ = recommended(memory)
        done = memory.consolidate()
        assert done.errors == ()
        assert done.merged + done.archived + done.deleted == len(given_)
        hidden = set(given_)
        assert not hidden & {hit.id for hit in memory.search("alpha", limit=50).hits}
        assert memory.check() == []
        if done.run_id is None:
            assert given_ == {}
        else:
            assert memory.undo(done.run_id) == len(given_)
            assert memory.undo(done.run_id) == 0
        assert everything(memory) == before
        assert memory.preview() == seen
