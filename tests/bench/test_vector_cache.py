"""Vectors on disk by their texts, and the model that keeps its own there."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from engram.bench.judged.running import cached
from engram.bench.vector_cache import CachedEmbedder, VectorCache
from engram.embedding import OnnxEmbedder, resolve

TEXTS = ["a first text", "a second one", "long " * 400, "", "a first text"]


def rows(*lengths: int, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    total = sum(lengths)
    vectors = np.arange(start, start + 4 * total, dtype=np.float32).reshape(total, 4)
    return vectors, np.array(lengths, np.int64)


@pytest.fixture
def cache(tmp_path) -> VectorCache:
    return VectorCache(tmp_path / "kept", "model", 4)


def test_texts_have_the_chunks_they_were_given(cache, tmp_path):
    vectors, counts = rows(2, 1, 3)
    cache.put(["a", "b", "c"], vectors, counts)
    for one in (cache, VectorCache(tmp_path / "kept", "model", 4)):
        found, lengths = one.get(["c", "a", "c"])
        np.testing.assert_array_equal(found, vectors[[3, 4, 5, 0, 1, 3, 4, 5]])
        assert lengths.tolist() == [3, 2, 3]


def test_what_a_text_has_stays(cache):
    first, second = rows(1), rows(1, 1, start=100)
    cache.put(["a"], *first)
    cache.put(["a", "b"], *second)
    np.testing.assert_array_equal(
        cache.get(["a", "b"])[0], np.concatenate([first[0], second[0][1:]])
    )


def test_two_of_them_learn_from_each_other(cache, tmp_path):
    other = VectorCache(tmp_path / "kept", "model", 4)
    cache.put(["a"], *rows(2))
    other.put(["b"], *rows(1, start=50))
    cache.put(["c"], *rows(1, start=90))
    np.testing.assert_array_equal(cache.get(["b"])[0], rows(1, start=50)[0])
    np.testing.assert_array_equal(cache.get(["c"])[0], rows(1, start=90)[0])
    with pytest.raises(KeyError):
        other.get(["c"])  # as of its last write


def test_another_model_has_its_own(cache, tmp_path):
    cache.put(["a"], *rows(1))
    with pytest.raises(KeyError):
        VectorCache(tmp_path / "kept", "another", 4).get(["a"])


@pytest.mark.parametrize("ending", [".entries", ".f32"])
def test_what_was_half_written_is_cut_off(cache, tmp_path, ending):
    cache.put(["a"], *rows(2))
    (file,) = (tmp_path / "kept").glob(f"*{ending}")
    with file.open("ab") as out:
        out.write(b"half of it")
    again = VectorCache(tmp_path / "kept", "model", 4)
    again.put(["b"], *rows(1, start=50))
    np.testing.assert_array_equal(again.get(["a"])[0], rows(2)[0])
    np.testing.assert_array_equal(again.get(["b"])[0], rows(1, start=50)[0])


@pytest.mark.parametrize("opened_before", [False, True], ids=["opened after", "opened before"])
@pytest.mark.parametrize("ending", [".entries", ".f32"])
@pytest.mark.parametrize("cut", [0, 1, 16, 31, 32, 33, 35, 36, 47, 48, 49, 71, 72, 73, 95, 96])
def test_of_files_that_were_cut_short_what_is_whole_stays(tmp_path, ending, cut, opened_before):
    """Three texts of 2, 1 and 3 chunks: 108 bytes of entries and 96 bytes of vectors."""
    vectors, counts = rows(2, 1, 3, start=1)
    places = dict(zip("abc", np.split(vectors, [2, 3]), strict=True))
    before = VectorCache(tmp_path, "model", 4)
    before.put(["a", "b", "c"], vectors, counts)
    (file,) = tmp_path.glob(f"*{ending}")
    with file.open("r+b") as opened:
        opened.truncate(cut)
    ends = {".entries": (36, 72, 108), ".f32": (32, 48, 96)}[ending]
    lost = [text for text, end in zip("abc", ends, strict=True) if end > cut]
    embedded = []

    def embed(texts):
        embedded.extend(texts)
        parts = [places[text] for text in texts]
        return np.concatenate(parts), np.array([len(part) for part in parts])

    for cache in (before, before) if opened_before else (VectorCache(tmp_path, "model", 4),):
        cache.fill(["a", "b", "c"], embed)
    assert embedded == lost
    for one in (cache, VectorCache(tmp_path, "model", 4)):
        found, lengths = one.get(["a", "b", "c"])
        np.testing.assert_array_equal(found, vectors)
        assert lengths.tolist() == [2, 1, 3]


@pytest.mark.parametrize("ending", [".entries", ".f32"])
def test_of_a_file_that_is_gone_everything_is_embedded_again(cache, tmp_path, ending):
    cache.put(["a"], *rows(2, start=1))
    (file,) = (tmp_path / "kept").glob(f"*{ending}")
    file.unlink()
    for one in (cache, VectorCache(tmp_path / "kept", "model", 4)):
        one.fill(["a"], lambda _: rows(2, start=50))
        np.testing.assert_array_equal(one.get(["a"])[0], rows(2, start=50)[0])


@pytest.mark.parametrize(("lengths", "texts"), [((1, 1), ["a"]), ((1,), ["a", "b"])])
def test_vectors_that_do_not_fit_the_texts_are_refused(cache, lengths, texts):
    with pytest.raises(ValueError, match="do not fit"):
        cache.put(texts, *rows(*lengths))
    with pytest.raises(ValueError, match="do not fit"):
        cache.put(["a"], np.zeros((1, 5), np.float32), np.ones(1, np.int64))


class TestModel:
    @pytest.fixture
    def model(self) -> OnnxEmbedder:
        return resolve("all-MiniLM-L6-v2-int8")

    def test_vectors_are_the_models_own_bit_for_bit(self, model, tmp_path):
        wanted, counts = model.embed_documents(TEXTS)
        assert counts.tolist()[2] > 1
        for _ in range(2):  # embedded, then kept
            kept = CachedEmbedder(model, tmp_path / "kept")
            found, lengths = kept.embed_documents(TEXTS)
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(lengths, counts)
        one_by_one = CachedEmbedder(model, tmp_path / "other")
        found = np.concatenate([one_by_one.embed_documents([text])[0] for text in TEXTS])
        np.testing.assert_array_equal(found, wanted)

    def test_it_is_one_of_its_kind(self, model, tmp_path):
        kept = cached(model, tmp_path)
        assert isinstance(kept, OnnxEmbedder)
        assert (kept.name, kept.fingerprint, kept.dim) == (model.name, model.fingerprint, 384)
        np.testing.assert_array_equal(kept.embed_query("what?"), model.embed_query("what?"))

    def test_vectors_that_were_put_there_are_taken(self, model, tmp_path):
        kept = CachedEmbedder(model, tmp_path)
        vectors = np.eye(2, 384, dtype=np.float32)
        kept.put(["a", "b"], vectors, np.ones(2, np.int64))
        np.testing.assert_array_equal(kept.embed_documents(["b", "a"])[0], vectors[::-1])

    def test_a_model_that_runs_nothing_keeps_nothing(self, tmp_path):
        plain = resolve("deterministic")
        assert cached(plain, tmp_path / "none") is plain
        assert not (tmp_path / "none").exists()


def test_processes_write_side_by_side(tmp_path):
    child = """
import sys
import numpy as np
from pathlib import Path
from engram.bench.vector_cache import VectorCache
cache = VectorCache(Path(sys.argv[1]), "model", 4)
for n in range(40):
    name = f"{sys.argv[2]} {n}"
    cache.put([name, f"both {n}"], np.full((3, 4), n, np.float32), np.array([2, 1]))
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", child, str(tmp_path), who], env=os.environ)
        for who in ("a", "b")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    cache = VectorCache(tmp_path, "model", 4)
    for n in range(40):
        found, counts = cache.get([f"a {n}", f"b {n}", f"both {n}"])
        assert counts.tolist() == [2, 2, 1]
        np.testing.assert_array_equal(found, np.full((5, 4), n))
