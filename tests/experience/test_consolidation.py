"""What consolidation finds, what it recommends, what it does, and that all of it can be undone."""

from __future__ import annotations

import pytest
from advised import recommended
from imported import FRESH, imported
from stand_ins import WordEmbedder

from engram import Engram
from engram.errors import InvalidArgument, InvalidType, NotFound
from engram.ledger import Ledger

OLD = "2025-01-01T00:00:00Z"


def test_equal_ones_are_one_group_however_many(experiences):
    experiences.import_experiences([imported(f"m{n}") for n in range(6)])
    seen = experiences.preview()
    [group] = seen.duplicate_groups
    assert (seen.duplicates, seen.stale, seen.garbage) == (1, 0, 0)
    assert (group.primary_id, group.duplicate_ids) == ("m0", ("m1", "m2", "m3", "m4", "m5"))
    assert (group.similarity, group.match_type) == (1.0, "exact")
    analysis = experiences.analyse()
    assert analysis.analyzed_count == 6
    assert {one.confidence for one in analysis.recommendations} == {0.6}
    assert all("heuristic" in one.reasoning for one in analysis.recommendations)
    assert experiences.consolidate().merged == 5
    assert [one.id for one in experiences.export()] == ["m0"]
    assert experiences.preview().duplicates == 0


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"score": 0.6}, {"score": 0.5, "used_count": 9, "created_at": OLD}),
        ({"used_count": 2}, {"used_count": 1, "created_at": OLD}),
        ({"created_at": OLD}, {"created_at": FRESH}),
        ({}, {}),
    ],
    ids=["score", "use", "age", "id"],
)
@pytest.mark.parametrize("first", ["better", "worse"])
def test_the_better_one_survives(experiences, better, worse, first):
    names = ("a", "b") if better == worse or first == "better" else ("b", "a")
    pair = [imported(names[0], **better), imported(names[1], **worse)]
    experiences.import_experiences(pair if first == "better" else pair[::-1])
    [advice] = experiences.analyse().recommendations
    assert advice.action == {"type": "merge", "source_id": names[0], "target_id": names[1]}
    experiences.consolidate()
    assert experiences.get(names[1]).superseded_by == names[0]


@pytest.mark.parametrize(
    "others",
    [
        [("the cat", "the dog", "the bird"), ("the sun", "the moon", "the star")],
        [("pay", "pay", "pay"), ("pay now", "pay bill", "pay rent")],
        [("pay now", "pay now", "pay now"), ("pay later", "pay later", "pay later")],
        [
            ("one long context for both", "pay now", "ok"),
            ("one long context for both", "pay up", "ok"),
        ],
        [("build 1041 fails", "clear it", "fine"), ("build 1042 fails", "clear it", "fine")],
        [("", "clear it", "fine"), ("the build fails", "clear it", "fine")],
        [("\N{FIRE}", "clear it", "fine"), ("\N{SNOWMAN}", "clear it", "fine")],
    ],
)
def test_what_only_shares_some_words_stays(opened, others):
    """Embeddings that take everything for the same do not change that."""

    class Same(WordEmbedder):
        def vector(self, text):
            return super().vector("same")

    memory = opened(embedder=Same())
    for texts in others:
        memory.store(*texts, threshold=1.0)
    assert memory.preview().duplicates == 0
    assert memory.consolidate().merged == 0
    assert memory.consolidation_log() == []


def test_alike_ones_are_merged_into_the_one_they_are_like(experiences):
    texts = [
        ("the nightly build of the service fails", "clear the cache of the runner", "it passes"),
        ("nightly build of the service fails", "clear the cache of the runner", "it passes"),
        ("the nightly build of the service fails", "clear the cache of runner", "it passes"),
        ("the weekly report is late", "ask for it on monday", "it came"),
    ]
    ids = [experiences.store(*one, threshold=1.0).id for one in texts]
    [group] = experiences.preview().duplicate_groups
    assert (group.primary_id, set(group.duplicate_ids)) == (ids[0], set(ids[1:3]))
    assert group.match_type == "similar"
    assert 0.9 <= group.similarity < 1
    assert experiences.preview(similarity=1.0).duplicates == 0
    assert experiences.consolidate().merged == 2


