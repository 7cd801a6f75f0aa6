from __future__ import annotations

import json

import numpy as np
import pytest
from stand_ins import WordEmbedder

from engram.bench.corpus import Vectors, read_texts, read_vectors, take_texts
from engram.bench.vector_cache import embedded
from engram.cli.failures import BadFileError

GIVEN = [f"text {n} has words of its own, w{n} and v{n}" for n in range(40)]


def test_texts_are_given_then_spliced():
    texts = take_texts(GIVEN, 100, 0)
    assert texts.stored[:36] == GIVEN[:36]
    assert texts.held_out == GIVEN[36:]
    assert (len(texts.stored), texts.read) == (100, 36)
    assert not set(texts.stored[36:]) & set(GIVEN)
    assert take_texts(GIVEN, 60, 0).stored == texts.stored[:60]


def test_fewer_texts_than_given():
    texts = take_texts(GIVEN, 10, 0)
    assert texts.stored == GIVEN[:10]
    assert texts.held_out == GIVEN[36:]


def test_without_texts_sentences_are_generated():
    texts = take_texts(None, 20, 0)
    assert (len(texts.stored), texts.read) == (20, 0)
    assert not set(texts.stored) & set(texts.held_out)


@pytest.mark.parametrize("name", ["texts.json", "texts.txt"])
def test_texts_are_read_from_a_list_or_from_lines(tmp_path, name):
    file = tmp_path / name
    file.write_text(json.dumps(GIVEN) if name.endswith("json") else "\n\n".join(GIVEN))
    assert read_texts(file) == GIVEN


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", b'{"a": 1}'), ("a.json", b"[1, 2]"), ("a.txt", b"\xff\n\xfe"), ("a.txt", b"one")],
)
def test_what_is_no_list_of_texts_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadFileError):
        read_texts(tmp_path / name)


@pytest.fixture
def real() -> np.ndarray:
    chance = np.random.default_rng(3)
    # Vectors that fill some directions more than others.
    vectors = chance.normal(size=(300, 16)) * np.linspace(2.0, 0.1, 16)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)


def test_made_up_vectors_have_unit_length(real):
    vectors = Vectors(real, seed=0).rows(0, 9000)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(vectors[:300], real, atol=1e-3)
    # One in 300 draws the same vector twice and moves along nothing.
    assert len(np.unique(vectors, axis=0)) > 8900


def test_made_up_vectors_spread_as_the_real_ones_do(real):
    made = Vectors(real, seed=0).rows(300, 9000)
    ours, theirs = made.std(axis=0), real.astype(np.float32).std(axis=0)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98


@pytest.mark.parametrize("step", [1, 7, 500, 4096])
def test_rows_do_not_depend_on_how_they_are_read(real, step):
    whole = Vectors(real, seed=5).rows(250, 250 + 40 * min(step, 250))
    pieces = Vectors(real, seed=5)
    stop = 250 + len(whole)
    read = [pieces.rows(at, min(at + step, stop)) for at in range(250, stop, step)]
    np.testing.assert_array_equal(np.concatenate(read), whole)


def test_the_share_of_real_vectors(real):
    vectors = Vectors(real, 0)
    assert vectors.real_share(100) == 1.0
    assert vectors.real_share(1200) == 0.25


def test_vectors_are_read_from_either_file(tmp_path, real):
    np.save(tmp_path / "v.npy", real)
    (tmp_path / "v.f16").write_bytes(real.tobytes() + b"half a row")
    for name in ("v.npy", "v.f16"):
        np.testing.assert_array_equal(read_vectors(tmp_path / name, 16), real)


@pytest.mark.parametrize(
    "content",
    [
        np.zeros((3, 5), np.float32),
        np.zeros(16, np.float32),
        np.zeros((3, 16), np.int64),
        np.zeros((0, 16), np.float32),
    ],
)
def test_other_vectors_are_refused(tmp_path, content):
    np.save(tmp_path / "v.npy", content)
    with pytest.raises(BadFileError):
        read_vectors(tmp_path / "v.npy", 16)


def test_a_file_without_a_row_is_refused(tmp_path):
    for name in ("v.npy", "v.f16"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(BadFileError):
            read_vectors(tmp_path / name, 16)


class TestCache:
    def silent(self, _done, _total):
        """Show nothing."""

    def test_a_text_is_embedded_once(self):
        words = WordEmbedder()
        first = embedded(["a b", "c", "a b"], words, self.silent)
        assert words.embedded == 2
        again = embedded(["c", "a b", "d"], words, self.silent)
        assert words.embedded == 3
        np.testing.assert_array_equal(first[[1, 0]], again[:2])
        np.testing.assert_allclose(first[0], words.vector("a b"), atol=1e-3)

    def test_another_model_has_its_own(self):
        embedded(["a"], WordEmbedder(), self.silent)
        other = WordEmbedder(dim=8, fingerprint="other")
        assert embedded(["a"], other, self.silent).shape == (1, 8)
        assert other.embedded == 1

    def test_what_was_left_half_written_is_cut_off(self, tmp_path):
        kept = embedded(["a", "b"], WordEmbedder(), self.silent)
        (file,) = (tmp_path / "cache/engram/bench").glob("*.f32")
        with file.open("ab") as out:
            out.write(b"12345")
        words = WordEmbedder()
        again = embedded(["b", "c", "a"], words, self.silent)
        assert words.embedded == 1
        np.testing.assert_array_equal(again[[2, 0]], kept)
        np.testing.assert_allclose(again[1], words.vector("c"), atol=1e-3)

    def test_progress_ends_at_the_whole(self):
        shown: list[tuple[int, int]] = []
        embedded(["a", "b"], WordEmbedder(), lambda done, total: shown.append((done, total)))
        assert shown == [(0, 2), (2, 2)]
