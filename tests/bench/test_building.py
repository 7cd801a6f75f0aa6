from __future__ import annotations

import numpy as np
import pytest
from stand_ins import WordEmbedder

from engram import Engram
from engram.bench.building import HALF, NOW, Clock, add_graph, fill
from engram.bench.corpus import Vectors
from engram.bench.files import drop_from_page_cache, file_sizes
from engram.bench.precomputed import PrecomputedEmbedder
from engram.bench.sentences import sentences

COUNT = 2000


def silent(_done, _total):
    """Show nothing."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "s.engram"
    texts = sentences(COUNT, 0)
    vectors = Vectors(WordEmbedder().embed(texts), 0)
    embedder = PrecomputedEmbedder("words", None, 32, ["?"], vectors.rows(7, 8))
    ids, seconds = fill(path, texts, vectors, embedder, {}, silent)
    assert seconds > 0
    return path, texts, ids, embedder


@pytest.fixture
def store(filled):
    path, _, _, embedder = filled
    with Engram(path, embedder=embedder, clock=Clock()) as memory:
        yield memory


def test_every_agent_has_its_share(filled, store):
    assert store.list_agents() == ["bulk", "mid", "solo"]
    assert store.count() == COUNT
    for agent, count in (("solo", 5), ("mid", 200), ("bulk", 1795)):
        with Engram(filled[0], agent_id=agent) as memory:
            assert memory.count() == count


def test_vectors_belong_to_their_texts(filled, store):
    hit = store.recall("?", 1, mode="cosine")[0]
    assert hit.episode.content == filled[1][7]
    assert hit.distance == pytest.approx(0.0, abs=1e-2)


@pytest.mark.parametrize(("tag", "share"), [("50", 0.5), ("10", 0.1), ("1", 0.01), ("0.1", 0.001)])
def test_tags_are_on_their_share(store, tag, share):
    assert store.count(tags=[tag]) == pytest.approx(share * COUNT, abs=2)


def test_half_had_happened(store):
    assert store.count(until=HALF) == COUNT // 2 + 1
    assert store.count(until=NOW) == COUNT


def test_half_can_be_pruned(store):
    assert len(store.prune(preview=True, threshold=0.45)) == COUNT // 2


def test_the_graph_links_every_episode(filled, store, tmp_path):
    assert add_graph(store, filled[2], tmp_path / "graph.jsonl", 0) > 0
    assert store.check() == []
    store.export_lines(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8")
    assert lines.count('"kind":"edge"') > 1.9 * COUNT
    assert len(store.recall("?", 5, mode="spreading")) == 5


def test_a_store_counts_all_its_files(tmp_path):
    for name in ("s.engram", "s.engram-wal", "s.engram.cache", "other"):
        (tmp_path / name).write_bytes(b"12345678")
    assert file_sizes(tmp_path / "s.engram") == {"": 8, "-wal": 8, ".cache": 8}
    assert drop_from_page_cache(tmp_path / "s.engram")


def test_an_embedder_that_was_given_other_vectors_says_so():
    embedder = PrecomputedEmbedder("words", None, 4, [], np.empty((0, 4), np.float32))
    with pytest.raises(ValueError, match="0 vectors"):
        embedder.embed(["a"])
