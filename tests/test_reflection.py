"""Reflection: every episode is read once, by one window that is committed whole or not at all."""

from __future__ import annotations

import json
import math
import random
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from stand_ins import Clock

from engram import DecayConfig, ObserveInput, ReflectionRun, ReflectionThread
from engram.errors import Closed, FactIncomplete, InvalidArgument, InvalidType, LLMReplyError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AGENT = "agent://acme.example/planner"
FOREVER = DecayConfig(threshold=-10.0)


def fact(subject="Ann", predicate="lives in", value="Rome", **more):
    return {"subject": subject, "predicate": predicate, "object": value, **more}


class Model:
    """Answers each window with what `answer` makes of it, and notes what it was shown."""

    model_name = "model"

    def __init__(self, answer=lambda episodes: [], tokens=3):
        self.answer = answer
        self.tokens = tokens
        self.windows = []

    def extract_facts(self, episodes):
        self.windows.append([episode.content for episode in episodes])
        return self.answer(episodes), self.tokens

    def summarise(self, episodes):
        raise NotImplementedError

    @property
    def seen(self):
        return [content for window in self.windows for content in window]


def always(*facts):
    return Model(lambda episodes: [dict(one) for one in facts])


@pytest.fixture
def reflecting(open_memory):
    """Open a store whose episodes never fade."""

    def opened(llm=None, agent_id=None, **options):
        return open_memory(agent_id, llm=llm, decay_config=FOREVER, **options)

    return opened


def notes(memory, count, start=0, **options):
    return memory.observe_many([ObserveInput(f"note {start + n}", **options) for n in range(count)])


def rows(memory, sql):
    with memory._store.reading():
        return memory._store._connection.execute(sql).fetchall()


class TestWatermark:
    def test_a_backlog_is_read_whole_and_once(self, reflecting):
        """Weak spot 10: of 450 episodes 250 were lost."""
        model = Model()
        memory = reflecting(model)
        notes(memory, 450)
        run = memory.reflect()
        assert [len(window) for window in model.windows] == [200, 200, 50]
        assert model.seen == [f"note {n}" for n in range(450)]
        assert (run.episodes_processed, run.cost_tokens, run.model_used) == (450, 9, "model")
        assert memory.reflect().episodes_processed == 0
        assert len(model.windows) == 3
        assert memory.counts().reflections == 2

    def test_history_written_later_is_read_too(self, reflecting, clock):
        """Weak spot 11: what was dated before the last run was skipped."""
        model = Model()
        memory = reflecting(model)
        memory.observe("now")
        memory.reflect()
        clock.advance(days=1)
        memory.observe("long ago", timestamp=datetime(1999, 1, 1, tzinfo=UTC))
        memory.observe("to come", timestamp=NOW + timedelta(days=900))
        memory.reflect()
        assert model.windows == [["now"], ["long ago", "to come"]]

    def test_without_a_model_nothing_is_consumed(self, reflecting):
        """Weak spot 12: the window was marked done."""
        memory = reflecting()
        notes(memory, 3)
        run = memory.reflect()
        assert (run.episodes_processed, run.episodes_waiting, run.model_used) == (0, 3, None)
        assert memory.counts().reflections == 1
        model = Model()
        assert reflecting(model).reflect().episodes_processed == 3

    def test_without_a_model_it_still_fades_and_prunes(self, open_memory, clock):
        memory = open_memory()
        old = memory.observe("old")
        clock.advance(days=17)
        young = memory.observe("young")
        clock.advance(days=1)
        assert memory.reflect().pruned == [old]
        assert memory.get(young).importance_score == pytest.approx(0.5 * math.exp(-0.1))

    def test_instances_of_all_scopes_alternate(self, reflecting):
        """Weak spot 13: an unscoped run took any agent's run for its own watermark."""
        model, chance = Model(), random.Random(3)
        memories = {agent: reflecting(model, agent) for agent in ("a", "b", None)}
        written = []
        for turn in range(120):
            memory = memories[chance.choice(list(memories))]
            if chance.random() < 0.7:
                at = NOW - timedelta(days=chance.randrange(1000))
                memory.observe(f"note {turn}", timestamp=at)
                written.append(f"note {turn}")
            else:
                memory.reflect(window=chance.choice([1, 2, 200]))
        memories[None].reflect()
        assert Counter(model.seen) == Counter(written)

    def test_a_scoped_run_reads_its_own(self, reflecting):
        model = Model()
        a, b, everyone = (reflecting(model, agent) for agent in ("a", "b", None))
        for name, memory in (("a", a), ("b", b), ("nobody", everyone)):
            memory.observe(f"of {name}")
        assert a.reflect().episodes_processed == 1
        assert everyone.reflect().episodes_processed == 2
        assert model.windows == [["of a"], ["of nobody"], ["of b"]]
        assert b.reflect().episodes_processed == 0

    def test_what_is_written_during_the_run_waits_for_the_next(self, reflecting):
        def write_more(episodes):
            memory.observe("more")
            return []

        model = Model(write_more)
        memory = reflecting(model)
        memory.observe("first")
        assert memory.reflect().episodes_waiting == 1
        assert model.windows == [["first"]]

    def test_a_forgotten_newest_episode_does_not_let_others_through_twice(self, reflecting):
        model = Model()
        memory = reflecting(model)
        uid = notes(memory, 3)[-1]
        memory.reflect()
        memory.forget(uid)
        notes(memory, 2, start=3)
        memory.reflect()
        assert model.windows[1] == ["note 3", "note 4"]


