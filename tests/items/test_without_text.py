"""Items of which no text is searched: values under a name, which no other face shows."""

from __future__ import annotations

import json

import pytest
from stand_ins import WordEmbedder

from engram.items import DocumentMemory, ItemMemory, ItemPut
from engram.ledger import Ledger


@pytest.fixture
def items(path, clock):
    with ItemMemory(path, embedder=WordEmbedder(), clock=clock) as opened:
        yield opened


def shown(memory) -> list[str]:
    """All that lists and searches of episodes have to say of a store."""
    return [
        *(one.content for one in memory.episodes().episodes),
        *(one.episode.content for one in memory.recall("anything", 20)),
        *(one.episode.content for one in memory.recall_memories("anything", 20)),
    ]


def test_values_under_names_take_no_model(path, clock):
    """Neither one that is loaded, nor one that is made the store's."""

    class Unused(WordEmbedder):
        def embed(self, texts):
            raise AssertionError

    with ItemMemory(path, embedder=Unused(), clock=clock) as items:
        items.put([ItemPut(("a",), "k", {"n": 1})])
        assert [one.key for one in items.search(query="tea")] == ["k"]
        items.put([ItemPut(("a",), "k", {"n": 3})])
        assert items.get(("a",), "k").value == {"n": 3}
        assert (items.model(), items.check()) == (None, [])


def test_only_what_has_a_text_is_embedded(items):
    items.put(
        [
            ItemPut(("a",), "none", {}),
            ItemPut(("a",), "two", {}, ["tea time", "ball game"]),
            ItemPut(("a",), "last", {}),
        ]
    )
    assert items._embedder.embedded == 2
    assert [(one.key, one.score is None) for one in items.search(query="ball game")] == [
        ("two", False), ("last", True), ("none", True),
    ]  # fmt: skip
    assert items.check() == []


@pytest.mark.parametrize("how", ["hide", "set_status", "invalidate"])
def test_no_face_shows_one_that_was_withdrawn_and_restored(items, open_memory, path, how):
    [uid] = items.put([ItemPut(("a",), "k", {"n": 1})])
    items.put([ItemPut(("a",), "tea", {}, ["tea"])])
    memory = open_memory()
    memory.recall("anything")
    with Ledger(path) as ledger:
        getattr(ledger, how)(uid, *["challenged"][: how == "set_status"])
        assert items.get(("a",), "k") is None
        assert [one.key for one in items.search()] == ["tea"]
        ledger.restore(uid)
    assert items.get(("a",), "k").value == {"n": 1}
    assert [one.key for one in items.search(query="tea")] == ["tea", "k"]
    assert shown(memory) == ["tea"] * 3
    assert shown(open_memory()) == ["tea"] * 3
    assert (memory.count(), memory.counts().embedded) == (1, 1)
    assert memory.get(uid).metadata == {"namespace": ["a"], "key": "k"}
    assert items.check() == []


def test_a_search_without_words_shows_none(items, open_memory):
    """The paths that read rows, not the index, leave them out too."""
    items.put([ItemPut(("a",), "k", {})])
    memory = open_memory()
    assert shown(memory) == []
    items.put([ItemPut(("a",), "tea", {}, ["tea"])])
    assert [one.content for one in memory.episodes(since=memory._clock()).episodes] == ["tea"]
    assert memory.recall("tea", until=memory._clock())[0].episode.content == "tea"
    assert memory.reflect().episodes_waiting == 1


def test_reembedding_leaves_them_bare(items, open_memory, path):
    items.put([ItemPut(("a",), "k", {}), ItemPut(("a",), "tea", {}, ["tea"])])
    with open_memory() as memory:
        assert memory.reembed(embedder=WordEmbedder(48, "other")) == 1
        assert memory.check() == []
    with ItemMemory(path, embedder=WordEmbedder(48, "other")) as again:
        assert [one.score is None for one in again.search(query="tea")] == [False, True]


@pytest.mark.parametrize("embedder", [WordEmbedder(), WordEmbedder(48, "other")])
@pytest.mark.parametrize("texts", [(), ("tea",)])
def test_they_travel_without_vectors(items, open_memory, file, tmp_path, embedder, texts):
    items.put([ItemPut(("a",), "k", {"n": 1}), ItemPut(("a",), "other", {}, texts)])
    open_memory().export_lines(file)
    there = open_memory(path=tmp_path / "there.engram", embedder=embedder)
    there.import_lines(file)
    assert there.import_lines(file, merge=True)["episode"] == 0
    assert shown(there) == list(texts) * 3
    assert there.check() == []
    with ItemMemory(tmp_path / "there.engram", embedder=embedder) as new:
        assert new.get(("a",), "k").value == {"n": 1}


def test_no_vector_is_taken_for_one(items, open_memory, file, other):
    items.put([ItemPut(("a",), "k", {}), ItemPut(("a",), "tea", {}, ["tea"])])
    open_memory().export_lines(file)
    header, bare, tea, *rest = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    lines = [header, {**bare, "vectors": tea["vectors"]}, tea, *rest]
    file.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    other.import_lines(file)
    assert other.check() == []


def test_a_vector_without_a_text_is_named_by_the_check(items):
    items.put([ItemPut(("a",), "tea", {}, ["tea"])])
    with items._store.writing():
        items._store._connection.execute("UPDATE item SET parts = NULL")
    assert items.check() == [
        "1 items do not have the text that their parts say", "1 items without a text have vectors",
    ]  # fmt: skip


def test_of_one_whose_name_is_taken_nothing_is_imported(items, open_memory, file, tmp_path):
    items.put([ItemPut(("a",), "k", {"n": 1})])
    open_memory().export_lines(file)
    there = tmp_path / "there.engram"
    with ItemMemory(there, embedder=WordEmbedder()) as mine:
        mine.put([ItemPut(("a",), "k", {"mine": 1})])
        with open_memory(path=there) as memory:
            memory.import_lines(file, merge=True)
            assert memory.counts().episodes == 1
            assert shown(memory) == memory.check() == []
        assert mine.get(("a",), "k").value == {"mine": 1}


def test_the_exchange_format_has_none(items, open_memory, file, other):
    items.put([ItemPut(("a",), "k", {}), ItemPut(("a",), "tea", {}, ["tea"])])
    open_memory().export_json(file)
    other.import_json(file)
    assert other.counts().episodes == 1


def test_a_vector_search_returns_none(path, clock):
    with DocumentMemory(path, embedder=WordEmbedder(), clock=clock) as documents:
        documents.put([ItemPut(("a",), "k", {}), ItemPut(("a",), "tea", {}, ["tea"])])
        assert [one.key for one in documents.nearby((), "tea", 5).items] == ["tea"]


def test_reading_one_costs_the_same_however_many_there_are(items):
    connection = items._store._connection._connection
    steps = []

    def count():
        steps[-1] += 1
        return False

    for n in range(3):
        items.put(ItemPut(("a",), f"{n} {at}", {}, (), 5.0) for at in range(300))
        steps.append(0)
        connection.set_progress_handler(count, 1)
        items.get(("a",), "0 0")
        connection.set_progress_handler(None)
    assert steps[0] > 0
    assert steps[2] <= steps[0] + 5
