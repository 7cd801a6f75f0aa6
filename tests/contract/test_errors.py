"""The contract's error summary, cell by cell: what is refused, as what, with nothing written.

Each row is a condition of the summary in its order: the call, our class, and the built-in type that
the documented interface lets callers catch.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from types import SimpleNamespace

import pytest
from stand_ins import WordEmbedder

from engram import (
    AsyncEngram,
    Engram,
    ObserveInput,
    OpenAIAdapter,
    StubLLMAdapter,
    WorkingMemory,
)
from engram.errors import (
    Closed,
    InvalidArgument,
    MissingExtra,
    ModelMismatch,
    NotFound,
    ScopeError,
)


class OddError(Exception):
    """What an adapter of the user's own may raise."""


class FailingAdapter(StubLLMAdapter):
    def __init__(self) -> None:
        super().__init__()
        self.error = OddError("no network")

    def extract_facts(self, episodes):
        raise self.error

    def summarise(self, episodes):
        raise self.error


@pytest.fixture
def world(open_memory, tmp_path):
    """An agent's instance, the operator's, and what belongs to another agent."""
    own, other = open_memory("own", llm=FailingAdapter()), open_memory("other")
    operator, plain = open_memory(), open_memory(path=tmp_path / "plain.engram")
    plain.observe("kept")
    return SimpleNamespace(
        own=own,
        operator=operator,
        plain=plain,
        mine=own.observe("mine", salience=0.0),
        theirs=other.observe("theirs"),
        nobodys=operator.observe("nobody's"),
        private=other.assert_fact("Ann", "likes", "tea", shared=False),
        shared=other.assert_fact("Ann", "likes", "cake"),
        ownerless=operator.assert_fact("Ann", "likes", "jam"),
        folder=tmp_path,
    )


def document(world, **changes):
    path = world.folder / "document.json"
    full = world.operator.export_json(path) | changes
    path.write_text(json.dumps({key: value for key, value in full.items() if value is not None}))
    return path


def lines(world):
    path = world.folder / "lines.jsonl"
    world.operator.export_lines(path)
    return path


def foreign(world):
    return Engram(world.folder / "memory.engram", embedder=WordEmbedder(dim=16))