class TestFailure:
    def test_windows_before_the_failed_one_stay(self, reflecting):
        def third_fails(episodes):
            if len(model.windows) == 3:
                raise ConnectionError
            return [fact(value=episodes[0].content)]

        model = Model(third_fails)
        memory = reflecting(model)
        notes(memory, 6)
        with pytest.raises(ConnectionError):
            memory.reflect(window=2)
        assert [f.object for f in memory.timeline("Ann")] == ["note 0", "note 2"]
        model.answer = lambda episodes: []
        run = memory.reflect(window=2)
        assert (run.episodes_processed, model.windows[3:]) == (2, [["note 4", "note 5"]])

    @pytest.mark.parametrize(
        "reply",
        [
            None,
            [],
            ("text", 1),
            ({"subject": "Ann"}, 1),
            (["text"], 1),
            ([fact(), {"subject": "Ann", "predicate": "is"}], 1),
            ([fact(value=None)], 1),
        ],
    )
    def test_a_malformed_reply_consumes_and_stores_nothing(self, reflecting, reply, tmp_path):
        model = Model()
        model.extract_facts = lambda episodes: reply
        log = tmp_path / "events"
        memory = reflecting(model, AGENT, events_path=log)
        notes(memory, 2)
        with pytest.raises(LLMReplyError) as caught:
            memory.reflect()
        assert "Ann" not in str(caught.value)
        assert memory.timeline("Ann") == []
        assert rows(memory, "SELECT count(*) FROM reflection")[0][0] == 0
        assert "reflection_run" not in log.read_text()
        memory._llm = Model()
        assert memory.reflect().episodes_processed == 2

    def test_a_missing_key_is_a_key_error(self, reflecting):
        memory = reflecting(always({"subject": "Ann"}))
        memory.observe("x")
        with pytest.raises(KeyError) as caught:
            memory.reflect()
        assert isinstance(caught.value, FactIncomplete)

    def test_a_failed_commit_leaves_no_line_in_the_log(self, reflecting, monkeypatch, tmp_path):
        """Weak spot 40: a rolled-back reflection left a false contradiction_found."""
        log = tmp_path / "events"
        memory = reflecting(always(fact()), AGENT, events_path=log)
        memory.observe("Ann moved to Rome")
        memory.reflect()
        memory._llm = always(fact(value="Oslo"))
        memory.observe("Ann moved to Oslo")
        lines = log.read_text()

        def full(*_):
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(memory._store.reflections, "note", full)
            with pytest.raises(OSError):  # noqa: PT011 - the one raised above
                memory.reflect()
        assert log.read_text() == lines
        assert [f.object for f in memory.timeline("Ann") if f.valid_to is None] == ["Rome"]
        assert memory.reflect().contradictions_resolved == 1

    def test_another_process_that_was_faster_wins(self, reflecting):
        """Both read the window; the second to commit discards what it paid for."""

        def be_late(episodes):
            other.reflect()
            return [fact(value="late")]

        other = reflecting(always(fact(value="fast")))
        memory = reflecting(Model(be_late, tokens=7))
        notes(memory, 2)
        run = memory.reflect()
        assert (run.episodes_processed, run.facts_extracted, run.cost_tokens) == (0, 0, 7)
        assert [f.object for f in memory.timeline("Ann")] == ["fast"]

    def test_an_episode_forgotten_meanwhile_leaves_no_fact(self, reflecting):
        def forget_one(episodes):
            if len(episodes) == 2:
                memory.forget(episodes[0].id)
            return [fact(value=episode.content) for episode in episodes]

        model = Model(forget_one)
        memory = reflecting(model)
        notes(memory, 2)
        assert memory.reflect().episodes_processed == 1
        assert model.windows == [["note 0", "note 1"], ["note 1"]]
        assert [f.object for f in memory.timeline("Ann")] == ["note 1"]

    def test_the_model_is_asked_outside_every_lock_and_transaction(self, reflecting):
        def use_the_store(episodes):
            done = threading.Thread(target=memory.observe, args=("from a thread",), daemon=True)
            done.start()
            done.join(10)
            assert not done.is_alive()
            other.observe("from another instance")
            return []

        other = reflecting(busy_timeout=0.0)
        memory = reflecting(Model(use_the_store))
        memory.observe("x")
        memory.reflect()
        assert memory.count() == 3

    def test_racing_calls_read_a_window_once(self, reflecting):
        inside, go = threading.Event(), threading.Event()

        def wait(episodes):
            inside.set()
            assert go.wait(10)
            return []

        model = Model(wait)
        memory = reflecting(model)
        notes(memory, 3)
        first = memory.reflect_async()
        assert inside.wait(10)
        second = memory.reflect_async()
        go.set()
        first.join(10)
        second.join(10)
        assert model.windows == [["note 0", "note 1", "note 2"]]
        assert (first.result.episodes_processed, second.result.episodes_processed) == (3, 0)


