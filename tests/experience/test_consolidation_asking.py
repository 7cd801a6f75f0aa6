"""Consolidation with a language model, which is asked while others read and write."""

from __future__ import annotations

import re

import pytest
from advised import recommended
from imported import imported

from engram.errors import LLMCallError
from engram.experience import ExperienceMemory
from engram.ledger import Ledger
from engram.llm import StubLLMAdapter

OLD = "2025-01-01T00:00:00Z"


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


@pytest.mark.parametrize(
    ("change", "left_alone", "merged", "archived"),
    [
        ("delete a", ["b"], 0, 1),
        ("hide b", ["b"], 0, 1),
        ("judge a", ["b"], 0, 1),
        ("judge b", ["b"], 0, 1),
        ("use b", ["b"], 0, 1),
        ("judge old", ["old"], 1, 0),
        ("use old", ["old"], 1, 0),
    ],
)
def test_what_changes_while_it_is_analysed_is_left_alone(
    opened, path, change, left_alone, merged, archived
):
    what, uid = change.split()

    class Meddling(StubLLMAdapter):
        def are_duplicates(self, first, second):
            other = opened()
            if what == "delete":
                other.delete(uid)
            elif what == "judge":
                # Still stale, or the worse one, but somebody saw it.
                other.judge(uid, score=0.2)
            elif what == "use":
                assert other.store(*texts[uid], threshold=1.0).id == uid
            else:
                with Ledger(path) as ledger:
                    ledger.hide(uid)
            return True, 0

    # The same words in another order are alike, and not the same to the byte.
    texts = {
        "a": ("the build fails", "clear cache", "passes"),
        "b": ("fails the build", "clear cache", "passes"),
        "old": ("a thing", "to do", "some day"),
    }
    stale = {"score": 0.0, "created_at": OLD}
    memory = opened(llm=Meddling())
    memory.import_experiences(
        [
            imported("a", *texts["a"], used_count=5),
            imported("b", *texts["b"]),
            imported("old", *texts["old"], **stale),
        ]
    )
    done = memory.consolidate()
    assert (done.merged, done.archived) == (merged, archived)
    assert done.errors == tuple(f"apply {one}: it changed meanwhile" for one in left_alone)
    assert memory.consolidate(dry_run=True).errors == ()
