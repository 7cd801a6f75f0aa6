"""What is ours in the harness; the engines themselves are not installed here."""

from __future__ import annotations

import numpy as np
import pytest
from peers.protocol import Corpus, searched, size_mb
from peers.run import exact, write_corpus
from stand_ins import WordEmbedder


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.setattr("peers.run.resolve", lambda _: WordEmbedder())
    assert write_corpus(tmp_path / "corpus", [30, 50], 4, 5, (None, None)) == 1.0
    return Corpus(tmp_path / "corpus", 30)


class Scan:
    """A peer that stores nothing and scans."""

    def build(self, store, corpus):
        store.write_bytes(b"x")

    def open(self, store, corpus):
        return lambda vector, k: np.argsort(-(corpus.vectors @ vector))[:k].tolist()


def test_a_peer_that_scans_finds_everything(corpus, tmp_path):
    figures = searched(Scan(), tmp_path / "s", corpus, 5)
    assert figures["recall"] == 1.0
    assert figures["calls"] == 12
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]


def test_a_peer_that_finds_half(corpus, tmp_path):
    class Half(Scan):
        def open(self, store, corpus):
            found = super().open(store, corpus)
            return lambda vector, k: found(vector, k)[: k // 2]

    assert searched(Half(), tmp_path / "s", corpus, 4)["recall"] == 0.5


def test_exact_answers_do_not_depend_on_blocks(monkeypatch):
    chance = np.random.default_rng(2)
    vectors, asked = chance.normal(size=(90, 8)), chance.normal(size=(3, 8))
    whole = np.argsort(-(asked @ vectors.T), axis=1)[:, :10]
    monkeypatch.setattr("peers.run.BLOCK", 17)
    np.testing.assert_array_equal(exact(vectors, asked, 10), whole)
    assert exact(vectors[:4], asked, 10).shape == (3, 4)


def test_the_size_counts_what_lies_beside(tmp_path):
    for name in ("s", "s-wal"):
        (tmp_path / name).write_bytes(b"0" * 10_000)
    assert size_mb(tmp_path / "s") == 0.02
    assert size_mb(tmp_path) == 0.02