REFUSED = {
    # ValueError
    "observe with a bad provenance": (
        lambda w: w.own.observe("x", provenance="boss"), InvalidArgument, ValueError),
    "observe with the provenance of old rows": (
        lambda w: w.own.observe("x", provenance="unknown"), InvalidArgument, ValueError),
    "observe_many with one bad provenance": (
        lambda w: w.own.observe_many([ObserveInput("x"), ObserveInput("y", provenance="boss")]),
        InvalidArgument, ValueError),
    "recall with k below 1": (lambda w: w.own.recall("x", 0), InvalidArgument, ValueError),
    "recall with k above 4096": (lambda w: w.own.recall("x", 4097), InvalidArgument, ValueError),
    "spreading with k above 4096": (
        lambda w: w.own.recall("x", 4097, mode="spreading"), InvalidArgument, ValueError),
    "recall_memories of an unknown kind": (
        lambda w: w.own.recall_memories("x", kind="facts"), InvalidArgument, ValueError),
    "no contradictions at all": (
        lambda w: w.own.contradictions(limit=0), InvalidArgument, ValueError),
    "search with k above 20": (lambda w: w.own.search("x", 21), InvalidArgument, ValueError),
    "search for nothing": (lambda w: w.own.search(" "), InvalidArgument, ValueError),
    "an unknown mode": (lambda w: w.own.recall("x", mode="fuzzy"), InvalidArgument, ValueError),
    "a negative candidate_limit": (
        lambda w: w.own.recall("x", candidate_limit=-1), InvalidArgument, ValueError),
    "working memory without room": (
        lambda w: WorkingMemory(0, w.own), InvalidArgument, ValueError),
    "backup of a scoped instance": (
        lambda w: w.own.backup(w.folder / "copy.engram"), InvalidArgument, ValueError),
    "rekey to nothing of a store without a key": (
        lambda w: w.plain.rekey(None), InvalidArgument, ValueError),
    "import of another version": (
        lambda w: w.operator.import_json(document(w, engram_export_version=2)),
        InvalidArgument, ValueError),
    "import without a version": (
        lambda w: w.operator.import_json(document(w, engram_export_version=None)),
        InvalidArgument, ValueError),
    "an embedder of another dimension": (foreign, ModelMismatch, ValueError),
    # Documented as "raises"; the reference's own note says ValueError.
    "import_json of an id that is taken": (
        lambda w: w.operator.import_json(document(w)), InvalidArgument, ValueError),
    "remember with an id that is taken": (
        lambda w: w.operator.remember("x", memory_id=w.mine), InvalidArgument, ValueError),
    "import_lines of an id that is taken": (
        lambda w: w.operator.import_lines(lines(w)), InvalidArgument, ValueError),
    # KeyError
    "forget of an unknown id": (lambda w: w.own.forget("none"), NotFound, KeyError),
    "forget of another agent's episode": (lambda w: w.own.forget(w.theirs), NotFound, KeyError),
    "forget of an unscoped episode": (lambda w: w.own.forget(w.nobodys), NotFound, KeyError),
    "forget of a fact": (lambda w: w.own.forget(w.shared), NotFound, KeyError),
    "get of another agent's episode": (lambda w: w.own.get(w.theirs), NotFound, KeyError),
    "forget_fact of an unknown id": (lambda w: w.own.forget_fact("none"), NotFound, KeyError),
    "forget_fact of a private fact": (
        lambda w: w.own.forget_fact(w.private), NotFound, KeyError),
    "forget_fact of an episode": (lambda w: w.own.forget_fact(w.mine), NotFound, KeyError),
    "why of an unknown id": (lambda w: w.own.why("none"), NotFound, KeyError),
    "why of a private fact": (lambda w: w.own.why(w.private), NotFound, KeyError),
    # PermissionError
    "forget_fact of a shared fact": (
        lambda w: w.own.forget_fact(w.shared), ScopeError, PermissionError),
    "forget_fact of a fact without an owner": (
        lambda w: w.own.forget_fact(w.ownerless), ScopeError, PermissionError),
    "reembed of a scoped instance": (
        lambda w: w.own.reembed(embedder=WordEmbedder(fingerprint="new")),
        ScopeError, PermissionError),
}  # fmt: skip


@pytest.mark.parametrize("condition", REFUSED)
def test_it_is_refused_and_nothing_is_written(world, condition):
    call, ours, documented = REFUSED[condition]
    before = contents(world)
    with pytest.raises(documented) as refused:
        call(world)
    assert type(refused.value) is ours
    assert contents(world) == before
    assert not (world.folder / "copy.engram").exists()


def contents(world) -> list[bytes]:
    """All that both stores hold."""
    found = []
    for memory in (world.operator, world.plain):
        memory.export_lines(world.folder / "contents.jsonl")
        found.append((world.folder / "contents.jsonl").read_bytes())
    return found


