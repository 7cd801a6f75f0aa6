from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from engram.embedding import (
    DocumentEmbedder,
    Embedder,
    OnnxEmbedder,
    embed_documents,
    embed_query,
)
from engram.errors import InvalidArgument, InvalidType

if TYPE_CHECKING:
    from collections.abc import Callable


class Foreign:
    """Returns whatever the test says."""

    def __init__(self, returned: object, dim: object = 3, fingerprint: object = "foreign") -> None:
        self.dim = dim
        self.fingerprint = fingerprint
        self.returned = returned

    def embed(self, texts: list[str]) -> object:
        return self.returned


class Chunked(Foreign):
    def __init__(self, vectors: object, counts: object) -> None:
        super().__init__(None)
        self.documents = (vectors, counts)

    def embed_documents(self, texts: list[str]) -> object:
        return self.documents

    def embed_query(self, text: str) -> object:
        return self.returned


def test_plain_attributes_make_an_embedder(small: Callable[..., OnnxEmbedder]) -> None:
    assert isinstance(Foreign(None), Embedder)
    assert not isinstance(Foreign(None), DocumentEmbedder)
    assert isinstance(small(), DocumentEmbedder)


def test_a_plain_embedder_gives_one_chunk_per_text() -> None:
    vectors, counts = embed_documents(Foreign([[3, 0, 4], [0, 0, 0]]), ["a", "b"])
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, [[0.6, 0, 0.8], [0, 0, 0]])
    assert counts.tolist() == [1, 1]
    assert counts.dtype == np.int64


def test_a_plain_embedder_embeds_queries_the_same_way() -> None:
    vector = embed_query(Foreign([[3.0, 0.0, 4.0]]), "a")
    assert vector.shape == (3,)
    assert np.allclose(vector, [0.6, 0, 0.8])


def test_no_texts_do_not_call_the_embedder() -> None:
    vectors, counts = embed_documents(Foreign("never looked at"), [])
    assert vectors.shape == (0, 3)
    assert counts.shape == (0,)


def test_chunks_and_queries_come_from_a_document_embedder() -> None:
    embedder = Chunked(np.eye(3), [1, 2])
    vectors, counts = embed_documents(embedder, ["a", "b"])
    assert np.array_equal(vectors, np.eye(3))
    assert counts.tolist() == [1, 2]
    embedder.returned = [0.0, 2.0, 0.0]
    assert embed_query(embedder, "a").tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (None, InvalidType),
        ("secret text", InvalidType),
        ([["1", "2", "3"]], InvalidType),
        ([[1, 2], [3]], InvalidType),
        ([[True, False, True]], InvalidType),
        (np.ones((1, 3), complex), InvalidType),
        ([1.0, 2.0, 3.0], InvalidArgument),
        ([[1.0, 2.0]], InvalidArgument),
        ([[1.0, 2.0, 3.0]] * 2, InvalidArgument),
        ([[1.0, np.nan, 3.0]], InvalidArgument),
        ([[1.0, -np.inf, 3.0]], InvalidArgument),
        ([[1e300, 0.0, 0.0]], InvalidArgument),
    ],
)
def test_what_an_embedder_must_not_return(returned: object, error: type[Exception]) -> None:
    for call in (lambda e: embed_documents(e, ["a"]), lambda e: embed_query(e, "a")):
        with pytest.raises(error) as raised:
            call(Foreign(returned))
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("vectors", "counts", "error"),
    [
        (np.eye(3), [1.0, 2.0], InvalidType),
        (np.eye(3), [3], InvalidArgument),
        (np.eye(3), [0, 3], InvalidArgument),
        (np.eye(3), [1, 1], InvalidArgument),
    ],
)
def test_chunk_counts_are_checked(vectors: object, counts: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        embed_documents(Chunked(vectors, counts), ["a", "b"])


def test_document_embedders_must_return_their_shapes() -> None:
    embedder = Chunked(None, None)
    embedder.documents = np.eye(3)
    with pytest.raises(InvalidType, match=r"\(vectors, counts\)"):
        embed_documents(embedder, ["a"])
    embedder.returned = [[1.0, 0.0, 0.0]]
    with pytest.raises(InvalidArgument, match="shape"):
        embed_query(embedder, "a")


@pytest.mark.parametrize(
    ("dim", "fingerprint", "error"),
    [
        ("3", "f", InvalidType),
        (True, "f", InvalidType),
        (3, None, InvalidType),
        (0, "f", InvalidArgument),
        (3, "", InvalidArgument),
    ],
)
def test_what_is_no_embedder(dim: object, fingerprint: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        embed_documents(Foreign([[1.0] * 3], dim, fingerprint), ["a"])
    with pytest.raises(InvalidType):
        embed_query(object(), "a")


def test_texts_must_be_text() -> None:
    with pytest.raises(InvalidType, match="bytes"):
        embed_documents(Foreign([[1.0] * 3]), [b"a"])
    with pytest.raises(InvalidType, match="NoneType"):
        embed_query(Foreign([[1.0] * 3]), None)


def test_lengths_never_over_or_underflow() -> None:
    vectors, _ = embed_documents(Foreign([[1e38] * 3, [1e-40, 0, 0]]), ["a", "b"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)


def test_unit_vectors_keep_their_bits() -> None:
    once, _ = embed_documents(Foreign(np.random.default_rng(1).normal(size=(50, 3))), ["a"] * 50)
    again, _ = embed_documents(Foreign(once), ["a"] * 50)
    assert np.array_equal(once, again)