class TestFacts:
    def test_they_name_run_model_and_sources(self, reflecting, clock):
        memory = reflecting(always(fact(confidence=0.8, sources=[2])))
        _, second, _ = notes(memory, 3, provenance="user")
        clock.advance(hours=1)
        run = memory.reflect()
        assert isinstance(run, ReflectionRun)
        assert run.started_at == run.finished_at == clock.now
        (found,) = memory.timeline("Ann")
        assert (found.confidence, found.derived_from) == (0.8, [second])
        assert (found.extracted_by, found.valid_from, found.recorded_at) == (
            run.id,
            clock.now,
            clock.now,
        )
        why = memory.why(found.id)
        assert (why["model"], why["provenance"], why["extracted_by"]) == ("model", "user", run.id)

    @pytest.mark.parametrize(
        ("sources", "expected"),
        [
            ([3, 1, 3], [0, 2]),
            ([0, 4, -1, True, "2", None, 2.0], [1]),
            ("12", [1]),
            ([], [1]),
            (None, [1]),
            ({"a": 1}, [1]),
        ],
    )
    def test_sources(self, reflecting, sources, expected):
        """Counted from 1; without a good one, the episodes that name subject or object."""
        memory = reflecting(always(fact(sources=sources)))
        uids = memory.observe_many([ObserveInput(t) for t in ("tea", "ANN came", "milk")])
        memory.reflect()
        assert memory.timeline("Ann")[0].derived_from == [uids[at] for at in expected]

    def test_a_fact_that_nothing_names_is_from_the_whole_window(self, reflecting):
        memory = reflecting(always(fact()))
        uids = notes(memory, 3)
        memory.reflect()
        assert memory.timeline("Ann")[0].derived_from == uids

    def test_only_its_own_sources_count_for_trust(self, reflecting):
        answers = [fact("Ann", sources=[1]), fact("Bob", sources=[2]), fact("Eve", sources=[1, 2])]
        memory = reflecting(always(*answers))
        memory.observe("good", provenance="user")
        memory.observe("bad", provenance="external", quarantined=True)
        memory.reflect()
        found = {name: memory.timeline(name)[0] for name in ("Ann", "Bob", "Eve")}
        assert [found[name].quarantined for name in found] == [False, True, True]
        provenances = [memory.why(found[name].id)["provenance"] for name in found]
        assert provenances == ["user", "external", "external"]

    def test_only_its_own_sources_are_linked(self, reflecting):
        memory = reflecting(always(fact(confidence=0.6, sources=[2])))
        notes(memory, 3)
        memory.reflect()
        assert rows(memory, "SELECT episode, relation, weight FROM edge") == [
            (2, "mentions", 0.6),
            (2, "mentions", 0.6),
        ]

    def test_many_facts_over_many_episodes_make_few_edges(self, reflecting):
        """Weak spot 4: 200 episodes and 50 facts made 20,000 edges."""
        model = always(*(fact(f"person {n}", value=f"town {n}", sources=[n]) for n in range(1, 51)))
        memory = reflecting(model)
        notes(memory, 200)
        memory.reflect()
        assert rows(memory, "SELECT count(*) FROM edge") == [(100,)]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (math.nan, 0.5),
            (math.inf, 0.5),
            ("high", 0.5),
            (None, 0.5),
            (True, 0.5),
            (10**400, 0.5),
            ([], 0.5),
            (1.0, 0.95),
            (7, 0.95),
            (-3, 0.0),
            ("0.25", 0.25),
        ],
    )
    def test_odd_confidence(self, reflecting, value, expected):
        """Weak spot 22: NaN from a model blocked the window for ever."""
        memory = reflecting(always(fact(confidence=value)))
        memory.observe("x")
        assert memory.reflect().facts_extracted == 1
        assert memory.timeline("Ann")[0].confidence == expected
        assert memory.check() == []

    @pytest.mark.parametrize("tokens", [None, "many", -5, math.nan, 2**80])
    def test_odd_token_counts_do_no_harm(self, reflecting, tokens):
        memory = reflecting(Model(tokens=tokens))
        memory.observe("x")
        assert memory.reflect().cost_tokens in (0, 2**53 - 1)

    def test_terms_become_text(self, reflecting):
        memory = reflecting(always(fact(value=42), fact("  ", "is", "blank"), fact("\ud800", "b")))
        memory.observe("x")
        assert memory.reflect().facts_extracted == 2
        assert memory.timeline("Ann")[0].object == "42"
        assert len(memory.timeline("\ufffd")) == 1

    def test_a_fact_said_twice_is_one(self, reflecting):
        twice = [fact(sources=[1], confidence=0.2), fact(sources=[3], confidence=0.7)]
        memory = reflecting(always(*twice))
        uids = notes(memory, 3)
        assert memory.reflect().facts_extracted == 1
        (found,) = memory.timeline("Ann")
        assert (found.confidence, found.derived_from) == (0.7, [uids[0], uids[2]])


