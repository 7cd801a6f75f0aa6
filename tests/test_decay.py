"""Decay and pruning: the formula, its columns, and what is never deleted."""

from __future__ import annotations

import json
import math
import random
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from files import every_byte
from stand_ins import Clock

from engram import DecayConfig, ObserveInput
from engram.cognition import fading
from engram.errors import InvalidArgument, InvalidType
from engram.importance import compute_importance
from engram.ledger import Ledger
from engram.storage.importance import Importance

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AGENT = "agent://acme.example/planner"


def importance(memory, uid):
    return memory.get(uid).importance_score


def logged(memory):
    with memory._store.reading():
        return memory._store._connection.execute("SELECT count(*) FROM recall_log").get


class TestFormula:
    @pytest.mark.parametrize(
        ("salience", "valence", "days", "accesses", "expected"),
        [
            (0.5, 0.0, 0, 0, 0.5),
            (1.0, 0.0, math.log(2) / 0.1, 0, 0.5),
            (0.0, -1.0, 3, 0, -0.1),
            (1.0, 1.0, 0, 9, 1.0 + 0.2 * math.log(10) + 0.1),
            (0.8, 0.0, -5, 0, 0.8),
        ],
    )
    def test_values(self, salience, valence, days, accesses, expected):
        last = NOW - timedelta(days=days)
        found = compute_importance(salience, valence, last, accesses, NOW, DecayConfig())
        assert found == pytest.approx(expected, abs=1e-9)

    def test_naive_times_are_utc(self):
        naive = NOW.replace(tzinfo=None)
        assert compute_importance(0.5, 0.0, naive, 0, NOW, DecayConfig()) == 0.5
        assert compute_importance(0.5, 0.0, NOW, 0, naive, DecayConfig()) == 0.5

    @pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
    def test_lambda_that_would_poison_decay_is_refused(self, value):
        with pytest.raises(InvalidArgument):
            DecayConfig(lambda_=value)

    @pytest.mark.parametrize("name", ["alpha", "beta", "threshold"])
    def test_weights_are_finite_numbers(self, name):
        with pytest.raises(InvalidArgument):
            DecayConfig(**{name: math.nan})
        with pytest.raises(InvalidType):
            DecayConfig(**{name: "1"})


