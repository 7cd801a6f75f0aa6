"""What consolidation finds, what it recommends, what it does, and that all of it can be undone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imported import FRESH, imported
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.errors import InvalidArgument, InvalidType, LLMCallError, NotFound
from engram.experience import ExperienceMemory
from engram.ledger import Ledger
from engram.llm import StubLLMAdapter

OLD = "2025-01-01T00:00:00Z"


def recommended(memory, **options):
    """What is recommended, by the memory it is about."""
    found = memory.analyse(**options).recommendations
    named = [one.action.get("memory_id") or one.action["target_id"] for one in found]
    assert len(named) == len(set(named))
    return dict(zip(named, found, strict=True))


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


# With a language model


def three(memory: ExperienceMemory) -> None:
    memory.import_experiences([imported(uid, tags=(uid,)) for uid in "abc"])


def test_a_language_model_decides(opened):
    memory = opened(llm=StubLLMAdapter(duplicates=True))
    three(memory)
    analysis = memory.analyse()
    assert analysis.analyzed_count == 3
    assert {one.confidence for one in analysis.recommendations} == {0.8}
    doubting = opened(llm=StubLLMAdapter(duplicates=False))
    kept = recommended(doubting)
    assert {uid: one.action for uid, one in kept.items()} == {
        uid: {"type": "keep", "memory_id": uid} for uid in "bc"
    }
    done = doubting.consolidate(min_confidence=0.7)
    assert (done.kept, done.merged, done.run_id) == (2, 0, None)
    assert doubting.consolidate(min_confidence=0.71).kept == 0
    assert memory.consolidate().merged == 2


@pytest.mark.parametrize(
    ("failure", "said"),
    [(LLMCallError("it is down"), "it is down"), (RuntimeError("secret"), "RuntimeError")],
)
def test_a_language_model_that_fails_leaves_the_pair_alone(opened, failure, said):
    class Failing(StubLLMAdapter):
        def are_duplicates(self, first, second):
            if second.id == "b":
                raise failure
            return True, 0

    memory = opened(llm=Failing())
    three(memory)
    analysis = memory.analyse()
    assert analysis.analyzed_count == 2
    assert [one.action["target_id"] for one in analysis.recommendations] == ["c"]
    assert analysis.errors == (f"analyze b->a: [2002] llm api unavailable: {said}",)
    done = memory.consolidate()
    assert (done.merged, done.errors) == (1, analysis.errors)


def test_a_language_model_that_cannot_compare_is_not_asked(opened):
    class Older:
        model_name = "older"

        def extract_facts(self, episodes):
            raise AssertionError

        def summarise(self, episodes):
            raise AssertionError

    memory = opened(llm=Older())
    three(memory)
    assert {one.confidence for one in memory.analyse().recommendations} == {0.6}


def test_a_language_model_is_asked_so_often_at_most(opened):
    class Counting(StubLLMAdapter):
        asked = 0

        def are_duplicates(self, first, second):
            self.asked += 1
            return True, 0

    llm = Counting()
    memory = opened(llm=llm)
    memory.import_experiences([imported(f"m{n:03}") for n in range(210)])
    done = memory.consolidate()
    assert (llm.asked, done.merged) == (200, 200)
    [error] = done.errors
    assert error.startswith("analyze ")
    assert re.search(r"\b9\b", error)
    assert memory.consolidate().merged == 9


def test_others_read_and_write_while_a_language_model_thinks(opened):
    class Busy(StubLLMAdapter):
        def are_duplicates(self, first, second):
            other = opened(busy_timeout=0.0)
            other.store("meanwhile", "something", f"else {second.id}")
            memory.store("meanwhile too", "something", f"different {second.id}")
            return True, 0

    memory = opened(llm=Busy(), busy_timeout=0.0)
    three(memory)
    assert memory.consolidate().merged == 2
    assert len(memory.export()) == 5


@pytest.mark.parametrize("change", ["delete", "hide", "judge"])
def test_what_changes_while_it_is_analysed_is_left_alone(opened, path, change):
    class Meddling(StubLLMAdapter):
        def are_duplicates(self, first, second):
            other = opened()
            if change == "delete":
                other.delete("a")
            elif change == "judge":
                other.judge("old", score=0.9)
            else:
                with Ledger(path) as ledger:
                    ledger.hide("b")
            return True, 0

    memory = opened(llm=Meddling())
    memory.import_experiences(
        [imported("a"), imported("b"), imported("old", "a thing", score=0.0, created_at=OLD)]
    )
    done = memory.consolidate()
    if change == "judge":
        assert (done.merged, done.archived) == (1, 0)
        assert done.errors == ("apply old: it changed meanwhile",)
    else:
        assert (done.merged, done.archived) == (0, 1)
        assert done.errors == ("apply b: it changed meanwhile",)


# Whatever the store

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