class TestConflict:
    def test_a_later_window_closes_what_it_contradicts(self, reflecting, tmp_path):
        log = tmp_path / "events"
        model = Model(lambda episodes: [fact(value=episodes[0].content)])
        memory = reflecting(model, AGENT, events_path=log)
        notes(memory, 2)
        run = memory.reflect(window=1)
        old, new = memory.timeline("Ann")
        assert run.contradictions_resolved == 1
        assert (old.superseded_by, new.superseded_by) == (new.id, None)
        events = [json.loads(line) for line in log.read_text().splitlines()]
        found, ended = events[-2:]
        assert (found["type"], found["severity"]) == ("contradiction_found", "medium")
        assert found["data"] == {"memory_id": new.id, "conflicting_memory_id": old.id}
        assert found["run_id"] == ended["run_id"] == run.id
        assert (ended["type"], ended["data"]) == (
            "reflection_run",
            {
                "reflection_run_id": run.id,
                "episodes_processed": 2,
                "facts_extracted": 2,
                "contradictions_resolved": 1,
            },
        )

    def test_the_same_again_is_agreement(self, reflecting, tmp_path):
        log = tmp_path / "events"
        memory = reflecting(always(fact()), AGENT, events_path=log)
        for _ in range(2):
            memory.observe("Ann is in Rome")
            run = memory.reflect()
        assert run.contradictions_resolved == 0
        assert [f.valid_to is None for f in memory.timeline("Ann")] == [False, True]
        assert "contradiction_found" not in log.read_text()

    def test_one_reply_may_say_many_things(self, reflecting):
        """Weak spot 25: "likes tea" and "likes coffee" in one batch left one of them."""
        memory = reflecting(always(fact("Ann", "likes", "tea"), fact("Ann", "likes", "coffee")))
        memory.observe("Ann likes tea and coffee")
        assert memory.reflect().contradictions_resolved == 0
        assert [f.valid_to for f in memory.timeline("Ann")] == [None, None]

    def test_an_agents_run_does_not_close_what_another_owns(self, reflecting):
        """Weak spot 24: B's extraction closed A's shared fact."""
        a = reflecting(None, "a")
        asserted = a.assert_fact("Ann", "lives in", "Rome")
        b = reflecting(always(fact(value="Oslo")), "b")
        b.observe("Ann lives in Oslo", quarantined=True)
        assert b.reflect().contradictions_resolved == 0
        assert [f.id for f in a.timeline("Ann") if f.valid_to is None] == [asserted]

    def test_facts_are_private_to_a_scoped_agent_unless_shared(self, reflecting):
        """Weak spot 24: extracted facts were always shared."""
        memories = {agent: reflecting(always(fact()), agent) for agent in ("a", "b", None)}
        a, b, everyone = memories.values()
        a.observe("x")
        a.reflect()
        assert (len(a.timeline("Ann")), len(b.timeline("Ann"))) == (1, 0)
        b.observe("x")
        b.reflect(shared=True)
        assert [f.agent_id for f in a.timeline("Ann")] == ["a", "b"]
        assert len(everyone.timeline("Ann")) == 2

    def test_an_unscoped_run_keeps_each_agents_facts_its_own(self, reflecting):
        a, b = reflecting(None, "a"), reflecting(None, "b")
        everyone = reflecting(Model(lambda episodes: [fact(value=episodes[0].content)]))
        for name, memory in (("a", a), ("b", b), ("nobody", everyone)):
            memory.observe(name)
        everyone.reflect()
        assert {f.object for f in a.timeline("Ann")} == {"a", "nobody"}
        assert {f.object for f in b.timeline("Ann")} == {"b", "nobody"}
        assert {(f.agent_id, f.shared) for f in everyone.timeline("Ann")} == {
            ("a", False),
            ("b", False),
            (None, True),
        }