class TestDecay:
    def test_an_empty_store_has_nothing_to_update(self, memory):
        assert memory.decay() == 0

    def test_untouched_importance_is_one(self, memory):
        assert importance(memory, memory.observe("x")) == 1.0

    def test_equals_the_plain_function_for_random_stores(self, open_memory, monkeypatch):
        """Columns, slices and folded recalls give what the formula gives one by one."""
        monkeypatch.setattr(fading, "SLICE", 7)
        monkeypatch.setattr(fading, "RECALLS_KEPT", 3)
        monkeypatch.setattr(fading, "FOLDED_AT_ONCE", 2)
        chance, clock = random.Random(5), Clock()
        config = DecayConfig(lambda_=0.05, alpha=0.3, beta=0.2)
        memory = open_memory("a", clock=clock, decay_config=config)
        items = [
            ObserveInput(
                f"word{n}",
                salience=chance.random(),
                emotional_valence=chance.uniform(-1, 1),
                timestamp=NOW - timedelta(days=chance.uniform(0, 40)),
            )
            for n in range(40)
        ]
        uids = memory.observe_many(items)
        accesses = {uid: [] for uid in uids}
        for turn in range(15):
            clock.advance(hours=5)
            for hit in memory.recall(f"word{chance.randrange(40)}", 4):
                accesses[hit.episode.id].append(clock.now)
            if turn % 4 == 0:
                assert memory.decay() == 40
        clock.advance(days=2)
        assert memory.decay() == 40
        assert logged(memory) == 3
        for uid, item in zip(uids, items, strict=True):
            seen = accesses[uid]
            expected = compute_importance(
                item.salience,
                item.emotional_valence,
                max(seen, default=item.timestamp),
                len(seen),
                clock.now,
                config,
            )
            assert importance(memory, uid) == pytest.approx(expected, abs=1e-12)

    def test_recalls_that_wait_to_be_logged_count(self, memory):
        uid = memory.observe("tea")
        memory.recall("tea")
        memory.decay()
        assert importance(memory, uid) == pytest.approx(0.5 + 0.2 * math.log(2))

    def test_a_scoped_instance_updates_its_own_and_counts_its_own_accesses(
        self, open_memory, monkeypatch
    ):
        monkeypatch.setattr(fading, "RECALLS_KEPT", 1)
        a, b, everyone = open_memory("a"), open_memory("b"), open_memory()
        mine, other = a.observe("tea"), b.observe("tea")
        a.recall("tea")
        b.recall("tea", cross_agent=True)
        b.recall("tea", cross_agent=True)
        for memory in (a, b, everyone):
            memory._store.flush()
        assert a.decay() == 1
        assert importance(a, mine) == pytest.approx(0.5 + 0.2 * math.log(2))
        assert importance(b, other) == 1.0
        assert everyone.decay() == 2
        assert importance(a, mine) == pytest.approx(0.5 + 0.2 * math.log(4))
        assert a.decay() == 1
        assert importance(a, mine) == pytest.approx(0.5 + 0.2 * math.log(2))

    def test_the_access_log_stays_bounded_and_counts_are_kept(self, memory, monkeypatch):
        """Weak spot 5: the log grew for ever."""
        monkeypatch.setattr(fading, "RECALLS_KEPT", 10)
        uid = memory.observe("tea")
        for _ in range(35):
            memory.recall("tea")
        for _ in range(2):
            memory.decay()
            assert logged(memory) == 10
            assert importance(memory, uid) == pytest.approx(0.5 + 0.2 * math.log(36))

    def test_forgetting_finds_its_log_rows_by_index(self, memory):
        """Weak spot 5: forgetting scanned the whole log."""
        with memory._store.reading():
            plan = memory._store._connection.execute(
                "EXPLAIN QUERY PLAN DELETE FROM access_log WHERE episode = 1"
            ).fetchall()
        assert all("SCAN" not in row[3] for row in plan)

    def test_only_changed_rows_are_written(self, memory):
        for n in range(3):
            memory.observe(f"note {n}")
        memory.decay()
        before = memory._store._connection._connection.total_changes()
        assert memory.decay() == 3
        assert memory._store._connection._connection.total_changes() == before

    def test_the_write_lock_is_let_go_between_slices(self, memory, monkeypatch):
        """An observer of the same instance gets in between two slices."""
        monkeypatch.setattr(fading, "SLICE", 10)
        memory.observe_many([ObserveInput(f"note {n}") for n in range(40)])
        held, writing = [], memory._store.writing

        @contextmanager
        def counted():
            with writing():
                held.append(threading.get_ident())
                yield

        monkeypatch.setattr(memory._store, "writing", counted)
        memory.decay()
        assert len(held) >= 4

    def test_no_transaction_rewrites_more_than_a_slice(self, memory, monkeypatch):
        monkeypatch.setattr(fading, "SLICE", 10)
        memory.observe_many([ObserveInput(f"note {n}") for n in range(45)])
        written = []
        moments, set_ = set(), Importance.set

        def counted(self, episodes, importance):
            written.append(len(episodes))
            moments.add(self._connection.moment[0])
            set_(self, episodes, importance)

        monkeypatch.setattr(Importance, "set", counted)
        assert memory.decay() == 45
        assert written == [10, 10, 10, 10, 5]
        assert len(moments) == 5

    def test_the_columns_of_a_caller_give_what_the_stores_give(self, open_memory):
        memory = open_memory("a")
        other = open_memory("b")
        uids = memory.observe_many([ObserveInput(f"tea {n}", salience=n / 9) for n in range(9)])
        foreign = other.observe("tea")
        memory.recall("tea", 4)
        store, now = memory._store, memory._now()
        with store.reading():
            parts = list(store.strength.traces("a", 4))
        assert [part.episodes.tolist() for part in parts] == [[1, 2, 3, 4], [5, 6, 7, 8], [9]]
        assert fading.decay(store, "a", now, memory._decay_config, iter(parts)) == 9
        given = [importance(memory, uid) for uid in uids]
        assert len({round(value, 9) for value in given}) >= 9
        memory._store.strength.importance.clear(1)
        assert memory.decay() == 9
        assert [importance(memory, uid) for uid in uids] == given
        assert importance(other, foreign) == 1.0

    def test_accesses_are_found_one_by_one_and_by_range_alike(self, memory, monkeypatch):
        memory.observe_many([ObserveInput(f"tea {n}") for n in range(60)])
        monkeypatch.setattr(fading, "RECALLS_KEPT", 2)
        for _ in range(4):
            memory.recall("tea", 10)
        memory.decay()
        strength = memory._store.strength
        few, all_ = np.array([3, 17, 58]), np.arange(1, 61)
        with memory._store.reading():
            some, every = strength.accesses(few, None), strength.accesses(all_, None)
        assert some.counts.tolist() == every.counts[few - 1].tolist()
        assert some.latest.tolist() == every.latest[few - 1].tolist()
        assert every.counts.sum() == 40


