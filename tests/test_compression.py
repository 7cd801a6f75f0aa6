"""Compression: a summary takes the place of its sources, or nothing happens at all."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta

import pytest
from files import every_byte
from stand_ins import WordEmbedder

from engram import CompressionRun, ObserveInput
from engram.errors import InvalidArgument, InvalidType, LLMReplyError
from engram.experience import ExperienceMemory
from engram.ledger import Ledger
from engram.models import least_trusted

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AGENT = "agent://acme.example/planner"


class Model:
    """Summarises by counting, and notes what it was shown."""

    model_name = "model"

    def __init__(self, answer=lambda episodes: f"{len(episodes)} things happened", tokens=5):
        self.answer = answer
        self.tokens = tokens
        self.batches = []

    def summarise(self, episodes):
        self.batches.append([episode.content for episode in episodes])
        return self.answer(episodes), self.tokens

    def extract_facts(self, episodes):
        return [{"subject": "Ann", "predicate": "is", "object": "here", "sources": [1]}], 1


def faded(memory, clock, count=5, **options):
    """Observe episodes that are of little importance by the time this returns."""
    uids = memory.observe_many([ObserveInput(f"note {n}", **options) for n in range(count)])
    clock.advance(days=10)
    return uids


def summaries(memory):
    return memory.episodes(tags=["summary"], newest_first=False).episodes


class TestSummary:
    def test_it_takes_the_place_of_what_has_faded(self, open_memory, clock):
        model = Model()
        memory = open_memory("a", llm=model)
        uids = faded(memory, clock)
        kept = memory.observe("fresh")
        run = memory.compress(max_episodes=0, batch_size=2)
        assert run == CompressionRun(5, 3, "model", 15)
        assert model.batches == [["note 0", "note 1"], ["note 2", "note 3"], ["note 4"]]
        assert [e.summary_of for e in summaries(memory)] == [uids[:2], uids[2:4], uids[4:]]
        assert memory.count() == 4
        assert memory.get(kept)
        hits = memory.recall("things happened", 9)
        assert {hit.episode.content for hit in hits} >= {"2 things happened", "1 things happened"}
        assert memory.check() == []

    def test_oldest_events_come_first(self, open_memory, clock):
        model = Model()
        memory = open_memory(llm=model)
        for days in (3, 1, 2, 3):
            memory.observe(f"{days} days ago", timestamp=NOW - timedelta(days=days))
        clock.advance(days=10)
        memory.compress(max_episodes=0, batch_size=3)
        assert model.batches == [["3 days ago", "3 days ago", "2 days ago"], ["1 days ago"]]

    def test_it_is_as_the_least_of_its_sources(self, open_memory, clock):
        """Weak spot 28: summaries lost their actors, so erasing a person did not find them."""
        memory = open_memory("a", llm=Model())
        items = [
            ObserveInput("1", ["Ann", "Bob"], ["x"], 0.3, 0.5, NOW - timedelta(3), "user"),
            ObserveInput("2", ["Cy", "Ann"], ["y"], 0.4, -0.5, NOW - timedelta(1), "tool"),
            ObserveInput("3", [], [], 0.2, 0.0, NOW - timedelta(2), "user", quarantined=True),
        ]
        memory.observe_many(items)
        clock.advance(days=10)
        memory.compress(max_episodes=0)
        (found,) = summaries(memory)
        assert found.actors == ["Ann", "Bob", "Cy"]
        assert found.tags == ["summary"]
        assert (found.salience, found.timestamp) == (0.4, NOW - timedelta(1))
        assert found.provenance == least_trusted(["user", "tool"]) == "tool"
        assert (found.quarantined, found.agent_id, found.importance_score) == (True, "a", 1.0)
        assert memory.count(actors=["Cy"]) == 1

    def test_a_summary_is_never_summarised_again(self, open_memory, clock):
        model = Model()
        memory = open_memory(llm=model)
        faded(memory, clock)
        memory.compress(max_episodes=0)
        clock.advance(days=100)
        assert memory.compress(max_episodes=0) == CompressionRun(0, 0)
        assert len(model.batches) == 1

    def test_it_survives_the_pruning_that_follows(self, open_memory, clock):
        memory = open_memory(llm=Model())
        faded(memory, clock)
        clock.advance(days=30)
        memory.compress(max_episodes=0)
        assert memory.prune() == []
        assert len(summaries(memory)) == 1

    def test_it_decays_first(self, open_memory, clock):
        """Weak spot 28: importance from whenever decay last ran decided."""
        memory = open_memory(llm=Model())
        faded(memory, clock)
        assert memory.compress(max_episodes=0).episodes_removed == 5

    def test_text_that_is_no_unicode_is_mended(self, open_memory, clock):
        memory = open_memory(llm=Model(lambda episodes: " a \ud800 b "))
        faded(memory, clock)
        memory.compress(max_episodes=0)
        assert summaries(memory)[0].content == "a \ufffd b"


class TestNothingToDo:
    def test_without_a_model(self, memory, clock):
        uids = faded(memory, clock)
        assert memory.compress(max_episodes=0) == CompressionRun(0, 0, None, 0)
        assert memory.get(uids[0]).importance_score == 1.0

    def test_until_there_are_more_than_max_episodes(self, open_memory, clock):
        model = Model()
        a, b = open_memory("a", llm=model), open_memory("b")
        faded(b, clock)
        faded(a, clock)
        assert a.compress(max_episodes=5) == CompressionRun(0, 0)
        assert model.batches == []
        assert a.compress(max_episodes=4).episodes_removed == 5

    def test_when_all_is_important(self, open_memory, clock):
        model = Model()
        memory = open_memory(llm=model)
        faded(memory, clock)
        assert memory.compress(max_episodes=0, importance_threshold=0.0) == CompressionRun(0, 0)
        assert model.batches == []


class TestAllOrNothing:
    @pytest.mark.parametrize("summary", ["", " \n\t", None, b"x", 5])
    def test_a_blank_summary_is_refused(self, open_memory, clock, summary):
        """Weak spot 28: the originals were deleted for an empty episode."""
        memory = open_memory(llm=Model(lambda episodes: summary))
        uids = faded(memory, clock)
        with pytest.raises(LLMReplyError) as caught:
            memory.compress(max_episodes=0)
        assert "note" not in str(caught.value)
        assert [e.id for e in memory.episodes(newest_first=False).episodes] == uids

    def test_batches_before_the_failed_one_stay(self, open_memory, clock):
        def second_fails(episodes):
            if len(model.batches) == 2:
                raise TimeoutError
            return "a summary"

        model = Model(second_fails)
        memory = open_memory(llm=model)
        faded(memory, clock)
        with pytest.raises(TimeoutError):
            memory.compress(max_episodes=0, batch_size=2)
        assert (memory.count(), len(summaries(memory))) == (4, 1)

    def test_a_failed_commit_leaves_the_sources(self, open_memory, clock, monkeypatch, tmp_path):
        """Weak spot 28: it was not one transaction."""
        log = tmp_path / "events"
        memory = open_memory(AGENT, llm=Model(), events_path=log)
        uids = faded(memory, clock)
        lines = log.read_text()

        def full(*_, **__):
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(memory._store, "add_episodes", full)
            with pytest.raises(OSError):  # noqa: PT011 - the one raised above
                memory.compress(max_episodes=0)
        assert [e.id for e in memory.episodes(newest_first=False).episodes] == uids
        assert log.read_text() == lines
        assert memory.check() == []

    def test_a_source_forgotten_meanwhile_makes_its_summary_worthless(
        self, open_memory, clock, path
    ):
        """It may quote what was erased."""

        def forget_one(episodes):
            if len(model.batches) == 1:
                other.forget(episodes[1].id)
                return f"summary of {episodes[1].content} Xylophone"
            return "a summary"

        model = Model(forget_one)
        memory, other = open_memory(llm=model), open_memory()
        uids = faded(memory, clock)
        run = memory.compress(max_episodes=0, batch_size=3)
        assert run == CompressionRun(2, 1, "model", 10)
        left = [e.id for e in memory.episodes(newest_first=False).episodes]
        assert left[:2] == [uids[0], uids[2]]
        memory.close()
        other.close()
        assert b"Xylophone" not in every_byte(path)

    def test_hidden_memories_are_not_read_and_stay(self, open_memory, clock, path):
        model = Model()
        memory = open_memory(llm=model)
        uids = faded(memory, clock)
        with Ledger(path, clock=clock) as ledger:
            ledger.hide(uids[1])
            ledger.set_status(uids[2], "challenged")
            ledger.invalidate(uids[3])
            memory.compress(max_episodes=0)
            assert model.batches == [["note 0", "note 4"]]
            for uid in uids[1:4]:
                ledger.restore(uid)
        assert {e.id for e in memory.episodes().episodes} >= set(uids[1:4])
        assert memory.check() == []

    def test_experiences_keep_their_parts(self, open_memory, clock, path):
        model = Model()
        memory = open_memory(llm=model)
        faded(memory, clock, 2)
        with ExperienceMemory(path, embedder=WordEmbedder(), clock=clock) as experiences:
            kept = experiences.store("context", "action", "result").id
            clock.advance(days=10)
            memory.compress(max_episodes=0)
            assert model.batches == [["note 0", "note 1"]]
            assert experiences.get(kept).action == "action"

    def test_a_source_hidden_meanwhile_is_not_erased(self, open_memory, clock, path):
        def hide_one(episodes):
            if len(model.batches) == 1:
                ledger.hide(episodes[0].id)  # of this batch, whose summary is in the making
                ledger.hide(uids[4])  # of the next one
            return "a summary"

        model = Model(hide_one)
        memory = open_memory(llm=model)
        uids = faded(memory, clock, count=6)
        with Ledger(path, clock=clock) as ledger:
            assert memory.compress(max_episodes=0, batch_size=2).summaries_created == 1
            assert model.batches == [["note 0", "note 1"], ["note 2", "note 3"]]
            ledger.restore(uids[0])
            ledger.restore(uids[4])
        kept = {e.content for e in memory.episodes().episodes}
        assert kept == {"note 0", "note 1", "note 4", "note 5", "a summary"}

    def test_another_instance_that_was_faster_wins(self, open_memory, clock):
        def be_late(episodes):
            other.compress(max_episodes=0)
            return "late"

        memory, other = open_memory(llm=Model(be_late)), open_memory(llm=Model())
        faded(memory, clock)
        assert memory.compress(max_episodes=0) == CompressionRun(0, 0, "model", 5)
        assert [e.content for e in summaries(memory)] == ["5 things happened"]

    def test_the_model_is_asked_outside_every_transaction(self, open_memory, clock):
        def observe(episodes):
            other.observe("meanwhile")
            return "a summary"

        memory, other = open_memory(llm=Model(observe)), open_memory(busy_timeout=0.0)
        faded(memory, clock)
        assert memory.compress(max_episodes=0).summaries_created == 1

    def test_sources_are_in_no_byte(self, open_memory, clock, path):
        memory = open_memory(llm=Model())
        memory.observe("Xylophone-canary")
        clock.advance(days=10)
        memory.compress(max_episodes=0)
        memory.close()
        assert b"ylophone" not in every_byte(path)


class TestScope:
    def test_only_its_own(self, open_memory, clock):
        a, b = open_memory("a", llm=Model()), open_memory("b")
        kept = faded(b, clock)
        faded(a, clock)
        a.compress(max_episodes=0)
        assert [e.id for e in b.episodes(newest_first=False).episodes] == kept

    def test_an_unscoped_call_never_mixes_two_agents(self, open_memory, clock):
        model = Model()
        a, b, everyone = open_memory("a"), open_memory("b"), open_memory(llm=model)
        for memory in (a, b, everyone):
            faded(memory, clock, 2)
        assert everyone.compress(max_episodes=0).summaries_created == 3
        assert [len(batch) for batch in model.batches] == [2, 2, 2]
        assert len(summaries(a)) == len(summaries(b)) == 1
        assert {e.agent_id for e in summaries(everyone)} == {"a", "b", None}


def test_facts_of_the_sources_keep_their_provenance(open_memory, clock):
    """Weak spot 28: facts pointed at episodes that were gone; forgetting must not launder."""
    memory = open_memory("a", llm=Model())
    memory.observe("Ann is here", provenance="external", quarantined=True)
    memory.reflect()
    clock.advance(days=10)
    memory.compress(max_episodes=0)
    (found,) = memory.timeline("Ann")
    why = memory.why(found.id)
    assert (why["provenance"], why["quarantined"], why["extracted_from"]) == ("external", True, [])
    assert memory.check() == []


def test_events(open_memory, clock, tmp_path):
    log = tmp_path / "events"
    memory = open_memory(AGENT, llm=Model(), events_path=log)
    uids = faded(memory, clock, 2)
    memory.compress(max_episodes=0)
    (summary,) = summaries(memory)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(e["type"], e["data"]) for e in events[2:]] == [
        ("memory_written", {"memory_id": summary.id, "kind": "episodic"}),
        *(
            (
                "memory_forgotten",
                {"memory_id": uid, "kind": "episodic", "replaced_by": summary.id},
            )
            for uid in uids
        ),
    ]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_episodes": -1}, InvalidArgument),
        ({"max_episodes": 1.0}, InvalidType),
        ({"importance_threshold": math.nan}, InvalidArgument),
        ({"importance_threshold": "0.3"}, InvalidType),
        ({"batch_size": 0}, InvalidArgument),
        ({"batch_size": True}, InvalidType),
    ],
)
def test_arguments_are_checked_before_anything_happens(memory, options, error):
    with pytest.raises(error):
        memory.compress(**options)