class TestDryRun:
    def test_it_asks_nobody_changes_nothing_and_foretells_the_run(self, open_memory, clock):
        model = Model()
        memory = open_memory(llm=model)
        old = memory.observe("old")
        clock.advance(days=17)
        memory.observe("young")
        changes = memory._store._connection._connection.total_changes
        before = changes()
        run = memory.reflect(dry_run=True)
        assert (run.episodes_waiting, run.pruned, run.finished_at) == (2, [old], None)
        assert (model.windows, memory.count(), memory.counts().reflections) == ([], 2, 0)
        assert memory.get(old).importance_score == 1.0
        assert changes() == before
        run = memory.reflect()
        assert (run.episodes_processed, run.pruned) == (2, [old])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"dry_run": 1}, InvalidType),
        ({"window": 0}, InvalidArgument),
        ({"window": 10_001}, InvalidArgument),
        ({"window": 2.0}, InvalidType),
        ({"shared": None}, InvalidType),
    ],
)
def test_arguments_are_checked_before_anything_happens(reflecting, options, error):
    memory = reflecting(Model())
    memory.observe("x")
    with pytest.raises(error):
        memory.reflect(**options)
    if "dry_run" not in options:
        with pytest.raises(error):
            memory.reflect_async(**options)
    assert memory.counts().reflections == 0


class TestThread:
    def test_it_is_started_and_gives_the_run(self, reflecting):
        memory = reflecting(always(fact()))
        memory.observe("x")
        thread = memory.reflect_async()
        assert isinstance(thread, ReflectionThread)
        assert thread.daemon
        thread.join()
        assert thread.result.facts_extracted == 1

    def test_join_raises_what_the_run_raised(self, reflecting):
        memory = reflecting(always({}))
        memory.observe("x")
        thread = memory.reflect_async()
        for _ in range(2):
            with pytest.raises(FactIncomplete):
                thread.join()
        assert thread.result is None

    def test_join_with_a_timeout_returns(self, reflecting):
        go = threading.Event()
        memory = reflecting(Model(lambda episodes: [] if go.wait(10) else None))
        memory.observe("x")
        thread = memory.reflect_async()
        thread.join(0.0)
        assert thread.result is None
        go.set()
        thread.join()
        assert thread.result.episodes_processed == 1

    def test_closing_meanwhile_loses_nothing(self, reflecting):
        inside, go = threading.Event(), threading.Event()

        def wait(episodes):
            inside.set()
            assert go.wait(10)
            return []

        memory = reflecting(Model(wait))
        memory.observe("x")
        thread = memory.reflect_async()
        assert inside.wait(10)
        memory.close()
        go.set()
        with pytest.raises(Closed):
            thread.join()
        assert reflecting(Model()).reflect().episodes_processed == 1