class TestPrune:
    def test_strictly_below(self, memory, clock):
        uid = memory.observe("x", salience=0.5)
        clock.advance(days=5)
        memory.decay()
        exact = importance(memory, uid)
        assert memory.prune(preview=True, threshold=exact) == []
        assert memory.prune(preview=True, threshold=math.nextafter(exact, 1.0)) == [uid]

    def test_preview_deletes_nothing_and_says_what_prune_then_deletes(self, memory, clock):
        old = [memory.observe(f"old {n}") for n in range(3)]
        clock.advance(days=20)
        young = memory.observe("young")
        assert memory.prune(preview=True) == old
        assert memory.count() == 4
        assert memory.prune() == old
        assert [e.id for e in memory.episodes().episodes] == [young]
        assert memory.prune() == []
        assert memory.check() == []

    def test_history_written_down_today_is_not_deleted_today(self, memory, clock):
        """Weak spot 14: age counted from the event, so an import was pruned at once."""
        uid = memory.observe("the treaty", timestamp=datetime(1648, 10, 24, tzinfo=UTC))
        memory.decay()
        assert importance(memory, uid) == pytest.approx(0.0)
        assert memory.prune() == []
        assert memory.reflect().pruned == []
        clock.advance(days=17)
        assert memory.prune() == [uid]

    def test_events_to_come_are_not_old(self, memory, clock):
        memory.observe("the appointment", timestamp=NOW + timedelta(days=30))
        clock.advance(days=30)
        assert memory.prune() == []

    def test_a_recall_keeps_it(self, memory, clock):
        uid = memory.observe("x")
        clock.advance(days=17)
        memory.recall("x")
        assert memory.prune() == []
        assert memory.get(uid)

    def test_only_its_own(self, open_memory, clock):
        a, b = open_memory("a"), open_memory("b")
        mine, other = a.observe("x"), b.observe("x")
        clock.advance(days=17)
        assert a.prune() == [mine]
        assert b.count() == 1
        assert open_memory().prune() == [other]

    def test_one_event_for_each(self, open_memory, clock, tmp_path):
        """Weak spot 40: pruning emitted none."""
        log = tmp_path / "events"
        memory = open_memory(AGENT, events_path=log)
        uids = [memory.observe(f"note {n}") for n in range(3)]
        clock.advance(days=17)
        memory.prune(preview=True)
        memory.prune()
        events = [json.loads(line) for line in log.read_text().splitlines()]
        forgotten = [e["data"] for e in events if e["type"] == "memory_forgotten"]
        assert forgotten == [{"memory_id": uid, "kind": "episodic"} for uid in uids]

    def test_thousands_in_slices(self, memory, clock, monkeypatch):
        """Weak spot 6: IN lists beyond SQLite's limit, one transaction for all."""
        monkeypatch.setattr(fading, "DELETED_AT_ONCE", 100)
        uids = memory.observe_many([ObserveInput("same words") for _ in range(1_000)])
        clock.advance(days=17)
        with memory._store.reading():
            memory._store._connection._connection.limit(9, 50)  # SQLITE_LIMIT_VARIABLE_NUMBER
        assert memory.prune() == uids
        assert memory.count() == 0

    def test_what_another_instance_forgot_or_recalled_meanwhile_is_not_pruned(
        self, open_memory, clock, monkeypatch
    ):
        monkeypatch.setattr(fading, "DELETED_AT_ONCE", 1)
        memory, other = open_memory(), open_memory()
        first, gone, seen = (memory.observe(text) for text in ("one", "two", "three"))
        clock.advance(days=17)
        pruning = fading.prune(memory._store, None, memory._now(), DecayConfig(), 0.1)
        assert next(pruning) == [first]
        other.forget(gone)
        other.recall("three")
        other._store.flush()
        assert [uid for ids in pruning for uid in ids] == []
        assert [e.id for e in memory.episodes().episodes] == [seen]

    def test_hidden_memories_are_not_pruned(self, memory, clock, path, monkeypatch):
        monkeypatch.setattr(fading, "DELETED_AT_ONCE", 1)
        uids = [memory.observe(text) for text in ("one", "two", "three")]
        clock.advance(days=17)
        with Ledger(path, clock=clock) as ledger:
            ledger.hide(uids[0])
            pruning = fading.prune(memory._store, None, memory._now(), DecayConfig(), 0.1)
            assert next(pruning) == [uids[1]]
            ledger.hide(uids[2])
            assert list(pruning) == [[]]
            ledger.restore(uids[0])
            ledger.restore(uids[2])
        assert memory.count() == 2

    def test_pruned_text_is_in_no_byte(self, open_memory, clock, path):
        memory = open_memory("a")
        memory.observe("Xylophone-canary", tags=["Ornithology"])
        clock.advance(days=17)
        memory.prune()
        memory.close()
        left = every_byte(path)
        assert b"ylophone" not in left
        assert b"rnithology" not in left

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"preview": 1}, InvalidType),
            ({"threshold": "0"}, InvalidType),
            ({"threshold": math.nan}, InvalidArgument),
        ],
    )
    def test_arguments(self, memory, options, error):
        with pytest.raises(error):
            memory.prune(**options)


def test_no_value_an_episode_can_have_poisons_decay(memory):
    """Weak spot 22: one NaN salience made every later decay fail."""
    for bad in (math.nan, math.inf, "abc", None, 2.0, -1.0):
        with pytest.raises((InvalidArgument, InvalidType)):
            memory.observe("x", salience=bad)
    memory.observe("x", salience=0.0, emotional_valence=-1.0)
    assert memory.decay() == 1
