"""Memories that are there and not to be found: no read shows them, and all of it comes back."""

from __future__ import annotations

import random
from itertools import chain

import numpy as np
import pytest
from answers import FILTERS, QUERIES, answers, assert_true, embedder, filled

from engram import StubLLMAdapter
from engram.errors import NotFound
from engram.ledger import Ledger
from engram.storage import EpisodeFilter

HIDE = {
    "hide": lambda ledger, uid: ledger.hide(uid),
    "set_status": lambda ledger, uid: ledger.set_status(uid, "superseded"),
    "invalidate": lambda ledger, uid: ledger.invalidate(uid),
}


@pytest.fixture
def ledger(path, clock):
    with Ledger(path, clock=clock) as ledger:
        yield ledger


@pytest.fixture(params=["tail", "segments"])
def parts(request):
    """Whether the store's episodes are in the tail of the index or in segments of it."""
    if request.param == "segments":
        request.getfixturevalue("small_segments")


def ranking(memory, mode="cosine", accuracy="exact", **filters):
    return [
        [
            hit.episode.id
            for hit in memory.recall(query, 300, mode=mode, accuracy=accuracy, **filters)
        ]
        for query in QUERIES
    ]


def without(rankings, hidden):
    return [[uid for uid in ranking if uid not in hidden] for ranking in rankings]


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("way", HIDE)
def test_what_is_hidden_is_found_by_nobody_until_it_is_restored(open_memory, ledger, way):
    memory, late = open_memory(embedder=embedder()), open_memory(embedder=embedder())
    ids = filled(memory, 300)
    before, ranked = answers(memory), {str(f): ranking(memory, **f) for f in FILTERS}
    hidden = set(random.Random(3).sample(ids, 40))
    for uid in sorted(hidden):
        HIDE[way](ledger, uid)
    for reader in (memory, late):
        for filters in FILTERS:
            assert ranking(reader, **filters) == without(ranked[str(filters)], hidden)
        for mode in ("hybrid", "spreading"):
            for accuracy in ("high", "fast"):
                assert hidden.isdisjoint(chain(*ranking(reader, mode, accuracy)))
        assert reader.count() == 260
        listed = [one.id for one in reader.episodes(limit=1000, newest_first=False).episodes]
        assert listed == [uid for uid in ids if uid not in hidden]
    for uid in sorted(hidden):
        ledger.restore(uid)
    assert answers(memory) == before
    assert_true(memory)
    assert memory.check() == []


@pytest.mark.usefixtures("parts")
def test_the_withheld_are_the_hidden_and_the_quarantined(memory, ledger):
    ids = filled(memory, 60)
    memory.recall("w1")
    quarantined = memory.observe("w1 w2", quarantined=True)
    for uid in ids[10:13]:
        ledger.invalidate(uid)
    with memory._store.reading():
        index = memory._current_index()
        index.refresh()
        [*parts] = index.select(EpisodeFilter(standing="withheld"))
        keys = [part.keys[one.rows] for part, one in zip(index.parts, parts, strict=True)]
        found = memory._store.episodes.fetch(np.concatenate(keys))
        counted = memory._store.episodes.count(EpisodeFilter(standing="withheld"))
    assert [one.id for one in found] == [*ids[10:13], quarantined]
    assert counted == 4


def test_a_forgotten_memory_cannot_be_read_and_can_be_erased(memory, ledger):
    uid = memory.observe("tea")
    ledger.hide(uid)
    with pytest.raises(NotFound):
        memory.get(uid)
    memory.forget(uid)
    with pytest.raises(NotFound):
        ledger.restore(uid)


def test_an_invalidated_memory_can_be_read_by_its_id(memory, ledger):
    uid = memory.observe("tea")
    ledger.invalidate(uid)
    assert memory.get(uid).content == "tea"


def test_reflection_leaves_out_what_is_hidden(open_memory, ledger):
    memory = open_memory(llm=StubLLMAdapter(facts=[]))
    kept, hidden = memory.observe("tea"), memory.observe("coffee")
    ledger.hide(hidden)
    assert memory.reflect().episodes_processed == 1
    assert memory.get(kept)


def test_the_exchange_format_leaves_out_what_is_hidden_and_lines_do_not(
    memory, ledger, file, other
):
    kept, hidden = memory.observe("tea"), memory.observe("coffee")
    ledger.set_status(hidden, "superseded", reason="there is better tea")
    assert [row["id"] for row in memory.export_json(file)["episodes"]] == [kept]
    memory.export_lines(file)
    other.import_lines(file)
    assert other.count() == 1
    assert [hit.episode.id for hit in other.recall("coffee", 5)] == [kept]
