"""Items: kept under a name, found by filter and meaning, gone when their time is over."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import timedelta

import numpy as np
import pytest
from files import every_byte
from stand_ins import Clock, WordEmbedder

from engram.errors import InvalidArgument, InvalidType
from engram.items import DocumentMemory, ItemMemory, ItemPut


@pytest.fixture
def open_items(path, clock):
    with ExitStack() as stack:

        def opened(agent_id=None, **options):
            options.setdefault("embedder", WordEmbedder())
            where = options.pop("path", path)
            options.setdefault("clock", clock)
            return stack.enter_context(ItemMemory(where, agent_id=agent_id, **options))

        yield opened


@pytest.fixture
def items(open_items):
    return open_items()


def keys(found) -> list[str]:
    return [one.key for one in found]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": None, "b": [1, 1.5, True, {"c": []}], "ü": "山田\x00\n\ud7ff"},
        {"big": 10**30, "small": -(2**63), "float": 5e-324, 'quo"te': "\\"},
    ],
)
def test_any_json_object_comes_back(items, value):
    items.put([ItemPut(("a", 'b"\\,]', "山", "\x00", ""), "key\x00 'x", value)])
    found = items.get(("a", 'b"\\,]', "山", "\x00", ""), "key\x00 'x")
    assert json.dumps(found.value) == json.dumps(value)
    assert (found.namespace, found.key) == (("a", 'b"\\,]', "山", "\x00", ""), "key\x00 'x")
    assert items.search(("a", 'b"\\,]')) == [found]
    assert items.search(("a", "b")) == []
    assert items.check() == []


@pytest.mark.parametrize(
    ("put", "error"),
    [
        (ItemPut("ab", "k", {}), InvalidType),
        (ItemPut(("a",), 5, {}), InvalidType),
        (ItemPut(("a",), "k", None), InvalidType),
        (ItemPut(("a",), "k", {"x": {1}}), InvalidType),
        (ItemPut(("a",), "k", {"x": float("nan")}), InvalidArgument),
        (ItemPut(("a",), "\ud800", {}), InvalidArgument),
        (ItemPut(("a",), "k" * 10_001, {}), InvalidArgument),
        (ItemPut(("a" * 5000, "é" * 2501), "k", {}), InvalidArgument),
        (ItemPut(("",) * 10_002, "k", {}), InvalidArgument),
        (ItemPut(("a",), "k", {}, "text"), InvalidType),
        (ItemPut(("a",), "k", {}, (), -1.0), InvalidArgument),
        ({"namespace": ("a",)}, InvalidType),
    ],
)
def test_what_is_refused_writes_nothing(items, put, error):
    with pytest.raises(error):
        items.put([ItemPut(("a",), "good", {}), put])
    assert items.search() == []


def test_a_put_replaces_the_whole_episode(items, open_memory, clock):
    [first] = items.put([ItemPut(("a",), "k", {"n": 1}, ["the old wording"])])
    clock.advance(hours=1)
    [second] = items.put([ItemPut(("a",), "k", {"n": 2}, ["something else"])])
    found = items.get(("a",), "k")
    assert (found.id, found.value, first != second) == (second, {"n": 2}, True)
    assert (found.updated_at - found.created_at).total_seconds() == 3600
    memory = open_memory()
    assert [r.episode.content for r in memory.recall("old wording")] == ["something else"]
    [episode] = memory.episodes().episodes
    assert episode.metadata == {"namespace": ["a"], "key": "k"}
    assert items.check() == []


def test_of_two_puts_to_one_name_the_later_counts(items):
    ids = items.put([ItemPut(("a",), "k", {"n": 1}), ItemPut(("a",), "k", {"n": 2})])
    assert ids[0] == ids[1]
    assert [one.value for one in items.search()] == [{"n": 2}]


def test_what_is_erased_and_put_at_once_is_new(items, clock):
    items.put([ItemPut(("a",), "k", {"n": 1}), ItemPut(("a",), "other", {"n": 1})])
    clock.advance(hours=1)
    items.write([ItemPut(("a",), one, {"n": 2}) for one in ("k", "other")], [(("a",), "k")])
    new, kept = items.get_many([(("a",), "k"), (("a",), "other")])
    assert new.created_at == new.updated_at == clock.now
    assert kept.created_at < kept.updated_at == clock.now


def test_every_agent_has_namespaces_of_its_own(open_items):
    ann, bob, nobody = open_items("ann"), open_items("bob"), open_items()
    assert ann.get(("a",), "k") is None
    for at, memory in enumerate((ann, bob, nobody)):
        memory.put([ItemPut(("a",), "k", {"n": at}, ["tea"])])
    assert [m.get(("a",), "k").value["n"] for m in (ann, bob, nobody)] == [0, 1, 2]
    assert [[one.value["n"] for one in m.search(query="tea")] for m in (ann, bob, nobody)] == [
        [0], [1], [2],
    ]  # fmt: skip
    bob.delete_many([(("a",), "k")])
    assert [m.namespaces() for m in (ann, bob, nobody)] == [[("a",)], [], [("a",)]]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"n": 3}, ["3"]),
        ({"n": {"$gt": 2, "$lte": 4}}, ["3", "4"]),
        ({"n": {"$ne": 0}}, ["1", "2", "3", "4"]),
        ({"n": {"$lt": "x"}}, []),
        ({"name": {"$gte": "item 3"}}, ["3", "4"]),
        ({"in": {"deep": {"$eq": 1}}}, ["1", "3"]),
        ({"in": {"deep": 1, "even": False}}, ["1", "3"]),
        ({"list": [1, {"$gt": 1}]}, ["2", "3", "4"]),
        ({"list": [1]}, []),
        ({"none": None}, ["0", "1", "2", "3", "4"]),
        ({"none": {"$gt": 1}}, []),
        ({"in": {"even": 1}}, ["0", "2", "4"]),
        ({"n": True}, ["1"]),
        ({"in": {"even": {"$gte": 0}}}, []),
        ({"n": {"$gt": False}}, []),
        ({}, ["0", "1", "2", "3", "4"]),
    ],
)
def test_filters(items, wanted, found):
    items.put(
        ItemPut(
            ("a",),
            str(n),
            {
                "n": n,
                "name": f"item {n}",
                "in": {"deep": n % 2, "even": n % 2 == 0},
                "list": [1, n],
            },
            ["tea"],
        )
        for n in range(5)
    )
    assert sorted(keys(items.search(filter=wanted))) == found
    assert sorted(keys(items.search(query="tea", filter=wanted))) == found


@pytest.mark.parametrize("wanted", [{"n": {"$in": [1]}}, {"n": {"$gt": 1, "x": 1}}])
def test_an_unknown_operator_is_refused(items, wanted):
    with pytest.raises(InvalidArgument, match=r"none of \$eq"):
        items.search(filter=wanted)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (["secret-text", 1], InvalidType),
        ([[1], [1, 2]], InvalidType),
        ({"secret": 1}, InvalidType),
        ([10**400] * 32, InvalidType),
        (None, InvalidArgument),
        ([1.0] * 3, InvalidArgument),
        ([[1.0] * 32], InvalidArgument),
        ([float("inf")] * 32, InvalidArgument),
    ],
)
def test_a_vector_that_is_none_is_refused(path, query, error):
    with DocumentMemory(path, embedder=WordEmbedder()) as documents:
        documents.put([ItemPut(("a",), "k", {}, ["tea"])])
        with pytest.raises(error) as refused:
            documents.nearby((), query, 1)
        assert "secret" not in str(refused.value)
        assert refused.value.__cause__ is None
        with pytest.raises(InvalidArgument):
            documents.nearby(("a" * 10_001,), "tea", 1)


def test_a_filter_never_costs_answers(items):
    """Against a search through everything: a large store, small namespaces, filters."""
    random = np.random.default_rng(7)
    words = [f"w{n}" for n in range(60)]
    texts = [" ".join(random.choice(words, 6)) for _ in range(5000)]
    items.put(
        ItemPut(("s", str(n % 7)), str(n), {"n": n, "third": n % 3}, [text, "zz " + text[:8]])
        for n, text in enumerate(texts)
    )
    items.delete_many([(("s", str(n % 7)), str(n)) for n in range(0, 5000, 11)])
    embedder = WordEmbedder()
    for prefix, wanted in ((("s",), None), (("s", "3"), None), (("s", "3"), {"third": 1})):
        query = " ".join(random.choice(words, 3))
        asked = embedder.vector(query)
        among = [
            n for n in range(5000)
            if n % 11 and (len(prefix) == 1 or n % 7 == 3) and (not wanted or n % 3 == 1)
        ]  # fmt: skip
        score = {
            n: max(embedder.vector(t) @ asked for t in (texts[n], "zz " + texts[n][:8]))
            for n in among
        }
        best = sorted(among, key=lambda n: -score[n])
        found = items.search(prefix, query=query, filter=wanted, limit=20, offset=5)
        assert [int(one.key) for one in found] == best[5:25]
        assert [one.score for one in found] == pytest.approx(
            [score[n] for n in best[5:25]], abs=2e-3
        )


def test_items_without_a_text_come_last_and_no_other_face_finds_them(items, open_memory, clock):
    items.put([ItemPut(("a",), "none", {"text": "tea"})])
    clock.advance(seconds=1)
    items.put([ItemPut(("a",), "tea", {}, ["tea"]), ItemPut(("a",), "cat", {}, ["cat"])])
    found = items.search(query="tea")
    assert [(one.key, one.score is None) for one in found] == [
        ("tea", False), ("cat", False), ("none", True),
    ]  # fmt: skip
    assert keys(items.search(query="tea", limit=1, offset=2)) == ["none"]
    assert keys(items.search()) == ["cat", "tea", "none"]
    memory = open_memory()
    assert sorted(r.episode.content for r in memory.recall("tea", 10)) == ["cat", "tea"]
    assert items.check() == []


def test_namespaces(items):
    items.put(
        ItemPut(path, "k", {}) for path in [("a", "b", "c"), ("a", "b"), ("a", "x", "c"), ("b",)]
    )
    assert items.namespaces() == [("a", "b"), ("a", "b", "c"), ("a", "x", "c"), ("b",)]
    assert items.namespaces(prefix=("a", "*"), suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c")]
    assert items.namespaces(max_depth=2, limit=2, offset=1) == [("a", "x"), ("b",)]
    assert items.namespaces(prefix=("a", "b", "c", "d")) == []


def test_a_lifetime_ends_on_read_and_is_swept_by_the_next_write(items, open_memory, clock):
    items.put(
        [ItemPut(("a",), "short", {}, ["tea"], 60), ItemPut(("b",), "long", {}, ["tea"], 600)]
    )
    clock.advance(seconds=59)
    assert items.get(("a",), "short", prolong=True) is not None
    clock.advance(seconds=59)
    assert keys(items.search(query="tea", filter={})) == ["short", "long"]
    clock.advance(seconds=1)
    assert items.get(("a",), "short", prolong=True) is None
    assert keys(items.search(query="tea")) == keys(items.search()) == ["long"]
    assert items.namespaces() == [("b",)]
    memory = open_memory()
    assert memory.count() == 2
    items.put([ItemPut(("c",), "other", {}, ["x"])])
    assert memory.count() == 2
    clock.advance(seconds=482)
    assert (items.sweep(), items.sweep()) == (1, 0)
    assert memory.count() == 1
    assert items.check() == []


def test_a_wrong_clock_sweeps_nobody_elses(open_items, clock, tmp_path):
    """Nor does the event of an erasure have another agent's name."""
    ann, nobody = open_items("ann"), open_items()
    late = Clock(clock.now + timedelta(days=400))
    log = tmp_path / "events"
    bob = open_items("bob", clock=late, events_path=log)
    for memory in (ann, nobody):
        memory.put([ItemPut(("a",), "k", {}, ["tea"], 60)])
    bob.put([ItemPut(("a",), "k", {}, ["tea"], 60)])
    late.advance(seconds=60)
    bob.delete_many([(("a",), "other")])
    bob.put([ItemPut(("b",), "k", {})])
    assert [keys(one.search()) for one in (ann, nobody, bob)] == [["k"], ["k"], ["k"]]
    assert bob.sweep() == 0
    assert log.read_text(encoding="utf-8").count("memory_forgotten") == 1
    clock.advance(seconds=60)
    assert [keys(one.search()) for one in (ann, nobody)] == [[], []]
    assert nobody.sweep() == 2


