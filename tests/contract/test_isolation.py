"""A secret of one agent and everything another agent may call: it never shows, in any answer.

Only texts are compared: that another agent exists, and how much the file holds, is no secret.
"""

from __future__ import annotations

import dataclasses
import random

import pytest

from engram import Engram, ObserveInput, StubLLMAdapter
from engram.config import Retrieval
from engram.errors import EngramError

SECRET = "zanzibar"
WORDS = ["tea", "coffee", "berlin", "plan", SECRET]
MODES = ["hybrid", "cosine", "spreading"]


class Echo(StubLLMAdapter):
    """States facts about what it is shown and summarises it word by word: what it saw, shows."""

    def extract_facts(self, episodes):
        return [
            {"subject": "Ann", "predicate": "said", "object": episode.content, "sources": [at]}
            for at, episode in enumerate(episodes, 1)
        ], 1

    def summarise(self, episodes):
        return " ".join(episode.content for episode in episodes), 1


class Spy:
    """Calls as agent "a", at random, and keeps every text that comes back."""

    def __init__(self, memory, chance, planted, folder) -> None:
        self.memory = memory
        self.chance = chance
        self.planted = planted
        self.folder = folder
        self.own: list[str] = []

    def words(self) -> str:
        # The spy's own text never holds the secret, its questions may.
        return " ".join(self.chance.choices(WORDS[:-1], k=3))

    def query(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=2))

    def some_id(self) -> str:
        return self.chance.choice([*self.planted, *self.own, "unknown"])

    def filters(self):
        return self.chance.choice(
            [{}, {"tags": [SECRET]}, {"actors": [SECRET]}, {"provenance": "user"},
             {"exclude_quarantined": True}, {"tags": ["t"]}]
        )  # fmt: skip

    def keep(self, uid: str) -> str:
        self.own.append(uid)
        return uid

    def observe(self):
        return self.keep(self.memory.observe(self.words(), tags=["t"], actors=["Ann"]))

    def observe_many(self):
        return self.memory.observe_many([ObserveInput(self.words())] * 2)

    def remember(self):
        return self.keep(self.memory.remember(self.words(), project="/p"))

    def recall(self):
        k, mode = self.chance.randint(1, 40), self.chance.choice(MODES)
        return self.memory.recall(self.query(), k, mode=mode, depth=4, **self.filters())

    def recall_memories(self):
        k, mode = self.chance.randint(1, 40), self.chance.choice(MODES)
        kind = self.chance.choice(["any", "semantic"])
        return self.memory.recall_memories(self.query(), k, kind=kind, mode=mode, **self.filters())

    def search(self):
        return self.memory.search(self.query(), 20, settings=Retrieval(min_confidence=0.0))

    def search_explained(self):
        # What it says of the query are names of entities, which are the whole file's.
        hits, report = self.memory.search_explained(
            self.query(), 20, settings=Retrieval(min_confidence=0.0)
        )
        return hits, {name: part for name, part in report.items() if name != "query"}

    def episodes(self):
        return self.memory.episodes(limit=self.chance.randint(1, 1000), **self.filters())

    def count(self):
        mine = self.memory.count(**self.filters())
        assert mine <= self.memory.count()
        if SECRET in str(self.filters()):
            assert self.memory.count(tags=[SECRET]) == 0
        return mine

    def get(self):
        return self.memory.get(self.some_id())

    def accesses(self):
        return self.memory.accesses(self.some_id())

    def get_fact(self):
        return self.memory.get_fact(self.some_id())

    def facts(self):
        return self.memory.facts(active_only=self.chance.random() < 0.5, limit=1000)

    def timeline(self):
        return self.memory.timeline(self.chance.choice(["Ann", "Bert", SECRET]))

    def why(self):
        return self.memory.why(self.some_id())

    def trust_of(self):
        ids = {self.some_id() for _ in range(3)}
        told = self.memory.trust_of(ids)
        assert told.keys() == {uid for uid in ids if can_be_read(self.memory, uid)}
        return told

    def contradictions(self):
        return self.memory.contradictions()

    def assert_fact(self):
        source = self.some_id() if self.chance.random() < 0.5 else None
        uid = self.memory.assert_fact("Ann", "likes", self.words(), source=source)
        return self.memory.why(self.keep(uid))

    def forget(self):
        return self.memory.forget(self.some_id())

    def forget_many(self):
        return self.memory.forget_many([self.some_id(), self.some_id()])

    def forget_fact(self):
        return self.memory.forget_fact(self.some_id())

    def export_json(self):
        # Names of entities are the whole file's; nothing else of it is.
        document = self.memory.export_json(self.folder / "a.json")
        return {name: rows for name, rows in document.items() if name != "entities"}

    def export_lines(self):
        self.memory.export_lines(self.folder / "a.jsonl")
        lines = (self.folder / "a.jsonl").read_text(encoding="utf-8").splitlines()
        # The queries a scoped export holds are its own agent's, the only ones that may name it.
        return [line for line in lines if '"kind":"entity"' not in line[:20]
                and '"kind":"recall_log"' not in line[:25]]  # fmt: skip

    def rest(self):
        memory = self.memory
        return memory.list_agents(), memory.counts(), memory.model(), memory.check()

    def fade(self):
        return self.memory.decay(), self.memory.prune(preview=self.chance.random() < 0.5)

    def reflect(self):
        return self.memory.reflect(dry_run=self.chance.random() < 0.5)

    def compress(self):
        return self.memory.compress(max_episodes=30, importance_threshold=0.9, batch_size=5)

    def backup(self):
        return self.memory.backup(self.folder / "copy.engram")

    def import_json(self):
        self.memory.export_json(self.folder / "again.json")
        merge = self.chance.random() < 0.5
        return self.memory.import_json(self.folder / "again.json", merge=merge)


