"""The embedder without a model: its arithmetic, and its name."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram import Engram
from engram.embedding import DeterministicEmbedder, embed_documents, embed_query, resolve
from engram.errors import ModelMismatch

TEXTS = st.text(max_size=40) | st.text(max_size=3).map(lambda text: text * 700)


def plain(text: str) -> list[float]:
    numbers = [0.0] * 1024
    for place, byte in enumerate(text.encode()):
        numbers[place % 1024] += byte / 255
    length = max(math.sqrt(sum(number * number for number in numbers)), 1e-10)
    return [number / length for number in numbers]


@given(st.lists(TEXTS, max_size=4))
def test_it_adds_up_bytes(texts):
    found = DeterministicEmbedder().embed(texts)
    assert found.shape == (len(texts), 1024)
    assert found.dtype == np.float32
    for row, text in zip(found, texts, strict=True):
        np.testing.assert_allclose(row, plain(text), atol=1e-6)


def test_texts_of_similar_bytes_are_near_and_the_empty_one_is_zero():
    vectors, counts = embed_documents(resolve("deterministic"), ["auth fails", "auth faint", ""])
    assert counts.tolist() == [1, 1, 1]
    assert vectors[0] @ vectors[1] > 0.99
    assert not vectors[2].any()
    np.testing.assert_array_equal(embed_query(resolve("deterministic"), "auth fails"), vectors[0])


def test_a_store_written_with_it_is_opened_by_nobodys_name(path):
    with Engram(path, embedder_model="deterministic") as memory:
        uid = memory.observe("auth fails")
    with Engram(path) as memory:
        assert (memory.model().name, memory.model().dim) == ("deterministic", 1024)
        [hit] = memory.recall("auth fails", mode="cosine")
        assert (hit.episode.id, hit.distance) == (uid, pytest.approx(0.0))
        memory.observe("auth works")
        assert memory.check() == []
    with pytest.raises(ModelMismatch):
        Engram(path, embedder_model="all-MiniLM-L6-v2-int8")


def test_a_store_can_be_moved_to_it(path, memory):
    memory.observe("auth fails")
    assert memory.reembed("deterministic") == 1
    memory.close()
    with Engram(path) as again:
        assert again.recall("auth fails")[0].distance == pytest.approx(0.0)