class TestEvery:
    def test_it_is_off_until_asked_for(self, reflecting):
        model = Model()
        memory = reflecting(model)
        notes(memory, 50)
        assert model.windows == []

    def test_after_so_many_episodes(self, reflecting):
        model = Model()
        memory = reflecting(model)
        with memory.reflect_every(episodes=3) as automatic:
            notes(memory, 2)
            memory.assert_fact("Ann", "is", "here")
            automatic.wait()
            assert model.windows == []
            memory.observe("third")
            automatic.wait()
            assert [len(window) for window in model.windows] == [3]
            notes(memory, 7)
            automatic.wait()
            assert [len(window) for window in model.windows] == [3, 7]
        notes(memory, 9)
        automatic.wait()
        assert len(model.windows) == 2

    def test_after_a_quiet_while(self, reflecting, clock):
        model = Model()
        memory = reflecting(model)
        with memory.reflect_every(idle=3600) as automatic:
            for wait, expected in ((7200, 0), (None, 0), (3599, 0), (1, 1), (7200, 1)):
                if wait is None:
                    memory.observe("x")
                else:
                    clock.advance(seconds=wait)
                automatic.tick()
                automatic.wait()
                assert len(model.windows) == expected

    def test_one_at_a_time(self, reflecting):
        inside, go = threading.Event(), threading.Event()

        def wait(episodes):
            inside.set()
            assert go.wait(10)
            return []

        model = Model(wait)
        memory = reflecting(model)
        with memory.reflect_every(episodes=1) as automatic:
            memory.observe("first")
            assert inside.wait(10)
            notes(memory, 5)
            go.set()
            automatic.wait()
            assert len(model.windows) == 1
            memory.observe("last")
            automatic.wait()
        assert [len(window) for window in model.windows] == [1, 6]

    def test_a_failure_is_logged_by_name_and_tried_again(self, reflecting, clock, caplog):
        model = always({"subject": "secret"})
        memory = reflecting(model)
        with memory.reflect_every(episodes=2, idle=60) as automatic:
            notes(memory, 2)
            automatic.wait()
            # A page of the docs may have left OpenTelemetry set up, which has a log of its own.
            said = [r.getMessage() for r in caplog.records if r.name.startswith("engram")]
            assert said == ["an automatic reflection failed: FactIncomplete"]
            model.answer = lambda episodes: []
            clock.advance(seconds=61)
            automatic.tick()
            automatic.wait()
        assert memory.reflect().episodes_processed == 0
        assert len(model.windows) == 2

    def test_asking_again_takes_its_place_and_closing_ends_it(self, reflecting):
        model = Model()
        memory = reflecting(model)
        first = memory.reflect_every(episodes=1)
        second = memory.reflect_every(episodes=2)
        memory.observe("x")
        first.wait()
        assert model.windows == []
        memory.observe("y")
        second.wait()
        assert len(model.windows) == 1
        memory.close()
        second.observed(5)
        second.wait()
        assert len(model.windows) == 1

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({}, InvalidArgument),
            ({"episodes": 0}, InvalidArgument),
            ({"episodes": 1.5}, InvalidType),
            ({"idle": 0.0}, InvalidArgument),
            ({"idle": "1"}, InvalidType),
        ],
    )
    def test_arguments(self, memory, options, error):
        with pytest.raises(error):
            memory.reflect_every(**options)


def test_the_clock_of_the_store_is_the_only_one(reflecting):
    clock = Clock(datetime(2030, 5, 5, tzinfo=UTC))
    memory = reflecting(always(fact()), clock=clock)
    memory.observe("x")
    assert memory.reflect().finished_at == clock.now
    assert memory.counts().last_reflection == clock.now