def test_without_vectors_nearly_every_word_must_be_shared(opened):
    memory = opened(embedder=Down())
    words = [f"word{chr(97 + n)}" for n in range(20)]
    memory.import_experiences(
        [
            imported("a", " ".join(words)),
            imported("b", " ".join(words[1:])),
            imported("c", " ".join(words[4:])),
        ]
    )
    [group] = memory.preview().duplicate_groups
    assert (group.primary_id, group.duplicate_ids, group.similarity) == ("a", ("b",), 0.95)


class Down(WordEmbedder):
    def embed(self, texts):
        message = "out of order"
        raise RuntimeError(message)


def test_who_where_and_what_kind_keep_equal_texts_apart(opened):
    everyone, ana = opened(), opened("ana")
    everyone.import_experiences(
        [
            imported("plain"),
            imported("elsewhere", project="web"),
            imported("otherwise", memory_type="antipattern"),
            imported("learned", memory_type="insight"),
            imported("learned too", memory_type="insight"),
        ]
    )
    ana.import_experiences([imported("hers")])
    assert everyone.preview().duplicates == 0
    ana.import_experiences([imported("hers too")])
    assert everyone.preview().duplicates == ana.preview().duplicates == 1
    assert opened("ben").preview().duplicates == 0


def test_what_is_hidden_or_quarantined_is_left_alone(experiences, path, opened):
    experiences.import_experiences([imported(f"m{n}", created_at=OLD, score=0.1) for n in range(5)])
    with Ledger(path) as ledger:
        ledger.hide("m0")
        ledger.set_status("m1", "archived")
        ledger.invalidate("m2")
        ledger.set_status("m3", "superseded")
    seen = experiences.preview()
    assert (seen.duplicates, seen.stale_ids) == (0, ("m4",))


@pytest.mark.parametrize(
    ("changes", "stale"),
    [
        ({"score": 0.29, "created_at": OLD}, True),
        ({"score": 0.3, "created_at": OLD}, False),
        ({"score": -1.0, "created_at": OLD}, True),
        ({"score": 0.0, "created_at": OLD, "used_count": 1}, False),
        ({"score": 0.0, "created_at": "2025-10-03T00:00:00Z"}, False),
        ({"score": 0.0, "created_at": "2025-10-02T23:59:59Z"}, True),
        ({"score": 0.0, "created_at": "2025-10-03T01:00:00+02:00"}, True),
        ({"score": 0.0, "created_at": "some day"}, False),
        ({"score": 0.0, "created_at": OLD, "memory_type": "insight"}, False),
    ],
)
def test_what_is_stale(experiences, changes, stale):
    experiences.import_experiences([imported("m", **changes)])
    assert experiences.preview().stale_ids == (("m",) if stale else ())
    assert experiences.preview(stale_days=0, min_score=0.0).stale == (changes["score"] < 0)


def test_the_stale_are_archived_once_and_for_good(experiences, opened):
    experiences.import_experiences([imported("m", created_at=OLD, score=0.0)])
    [advice] = experiences.analyse().recommendations
    assert advice.action == {"type": "archive", "memory_id": "m"}
    assert (advice.confidence, advice.reasoning.startswith("stale")) == (0.9, True)
    done = experiences.consolidate()
    assert (done.archived, done.merged, done.deleted) == (1, 0, 0)
    experiences.maintain()
    again = opened()
    for memory in (experiences, again):
        assert memory.preview().stale == 0
        assert memory.consolidate().run_id is None
        assert memory.search("build").hits == []
        assert memory.get("m").archived
    assert [one.id for one in again.export()] == ["m"]


def test_a_parent_that_is_missing_makes_garbage_until_it_comes(experiences):
    experiences.import_experiences(
        [
            imported("child", "first", parent_id="parent"),
            imported("lost", "second", parent_id="nobody"),
        ]
    )
    assert experiences.preview().garbage_ids == ("child", "lost")
    experiences.import_experiences([imported("parent", "third")])
    assert experiences.preview().garbage_ids == ("lost",)
    [advice] = experiences.analyse().recommendations
    assert advice.action == {"type": "delete", "memory_id": "lost"}
    assert (advice.confidence, advice.reasoning.startswith("garbage")) == (0.95, True)
    assert experiences.consolidate().deleted == 1
    with pytest.raises(NotFound):
        experiences.get("lost")
    assert {one.id for one in experiences.export()} == {"child", "parent"}
    assert experiences.preview().garbage == 0