def test_what_takes_the_name_of_an_expired_item_is_new(items, clock):
    items.put([ItemPut(("a",), "k", {"n": 1}, (), 60)])
    clock.advance(seconds=60)
    items.put([ItemPut(("a",), "k", {"n": 2})])
    found = items.get(("a",), "k")
    assert found.created_at == found.updated_at == clock.now


@pytest.mark.parametrize("how", ["forget", "forget_entity", "delete", "expire", "put"])
def test_erasing_leaves_no_byte(items, open_memory, clock, path, how):
    """The value, which is beside the text, goes with it, whoever erases."""
    secret = "xylophone-4711"
    [uid] = items.put(
        [ItemPut(("ns-xylophone",), "key-xylophone", {"Ivan": secret}, ["xylophone text"], 600)]
    )
    items.put([ItemPut(("kept",), "k", {"x": "marimba"}, ["marimba text"])])
    with open_memory() as memory:
        if how == "forget":
            memory.forget(uid)
        elif how == "forget_entity":
            result = memory.forget_entity("Ivan", content_sweep=True)
            assert result.removed["item"] == 1
    if how == "delete":
        items.delete_many([(("ns-xylophone",), "key-xylophone")])
    elif how == "expire":
        clock.advance(seconds=600)
        items.sweep()
    elif how == "put":
        items.put([ItemPut(("ns-xylophone",), "key-xylophone", {"new": 1}, ["new text"])])
        items.delete_many([(("ns-xylophone",), "key-xylophone")])
    assert keys(items.search()) == ["k"]
    assert items.check() == []
    items.close()
    data = every_byte(path)
    assert b"xylophone" not in data
    assert b"marimba" in data


def test_compressing_and_reembedding_leave_items_what_they_are(items, open_memory, path):
    items.put([ItemPut(("a",), "k", {"n": 1}, ["tea time", "ball game"])])
    other = WordEmbedder(48, "other")
    with open_memory() as memory:
        assert memory._store.strength.below(2.0, None) == []
        memory.reembed(embedder=other)
    with ItemMemory(path, embedder=other) as again:
        assert [one.score for one in again.search(query="ball game")] == pytest.approx([1.0])
        assert again.check() == []
