"""`EngramStore` beside LangGraph's own `InMemoryStore`, in real graphs, and over time."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.adapters.langgraph import EngramStore
from engram.errors import Closed, InvalidArgument, InvalidType
from engram.items import ItemMemory


@pytest.fixture
def store(path, clock):
    with EngramStore(path, embedder=WordEmbedder(), clock=clock) as opened:
        yield opened


def embed(texts: list[str]) -> list[list[float]]:
    return WordEmbedder().embed(texts).tolist()


NAMESPACES = st.lists(st.sampled_from(["a", "b", "ü"]), min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "l", "m"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "tea", "ü\x00"])
VALUES = st.dictionaries(
    st.sampled_from(["n", "text", "in"]),
    SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.just("deep"), SCALARS),
)
COMPARED = st.dictionaries(
    st.sampled_from(["$eq", "$ne"]), SCALARS | st.lists(SCALARS, max_size=2), min_size=1
)
FILTERS = st.none() | st.dictionaries(
    st.sampled_from(["n", "text", "in"]),
    SCALARS | COMPARED | st.dictionaries(st.just("deep"), SCALARS | COMPARED, min_size=1),
    max_size=2,
)
PATHS = st.lists(st.sampled_from(["a", "b", "*"]), max_size=2).map(tuple)
LIMITS = {"limit": st.integers(0, 4), "offset": st.integers(0, 3)}
READS = st.one_of(
    st.builds(GetOp, NAMESPACES, KEYS, st.booleans()),
    st.builds(
        SearchOp,
        st.lists(st.sampled_from(["a", "b", "ü"]), max_size=2).map(tuple),
        FILTERS,
        query=st.none() | st.sampled_from(["tea", "x tea"]),
        **LIMITS,
    ),
    st.builds(
        ListNamespacesOp,
        st.none()
        | st.lists(
            st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=2
        ).map(tuple),
        st.none() | st.integers(1, 3),
        **LIMITS,
    ),
)
WRITES = st.builds(
    PutOp, NAMESPACES, KEYS, st.none() | VALUES, st.sampled_from([None, False]), st.none()
)
BATCHES = st.lists(st.lists(READS | WRITES, max_size=5), max_size=10)


def expected(twin: InMemoryStore, op, order: dict) -> object:
    """Say what a twin that lists what was put last first would answer."""
    for namespace in [one for one, held in twin._data.items() if not held]:
        # Those it has only because they were asked for.
        del twin._data[namespace]
    if not isinstance(op, SearchOp):
        return twin.batch([op])[0]
    [everything] = twin.batch([op._replace(limit=10**6, offset=0)])
    if not op.query:
        everything.sort(key=lambda one: -order[one.namespace, one.key])
    else:
        # Scores tie where texts are the same: what was put first comes first.
        everything.sort(
            key=lambda one: (
                (0, -round(one.score, 6), order[one.namespace, one.key])
                if one.score is not None
                else (1, -order[one.namespace, one.key])
            )
        )
    return everything[op.offset : op.offset + op.limit]


def shown(result: object) -> object:
    if isinstance(result, list):
        return [shown(one) for one in result]
    if result is None or isinstance(result, tuple):
        return result
    score = getattr(result, "score", None)
    return (
        result.namespace, result.key, result.value, None if score is None else round(score, 2),
    )  # fmt: skip


@settings(max_examples=60)
@given(BATCHES)
def test_it_answers_as_langgraphs_own_store(batches):
    twin = InMemoryStore(index={"dims": 32, "embed": embed, "fields": ["text"]})
    order: dict = {}
    with EngramStore(
        ":memory:", embedder=WordEmbedder(), clock=Clock(), index={"dims": 32, "fields": ["text"]}
    ) as store:
        for ops in batches:
            answers = [expected(twin, op, order) for op in ops if not isinstance(op, PutOp)]
            results = store.batch(ops)
            assert [r for r, op in zip(results, ops, strict=True) if isinstance(op, PutOp)] == [
                None for op in ops if isinstance(op, PutOp)
            ]
            read = [r for r, op in zip(results, ops, strict=True) if not isinstance(op, PutOp)]
            assert shown(read) == shown(answers)
            puts = [op for op in ops if isinstance(op, PutOp)]
            last = {(op.namespace, op.key): op for op in puts}
            twin.batch(puts)
            for name, op in last.items():
                twin._vectors[op.namespace].pop(op.key, None)
                if op.value is not None:
                    order[name] = len(order) + max(order.values(), default=0) + 1
            twin.batch([last[name] for name in last])


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"n": {"$gt": 1}}, {"2", "3"}),
        ({"n": {"$gte": 1, "$lt": 3}}, {"1", "2"}),
        ({"n": {"$lte": 0.5}}, {"0"}),
        ({"n": [0, 1]}, set()),
    ],
)
def test_numbers_compare_as_in_langgraphs_own_store(store, wanted, keys):
    twin = InMemoryStore()
    for one in (store, twin):
        for n in range(4):
            one.put(("a",), str(n), {"n": n})
        assert {found.key for found in one.search(("a",), filter=wanted)} == keys


def test_the_time_of_the_first_put_stays(store, clock):
    store.put(("a",), "k", {"n": 1})
    clock.advance(minutes=1)
    store.put(("a",), "k", {"n": 2})
    found = store.get(("a",), "k")
    assert (found.updated_at - found.created_at).total_seconds() == 60


def test_fields_and_the_index_of_a_put(path, clock):
    index = {"fields": ["text", "notes[*].body"]}
    with EngramStore(path, embedder=WordEmbedder(), clock=clock, index=index) as store:
        store.put(("a",), "both", {"text": "tea", "notes": [{"body": "cat"}, {"body": "dog"}]})
        store.put(("a",), "own", {"text": "tea", "title": "ball"}, index=["title"])
        store.put(("a",), "none", {"text": "ball"}, index=False)
        for query, key in (("tea", "both"), ("cat", "both"), ("dog", "both"), ("ball", "own")):
            [found, *_, last] = store.search(("a",), query=query)
            assert (found.key, found.score) == (key, pytest.approx(1.0, abs=1e-3))
            assert (last.key, last.score) == ("none", None)
    with EngramStore(path, embedder=WordEmbedder(), index=False) as store:
        store.put(("b",), "k", {"text": "tea"})
        assert [one.score for one in store.search(("b",), query="tea")] == [None]
    with EngramStore(path, embedder=WordEmbedder(), index={"fields": []}) as store:
        store.put(("c",), "k", {"text": "tea"})
        assert [one.score is None for one in store.search(("c",), query="tea")] == [False]
        store.delete(("c",), "k")
    # The other faces find what is searched, and nothing else.
    with Engram(path, embedder=WordEmbedder()) as memory:
        assert sorted(r.episode.content for r in memory.recall("tea", 9)) == [
            "ball", "tea\ncat\ndog",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"index": {"dims": 5}}, InvalidArgument),
        ({"index": {"embed": embed}}, InvalidArgument),
        ({"index": {"fields": "text"}}, InvalidType),
        ({"index": {"other": 1}}, InvalidArgument),
        ({"index": ["text"]}, InvalidType),
        ({"ttl": {"refresh_on_read": 1}}, InvalidType),
        ({"ttl": {"default_ttl": -1}}, InvalidArgument),
        ({"ttl": {"other": 1}}, InvalidArgument),
        ({"ttl": 5}, InvalidType),
        ({"colour": "red"}, InvalidType),
        ({"store": 5}, InvalidType),
    ],
)
def test_settings_that_are_refused(path, options, error):
    with pytest.raises(error) as refused:
        EngramStore(**{"store": path, "embedder": WordEmbedder()} | options)
    assert "__init__" not in str(refused.value)


def test_operations_are_a_list(store):
    with pytest.raises(InvalidType):
        store.batch(None)
    with pytest.raises(InvalidType):
        asyncio.run(store.abatch(None))


@pytest.mark.parametrize("opened", [True, False])
def test_after_closing_no_thread_is_started(path, opened):
    items = ItemMemory(path, embedder=WordEmbedder())
    store = EngramStore(items) if opened else EngramStore(":memory:", embedder=WordEmbedder())
    store.close()
    before = set(threading.enumerate())
    for call in (store.aget(("a",), "k"), store.aput(("a",), "k", {}), store.abatch([])):
        with pytest.raises(Closed):
            asyncio.run(call)
    assert set(threading.enumerate()) <= before
    items.close()


def test_labels_that_langgraph_refuses(store):
    for refused in (("a.b",), ("",), (), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(refused, "k", {})
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a",), "k", {}), GetOp(("a.b",), "k")])
    with pytest.raises(InvalidArgument):
        store.batch([PutOp(("a",), "k", {}), "get"])
    with pytest.raises(InvalidType):
        store.batch([PutOp(("a",), "k", {}), PutOp(("a",), "l", {"x": {1}})])
    assert store.search(()) == []


def test_items_expire_and_reads_prolong(path, clock):
    with EngramStore(path, embedder=WordEmbedder(), clock=clock, ttl={"default_ttl": 10}) as store:
        store.put(("a",), "default", {"text": "tea"})
        store.put(("a",), "own", {"text": "tea"}, ttl=1)
        store.put(("a",), "ever", {"text": "tea"}, ttl=None)
        clock.advance(seconds=59)
        assert store.get(("a",), "own", refresh_ttl=False) is not None
        assert len(store.search(("a",), query="tea")) == 3
        clock.advance(seconds=59)
        assert store.get(("a",), "own", refresh_ttl=False) is not None
        clock.advance(seconds=1)
        assert store.get(("a",), "own") is None
        assert {one.key for one in store.search(("a",))} == {"default", "ever"}
        assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)
        clock.advance(days=1)
        assert store.list_namespaces() == [("a",)]
        store.put(("b",), "other", {})
    with Engram(path, embedder=WordEmbedder()) as memory:
        assert [r.episode.content for r in memory.recall("tea", 9)] == [
            '{"text": "tea"}', "{}",
        ]  # fmt: skip


def test_without_refresh_on_read_reads_do_not_prolong(path, clock):
    ttl = {"refresh_on_read": False, "default_ttl": 1}
    with EngramStore(path, embedder=WordEmbedder(), clock=clock, ttl=ttl) as store:
        store.put(("a",), "k", {})
        clock.advance(seconds=59)
        assert store.get(("a",), "k") is not None
        clock.advance(seconds=1)
        assert store.get(("a",), "k") is None


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def note(state: State, *, store: BaseStore) -> State:
    store.put(("notes", "ann"), str(len(state["said"])), {"text": state["said"][-1]})
    return {"said": []}


def find(state: State, *, store: BaseStore) -> State:
    [found] = store.search(("notes",), query="tea", limit=1)
    return {"said": [found.value["text"]]}


async def anote(state: State, *, store: BaseStore) -> State:
    await store.aput(("notes", "ann"), str(len(state["said"])), {"text": state["said"][-1]})
    return {"said": []}


async def afind(state: State, *, store: BaseStore) -> State:
    [found] = await store.asearch(("notes",), query="tea", limit=1)
    return {"said": [found.value["text"]]}


def graph(store: BaseStore, first, second):
    builder = StateGraph(State)
    builder.add_node("note", first)
    builder.add_node("find", second)
    builder.add_edge(START, "note")
    builder.add_edge("note", "find")
    builder.add_edge("find", END)
    return builder.compile(store=store)


def test_in_a_graph(path):
    index = {"fields": ["text"]}
    with EngramStore(path, embedder=WordEmbedder(), index=index) as store:
        compiled = graph(store, note, find)
        compiled.invoke({"said": ["tea with ann"]})
        assert compiled.invoke({"said": ["x", "ball game"]})["said"][-1] == "tea with ann"
    # Another run of the program.
    with EngramStore(path, embedder=WordEmbedder(), index=index) as store:
        assert len(store.search(("notes", "ann"))) == 2


def test_in_an_async_graph(path):
    async def use() -> str:
        async with EngramStore(path, embedder=WordEmbedder(), index={"fields": ["text"]}) as store:
            compiled = graph(store, anote, afind)
            await compiled.ainvoke({"said": ["tea with ann"]})
            return (await compiled.ainvoke({"said": ["x", "ball game"]}))["said"][-1]

    assert asyncio.run(use()) == "tea with ann"


def test_waiting_does_not_hold_up_the_event_loop(path):
    """The store's lock is held by a writer until the loop lets it go."""

    async def use() -> None:
        async with EngramStore(path, embedder=WordEmbedder()) as store:
            await store.aput(("a",), "k", {"n": 1})
            held, let_go = threading.Event(), threading.Event()

            def hold() -> None:
                with store._items._store.writing():
                    held.set()
                    let_go.wait(30)

            writer = threading.Thread(target=hold)
            writer.start()
            held.wait(30)
            asked = asyncio.create_task(store.aget(("a",), "k"))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not asked.done()
            let_go.set()
            assert (await asked).value == {"n": 1}
            writer.join()

    asyncio.run(use())


def test_two_instances_see_each_other_and_an_open_store_stays_open(path):
    with ItemMemory(path, embedder=WordEmbedder()) as items:
        with EngramStore(items) as one, EngramStore(path, embedder=WordEmbedder()) as two:
            one.put(("a",), "k", {"n": 1})
            two.put(("a",), "k", {"n": 2})
            assert one.get(("a",), "k").value == {"n": 2}
            two.delete(("a",), "k")
            assert one.search(()) == []
        items.put([])
        with pytest.raises(InvalidArgument):
            EngramStore(items, agent_id="ann")


_WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from stand_ins import WordEmbedder
from engram.adapters.langgraph import EngramStore
with EngramStore(sys.argv[1], embedder=WordEmbedder()) as store:
    for n in range(50):
        store.put(("shared",), "same", {"n": n})
        store.put(("own", sys.argv[3]), str(n), {"n": n})
"""


def test_two_processes_write_at_once(path):
    folder = str(Path(__file__).parents[1])
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), folder, name])
        for name in ("a", "b")
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    with ItemMemory(path, embedder=WordEmbedder()) as items:
        assert items.get(("shared",), "same").value == {"n": 49}
        assert len(items.search(("own",), limit=200)) == 100
        assert items.check() == []