def test_nothing_is_recommended_two_things(experiences):
    both = {"created_at": OLD, "score": 0.0, "parent_id": "nobody"}
    experiences.import_experiences(
        [imported("a", **both), imported("b", **both), imported("c", "alone", **both)]
    )
    seen = experiences.preview()
    assert (seen.stale_ids, seen.garbage_ids) == (("a", "b", "c"), ("a", "b", "c"))
    given_ = recommended(experiences)
    assert {uid: one.action["type"] for uid, one in given_.items()} == {
        "b": "merge",
        "c": "delete",
    }


def test_the_less_sure_is_left_out(experiences):
    experiences.import_experiences(
        [
            imported("a"),
            imported("b"),
            imported("old", "old thing", created_at=OLD, score=0.0),
            imported("lost", "lost thing", parent_id="nobody"),
        ]
    )
    rehearsal = experiences.consolidate(dry_run=True)
    assert (rehearsal.merged, rehearsal.archived, rehearsal.deleted) == (1, 1, 1)
    assert rehearsal.run_id is None
    assert experiences.consolidation_log() == []
    for least, expected in (
        (0.95, (0, 0, 1)),
        (0.9, (0, 1, 0)),
        (0.61, (0, 0, 0)),
        (0.6, (1, 0, 0)),
    ):
        done = experiences.consolidate(min_confidence=least)
        assert (done.merged, done.archived, done.deleted) == expected


def test_the_log_names_what_was_done(experiences, clock):
    experiences.import_experiences(
        [imported("a"), imported("b"), imported("lost", "lost thing", parent_id="nobody")]
    )
    run = experiences.consolidate(performed_by="somebody").run_id
    newest, oldest = experiences.consolidation_log()
    assert (newest.action, newest.memory_ids) == ("delete", ("lost",))
    assert (oldest.action, oldest.memory_ids) == ("merge", ("a", "b"))
    for step in (newest, oldest):
        assert (step.run_id, step.performed_by, step.performed_at) == (run, "somebody", FRESH)
        assert (bool(step.reason), step.undone) == (True, False)
    assert experiences.consolidation_log(1) == [newest]
    assert experiences.consolidation_log(0) == []
    # Two runs in one second, and two kinds of steps, are told apart.
    experiences.undo(run)
    second = experiences.consolidate().run_id
    log = experiences.consolidation_log()
    assert len({step.id for step in log}) == 4
    assert [(step.run_id, step.undone) for step in log] == [(second, False)] * 2 + [(run, True)] * 2


def test_an_agent_sees_and_undoes_its_own_steps(opened):
    everyone, ana, ben = opened(), opened("ana"), opened("ben")
    ana.import_experiences([imported("a1"), imported("a2")])
    ben.import_experiences([imported("b1"), imported("b2")])
    run = everyone.consolidate().run_id
    assert [step.memory_ids for step in ana.consolidation_log()] == [("a1", "a2")]
    assert ana.undo(run) == 1
    assert ben.get("b2").superseded_by == "b1"
    with pytest.raises(NotFound):
        opened("eva").undo(run)


def test_erasing_a_memory_erases_its_steps(experiences, path):
    experiences.import_experiences([imported("a"), imported("b", tags=("Mallory",))])
    experiences.consolidate()
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.forget("a")
        assert memory.check() == []
    assert experiences.consolidation_log() == []
    assert experiences.export() == []
    experiences.close()
    assert b"Mallory" not in path.read_bytes()


@pytest.mark.parametrize(
    ("call", "options", "name"),
    [
        ("preview", {"stale_days": -1}, "stale_days"),
        ("preview", {"stale_days": 3651}, "stale_days"),
        ("analyse", {"min_score": 1.1}, "min_score"),
        ("analyse", {"min_score": float("nan")}, "min_score"),
        ("consolidate", {"min_confidence": -0.1}, "min_confidence"),
        ("consolidate", {"similarity": 2}, "similarity"),
        ("consolidate", {"performed_by": " "}, "performed_by"),
        ("consolidation_log", {"limit": -1}, "limit"),
    ],
)
def test_arguments_are_checked_and_named(experiences, call, options, name):
    with pytest.raises(InvalidArgument, match=name):
        getattr(experiences, call)(**options)


def test_types_are_checked(experiences):
    for call, argument in (("preview", {"stale_days": 1.5}), ("undo", {"run_id": 1})):
        with pytest.raises(InvalidType, match=next(iter(argument))):
            getattr(experiences, call)(**argument)