CHOICES = {"words", "query", "some_id", "filters", "keep"}
CALLS = [name for name in vars(Spy) if name[0] != "_" and name not in CHOICES]


def can_be_read(memory, uid) -> bool:
    try:
        memory.get_fact(uid)
    except EngramError:
        return False
    return True


def as_text(answer: object) -> str:
    if isinstance(answer, (list, tuple)):
        return " ".join(map(as_text, answer))
    if dataclasses.is_dataclass(answer):
        return repr(dataclasses.asdict(answer))
    return repr(answer)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_of_another_agent_shows(open_memory, tmp_path, clock, seed):
    events = tmp_path / "events.ndjson"
    owner = open_memory("b", llm=Echo())
    planted = [
        owner.observe(f"the {SECRET} plan", tags=[SECRET], actors=[SECRET], metadata={"x": SECRET}),
        owner.observe(f"{SECRET} tea", salience=0.0, provenance="user"),
        owner.assert_fact("Ann", "likes", SECRET, shared=False),
        owner.assert_fact(SECRET, "is", "private", shared=False),
    ]
    owner.add_alias(SECRET, "secret of b")
    owner.recall(SECRET)
    owner.reflect()
    planted += [fact.id for fact in owner.facts().facts]
    agent = open_memory("a", llm=Echo(), events_path=events)
    spy = Spy(agent, random.Random(seed), planted, tmp_path)
    seen = 0
    for _ in range(500):
        clock.advance(hours=spy.chance.randint(0, 48))
        name = spy.chance.choice(CALLS)
        try:
            text = as_text(getattr(spy, name)())
            seen += 1
        except EngramError as refused:
            text = f"{refused} {refused!r} {refused.__cause__!r} {refused.__context__!r}"
        assert SECRET not in text, name
        if spy.chance.random() < 0.1:
            owner.recall(f"{SECRET} again")
            spy.planted.append(owner.observe(f"more {SECRET}"))
    assert seen > 50
    assert SECRET not in events.read_text(encoding="utf-8")
    assert all(uid not in events.read_text(encoding="utf-8") for uid in planted)
    assert {e.content for e in owner.episodes(limit=1000).episodes} >= {f"the {SECRET} plan"}


def test_every_answer_is_asked_for():
    """What a spy does not call answers nothing, or is the operator's, or reads another file."""
    public = {name for name in dir(Engram) if name[0] != "_" and callable(getattr(Engram, name))}
    covered = {*CALLS, "list_agents", "counts", "model", "check", "decay", "prune"}
    assert public - covered == {
        "add_alias", "close", "compact", "declare_predicate", "forget_entity", "forget_evidence",
        "import_lines", "import_memories", "maintain",
        "import_store", "reembed", "reflect_async", "reflect_every", "rekey",
        "wipe",
    }  # fmt: skip