@pytest.mark.parametrize(("module", "extra"), [("openai", "openai")])
def test_a_missing_package_is_an_import_error(world, monkeypatch, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    memory = Engram(world.folder / "memory.engram", embedder=WordEmbedder(),
                    llm=OpenAIAdapter(api_key="k"))  # fmt: skip
    before = contents(world)
    with memory, pytest.raises(ImportError, match=rf"engram-embedded\[{extra}\]") as refused:
        memory.reflect()
    assert type(refused.value) is MissingExtra
    assert contents(world) == before


ASKING = {
    "reflect": lambda memory: memory.reflect(),
    "reflect_async": lambda memory: memory.reflect_async().join(),
    "compress": lambda memory: memory.compress(max_episodes=0, importance_threshold=1.0),
}


@pytest.mark.parametrize("call", ASKING)
def test_what_an_adapter_raises_comes_as_it_is(world, call):
    world.own.decay()
    before = contents(world)
    with pytest.raises(OddError) as raised:
        ASKING[call](world.own)
    assert raised.value is world.own._llm.error
    assert contents(world) == before
    assert world.own.reflect(dry_run=True).episodes_waiting == 1


# Use after close: every public method there is, found by looking.

CALLS = {
    "accesses": lambda m, _: m.accesses("x"),
    "add_alias": lambda m, _: m.add_alias("Ann", "Anna"),
    "assert_fact": lambda m, _: m.assert_fact("Ann", "likes", "tea"),
    "backup": lambda m, folder: m.backup(folder / "copy.engram"),
    "check": lambda m, _: m.check(),
    "compact": lambda m, _: m.compact(),
    "maintain": lambda m, _: m.maintain(),
    "compress": lambda m, _: m.compress(max_episodes=0),
    "contradictions": lambda m, _: m.contradictions(),
    "count": lambda m, _: m.count(),
    "counts": lambda m, _: m.counts(),
    "decay": lambda m, _: m.decay(),
    "declare_predicate": lambda m, _: m.declare_predicate("likes", multi=True),
    "episodes": lambda m, _: m.episodes(),
    "export_json": lambda m, folder: m.export_json(folder / "new.json"),
    "export_lines": lambda m, folder: m.export_lines(folder / "new.jsonl"),
    "facts": lambda m, _: m.facts(),
    "forget": lambda m, _: m.forget("x"),
    "forget_entity": lambda m, _: m.forget_entity("Ann"),
    "forget_evidence": lambda m, _: m.forget_evidence("evidence-x"),
    "forget_fact": lambda m, _: m.forget_fact("x"),
    "forget_many": lambda m, _: m.forget_many(["x"]),
    "get": lambda m, _: m.get("x"),
    "get_fact": lambda m, _: m.get_fact("x"),
    "import_json": lambda m, folder: m.import_json(folder / "old.json"),
    "import_lines": lambda m, folder: m.import_lines(folder / "old.jsonl"),
    "import_memories": lambda m, folder: m.import_memories(folder / "old.memories"),
    "import_store": lambda m, folder: m.import_store(folder / "old.engram"),
    "list_agents": lambda m, _: m.list_agents(),
    "model": lambda m, _: m.model(),
    "observe": lambda m, _: m.observe("x"),
    "observe_many": lambda m, _: m.observe_many([ObserveInput("x")]),
    "prune": lambda m, _: m.prune(),
    "recall": lambda m, _: m.recall("x"),
    "recall_memories": lambda m, _: m.recall_memories("x"),
    "reembed": lambda m, _: m.reembed(embedder=WordEmbedder(fingerprint="new")),
    "reflect": lambda m, _: m.reflect(),
    "reflect_async": lambda m, _: m.reflect_async().join(),
    "reflect_every": lambda m, _: m.reflect_every(episodes=1),
    "rekey": lambda m, _: m.rekey("key"),
    "remember": lambda m, _: m.remember("x"),
    "search": lambda m, _: m.search("x"),
    "search_explained": lambda m, _: m.search_explained("x"),
    "timeline": lambda m, _: m.timeline("Ann"),
    "trust_of": lambda m, _: m.trust_of(["x"]),
    "why": lambda m, _: m.why("x"),
    "wipe": lambda m, _: m.wipe(),
}


def test_every_public_method_is_in_the_table():
    public = {name for name in dir(Engram) if name[0] != "_" and callable(getattr(Engram, name))}
    assert public == {*CALLS, "close"}


@pytest.mark.parametrize("name", CALLS)
def test_use_after_close_is_a_programming_error(open_memory, tmp_path, name):
    memory = open_memory(llm=StubLLMAdapter())
    memory.observe("x")
    memory.export_json(tmp_path / "old.json")
    memory.export_lines(tmp_path / "old.jsonl")
    (tmp_path / "old.memories").write_text('{"id": "m", "content": "x"}')
    old_store(tmp_path / "old.engram")
    memory.close()
    with pytest.raises(sqlite3.ProgrammingError) as refused:
        CALLS[name](memory, tmp_path)
    assert type(refused.value) is Closed
    assert not list(tmp_path.glob("new*"))
    assert not list(tmp_path.glob("copy*"))
    memory.close()


def old_store(path) -> None:
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE episodes (id TEXT PRIMARY KEY, content TEXT, timestamp TEXT)")
    file.close()


def test_asyncio_refuses_as_the_library_does(tmp_path):

    async def use() -> None:
        memory = AsyncEngram(tmp_path / "async.engram", embedder=WordEmbedder())
        with pytest.raises(ValueError, match="provenance"):
            await memory.observe("x", provenance="boss")
        await memory.close()
        with pytest.raises(sqlite3.ProgrammingError):
            await memory.count()

    asyncio.run(use())
