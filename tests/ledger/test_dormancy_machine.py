"""Searches, inspections and feedback in any order, against a plain twin of the rules."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from dormant import search
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.config import DormantRecall
from engram.errors import InvalidArgument, NotFound
from engram.ledger import Ledger
from engram.retrieval import dormancy
from engram.storage import as_stored

# Memory-backed, where the machine has that: the test would otherwise spend its time on the disk.
FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None

RULES = DormantRecall(
    mode="shadow",
    candidate_limit=3,
    rerank_candidates=2,
    max_bonus=0.1,
    min_relevance=0.6,
    log_max_events=4,
    log_retention_days=45,
)
TEXTS = ["tea", "tea pot", "coffee", "coffee cup pot", "tea coffee"]
CATEGORIES = ["useful", "irrelevant", "dismissed"]


@dataclass
class Memory:
    text: str
    created: float
    accessed: float = 0.0
    hidden: bool = False
    used: float = 0.0
    cooldown: float = 0.0

    @property
    def active(self) -> float:
        return max(self.created, self.accessed)


@dataclass
class Event:
    id: str
    at: float
    memory: str | None
    count: int
    bonus: float | None = None
    days: float | None = None
    shown: float | None = None
    feedback: str | None = None


@dataclass
class Twin:
    """What is known, in plain Python; times in days."""

    memories: dict[str, Memory] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def visible(self, now: float) -> list[Event]:
        kept = [
            one
            for one in self.events
            if one.at >= now - RULES.log_retention_days and not self.gone(one.memory)
        ]
        return kept[-RULES.log_max_events :]

    def gone(self, uid: str | None) -> bool:
        return uid is not None and (uid not in self.memories or self.memories[uid].hidden)

    def prune(self, now: float) -> None:
        for one in self.events:
            if self.gone(one.memory) and one.memory in self.memories:
                self.memories[one.memory].used = self.memories[one.memory].cooldown = 0.0
        self.events = self.visible(now)

    def search(self, query: str, answered: list[str], now: float) -> tuple[int, str | None, list]:
        since = now - RULES.dormancy_days
        near = sorted(
            (
                (-cosine(query, one.text), at, uid)
                for at, (uid, one) in enumerate(self.memories.items())
                if not one.hidden and one.active <= since
            ),
        )[: RULES.candidate_limit]
        read = [
            (uid, -negative)
            for negative, _, uid in near
            if -negative >= RULES.min_relevance and uid not in answered
        ][: RULES.rerank_candidates]
        rated = []
        for uid, relevance in read:
            one = self.memories[uid]
            days = now - max(one.active, one.used)
            if one.cooldown <= now and days >= RULES.dormancy_days:
                bonus = RULES.max_bonus * min(1.0, days / (4 * RULES.dormancy_days))
                rated.append((-(relevance + bonus), -relevance, uid, bonus, days))
        return len(near), min(rated)[2] if rated else None, list(min(rated)) if rated else []


def cosine(query: str, text: str) -> float:
    one, other = (as_stored(WordEmbedder().embed([of]))[0] for of in (query, text))
    apart = other.astype(np.float64) - one
    return 1.0 - math.sqrt(float(np.einsum("i,i->", apart, apart))) ** 2 / 2.0


class Dormant(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=FOLDER)
        self.clock = Clock()
        self.start = self.clock.now
        path = Path(self.folder.name) / "memory.engram"
        self.memory = Engram(path, embedder=WordEmbedder(), clock=self.clock)
        self.ledger = Ledger(path, clock=self.clock)
        self.twin = Twin()
        self.ids: list[str] = ["unknown"]

    def teardown(self) -> None:
        try:
            assert self.memory.check() == []
        finally:
            self.memory.close()
            self.ledger.close()
            self.folder.cleanup()

    @property
    def now(self) -> float:
        # Days since before the start, so that 0 is long ago.
        return 10_000.0 + (self.clock.now - self.start).days

    @rule(text=st.sampled_from(TEXTS))
    def observe(self, text):
        self.twin.memories[self.memory.observe(text)] = Memory(text, self.now)

    @rule(days=st.sampled_from([1, 6, 7, 23, 30, 31]))
    def wait(self, days):
        self.clock.advance(days=days)

    @rule(text=st.sampled_from(TEXTS))
    def recall(self, text):
        for hit in self.memory.recall(text, 1, mode="cosine"):
            self.twin.memories[hit.episode.id].accessed = self.now
        self.memory._store.flush()

    @rule(query=st.sampled_from(TEXTS), data=st.data())
    def search(self, query, data):
        known = list(self.twin.memories)
        answered = data.draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
        search(self.memory, query, RULES, answered=answered)
        count, chosen, rated = self.twin.search(query, answered, self.now)
        [newest] = self.ledger.review_dormant(1, settings=RULES)
        event = Event(newest.id, self.now, chosen, count)
        if chosen is not None:
            event.bonus, event.days = rated[3:]
            self.twin.memories[chosen].cooldown = self.now + RULES.cooldown_days
        self.ids.append(newest.id)
        self.twin.events.append(event)
        self.twin.prune(self.now)

    @rule(data=st.data())
    def inspect(self, data):
        uid = data.draw(st.sampled_from(self.ids[-6:]))
        self.twin.prune(self.now)
        event = next((one for one in self.twin.events if one.id == uid), None)
        if event is None or event.memory is None:
            with pytest.raises(NotFound if event is None else InvalidArgument):
                self.ledger.inspect_dormant(uid, settings=RULES)
            return
        memory = self.twin.memories[event.memory]
        shown = self.ledger.inspect_dormant(uid, settings=RULES)
        assert (shown.memory_id, shown.content) == (event.memory, memory.text)
        event.shown = event.shown or self.now
        memory.cooldown = max(memory.cooldown, self.now + RULES.cooldown_days)

    @rule(data=st.data(), category=st.sampled_from(CATEGORIES))
    def judge(self, data, category):
        uid = data.draw(st.sampled_from(self.ids[-6:]))
        self.twin.prune(self.now)
        event = next((one for one in self.twin.events if one.id == uid), None)
        if event is None or event.shown is None or event.feedback not in (None, category):
            with pytest.raises(NotFound if event is None else InvalidArgument):
                self.ledger.judge_dormant(uid, category, settings=RULES)
            return
        self.ledger.judge_dormant(uid, category, settings=RULES)
        if event.feedback is not None:
            return
        event.feedback = category
        memory = self.twin.memories[event.memory]
        rest = RULES.feedback_cooldown_days
        memory.cooldown = max(memory.cooldown, self.now + rest)
        if category == "useful":
            memory.used = self.now

    @precondition(lambda self: self.twin.memories)
    @rule(data=st.data())
    def hide_or_restore(self, data):
        uid = data.draw(st.sampled_from(list(self.twin.memories)))
        memory = self.twin.memories[uid]
        (self.ledger.restore if memory.hidden else self.ledger.invalidate)(uid)
        memory.hidden = not memory.hidden

    @precondition(lambda self: self.twin.memories)
    @rule(data=st.data())
    def forget(self, data):
        uid = data.draw(st.sampled_from(list(self.twin.memories)))
        self.memory.forget(uid)
        del self.twin.memories[uid]
        self.twin.events = [one for one in self.twin.events if one.memory != uid]

    @invariant()
    def review_says_what_is_kept(self):
        found = self.ledger.review_dormant(100, settings=RULES)
        assert [
            (
                one.id,
                one.memory_id,
                one.candidate_count,
                one.shown_at is not None,
                one.feedback,
                one.bonus,
                one.dormant_days,
            )
            for one in found
        ] == [
            (
                one.id,
                one.memory,
                one.count,
                one.shown is not None,
                one.feedback,
                pytest.approx(one.bonus),
                pytest.approx(one.days),
            )
            for one in reversed(self.twin.visible(self.now))
        ]
        assert [one.sequence for one in found] == sorted((o.sequence for o in found), reverse=True)


@pytest.mark.parametrize("few", [0, 1000], ids=["among_the_nearest", "each"])
def test_the_store_agrees_with_its_twin(monkeypatch, few):
    monkeypatch.setattr(dormancy, "_FEW", few)
    run_state_machine_as_test(
        Dormant, settings=settings(max_examples=60, stateful_step_count=40, deadline=None)
    )
