"""Two agents, one store, and everything they may do, against a memory in plain Python.

`--machine-runs N` sets how many runs of 30 steps there are.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from plain_twin import PlainMemory, Row, Statement, same_ranking
from stand_ins import Clock, WordEmbedder

from engram import Engram, ObserveInput
from engram.errors import NotFound

WORDS = ["tea", "coffee", "berlin", "paris", "piano", "alice"]
NAMES = ["Alice", "ALICE", " alice", "Bob", "Bobby"]
AGENTS = ["a", "a-b"]
EVERYBODY = [*AGENTS, None]

# Memory-backed, where the machine has that: a store that is opened thousands of times would
# otherwise spend the test waiting for the disk.
FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None

agents = st.sampled_from(EVERYBODY)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
names = st.sampled_from(NAMES)
people = st.lists(names, max_size=2, unique=True).map(tuple)
ages = st.integers(0, 40).map(lambda days: timedelta(days=days))
sources = st.sampled_from(["user", "tool", "external"])


class TwoAgents(RuleBasedStateMachine):
    """One instance per agent and one without, all on one file; nobody is told of the others."""

    episodes = Bundle("episodes")
    facts = Bundle("facts")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=FOLDER)
        self.clock = Clock()
        self.twin = PlainMemory()
        self.generation = 0
        self.open()

    def open(self) -> None:
        path = Path(self.folder.name) / f"{self.generation}.engram"
        self.memories = {
            agent: Engram(path, embedder=WordEmbedder(), agent_id=agent, clock=self.clock)
            for agent in EVERYBODY
        }

    def close(self) -> None:
        for memory in self.memories.values():
            memory.close()

    def teardown(self) -> None:
        try:
            assert self.memories[None].check() == []
        finally:
            self.close()
            self.folder.cleanup()

    @initialize(target=episodes)
    def no_episode(self):
        return "no such episode"

    @initialize(target=facts)
    def no_fact(self):
        return "no such fact"

    @rule(target=episodes, agent=agents, text=texts, actors=people, age=ages, source=sources)
    def observe(self, agent, text, actors, age, source):
        at = self.clock.now - age
        uid = self.memories[agent].observe(text, actors=actors, timestamp=at, provenance=source)
        self.twin.rows.append(Row(uid, text, agent, at, (), actors, source))
        return uid

    @rule(agent=agents, several=st.lists(st.tuples(texts, people), max_size=5))
    def observe_many(self, agent, several):
        ids = self.memories[agent].observe_many([ObserveInput(t, list(a)) for t, a in several])
        for uid, (text, actors) in zip(ids, several, strict=True):
            row = Row(uid, text, agent, self.clock.now, (), actors)
            self.twin.rows.append(row)

    @rule(agent=agents, query=texts, k=st.integers(1, 6), cut=ages, actors=people)
    def recall_is_brute_force(self, agent, query, k, cut, actors):
        until = self.clock.now - cut
        rows = self.twin.matching(agent, until=until, actors=actors)
        for mode, expected in (("cosine", self.twin.cosine), ("hybrid", self.twin.hybrid)):
            found = self.recalled(agent, query, k, mode, until, actors, blending="min_max")
            assert same_ranking(found, expected(query, k, rows))
            assert {r.episode.id for r in found} <= {row.id for row in rows}
        # Its formula is held against a twin of its own, in test_blending_twin.py.
        found = self.recalled(agent, query, k, "hybrid", until, actors)
        assert len({r.episode.id for r in found} & {row.id for row in rows}) == min(k, len(rows))
        scores = [r.score for r in found]
        assert scores == sorted(scores, reverse=True)
        assert all(0.0 <= score <= 1.0 for score in scores)

    def recalled(self, agent, query, k, mode, until, actors, **options):
        found = self.memories[agent].recall(
            query, k, mode=mode, as_of=until, actors=actors, **options
        )
        self.twin.accesses += [(agent, r.episode.id, self.clock.now) for r in found]
        return found

    @rule(
        target=facts,
        agent=agents,
        subject=names,
        value=st.sampled_from([*WORDS, *NAMES]),
        shared=st.booleans(),
        source=st.one_of(st.none(), names, episodes),
    )
    def assert_fact(self, agent, subject, value, shared, source):
        uid = self.memories[agent].assert_fact(
            subject, "likes", value, shared=shared, source=source
        )
        fact = Statement(uid, agent, subject, "likes", value, shared)
        known = {row.id: row.provenance for row in self.twin.matching(agent)}
        if source in known:
            fact = replace(fact, episode=source, provenance=known[source])
        else:
            fact = replace(fact, name=source)
        self.twin.facts.append(fact)
        return uid

    @rule(agent=agents, subject=names)
    def facts_are_what_was_said(self, agent, subject):
        memory, about = self.memories[agent], self.twin.about(subject, agent)
        assert {f.id for f in memory.timeline(subject)} == {fact.id for fact in about}
        for fact in about:
            why = memory.why(fact.id)
            assert why["provenance"] == fact.provenance
            sources = [one for one in (fact.episode, fact.name) if one is not None]
            assert why["extracted_from"] == sources
        pairs = memory.contradictions()
        assert {frozenset((one.id, other.id)) for one, other in pairs} == (
            self.twin.contradictions(agent)
        )

    @rule(name=names, alias=names, agent=agents)
    def add_alias(self, name, alias, agent):
        self.memories[agent].add_alias(name, alias)
        self.twin.declare(name, alias)

    @rule(uid=facts, agent=agents)
    def forget_fact(self, uid, agent):
        fact = next((f for f in self.twin.facts if f.id == uid and f.seen_by(agent)), None)
        if fact is None:
            with pytest.raises(NotFound):
                self.memories[agent].forget_fact(uid)
        elif agent in (None, fact.agent):
            self.memories[agent].forget_fact(uid)
            self.twin.facts.remove(fact)
        else:
            with pytest.raises(PermissionError):
                self.memories[agent].forget_fact(uid)

    @rule(uid=episodes, agent=agents)
    def forget(self, uid, agent):
        if uid in [row.id for row in self.twin.matching(agent)]:
            self.memories[agent].forget(uid)
            self.twin.forget(uid)
        else:
            with pytest.raises(NotFound):
                self.memories[agent].forget(uid)

    @rule(agent=agents, name=st.sampled_from([*NAMES, "Nobody"]), sweep=st.booleans())
    def forget_entity(self, agent, name, sweep):
        result = self.memories[agent].forget_entity(name, content_sweep=sweep)
        episodes, facts = self.twin.forget_entity(name, sweep=sweep)
        assert sorted(result.episode_ids) == sorted(episodes)
        assert sorted(result.fact_ids) == sorted(facts)
        assert result.wiped

    @rule(agent=agents, days=st.integers(0, 5))
    def decay(self, agent, days):
        self.clock.advance(days=days)
        if agent is None:
            # Everybody's recalls count, which wait in their own instances until these close.
            self.reopen()
        assert self.memories[agent].decay() == self.twin.decay(agent, self.clock.now)
        for episode in self.memories[None].episodes(limit=1000).episodes:
            expected = self.twin.importance.get(episode.id, 1.0)
            assert episode.importance_score == pytest.approx(expected, abs=1e-6)

    @rule()
    def reopen(self):
        self.close()
        self.open()

    @rule()
    def move_by_own_format(self):
        self.reopen()
        dump = Path(self.folder.name) / "dump.jsonl"
        written = self.memories[None].export_lines(dump)
        self.to_another_file()
        assert self.memories[None].import_lines(dump) == written
        assert written["episode"] == len(self.twin.rows)
        again = Path(self.folder.name) / "again.jsonl"
        self.memories[None].export_lines(again)
        assert again.read_bytes() == dump.read_bytes()

    @rule()
    def move_by_documented_format(self):
        dump = Path(self.folder.name) / "dump.json"
        counts = self.memories[None].export_json(dump)["counts"]
        self.to_another_file()
        assert self.memories[None].import_json(dump) == counts
        # The document is in the order of event time, and so is the new file. It has no recalls,
        # and of a source only the id.
        self.twin.rows.sort(key=lambda row: row.at)
        self.twin.accesses.clear()
        self.twin.facts = [
            fact if fact.episode is not None else replace(fact, provenance="unknown")
            for fact in self.twin.facts
        ]

    def to_another_file(self) -> None:
        self.close()
        self.generation += 1
        self.open()

    @invariant()
    def every_agent_sees_its_own(self):
        for agent, memory in self.memories.items():
            assert memory.count() == len(self.twin.matching(agent))
        counts = self.memories[None].counts()
        assert (counts.facts, counts.entities) == (len(self.twin.facts), len(self.twin.entities))


def test_two_agents(request):
    run_state_machine_as_test(
        TwoAgents,
        settings=settings(
            max_examples=request.config.getoption("machine_runs"),
            stateful_step_count=30,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
