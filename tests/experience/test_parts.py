"""What an experience is made of is embedded part by part."""

from __future__ import annotations

import numpy as np
import pytest
from plain_twin import stored
from stand_ins import WordEmbedder

from engram.experience import ExperienceMemory


@pytest.fixture
def experiences(path, clock):
    with ExperienceMemory(path, embedder=WordEmbedder(), clock=clock) as opened:
        yield opened


def parts(experiences: ExperienceMemory, *keys: int):
    store = experiences._store
    with store.reading():
        model = store.model()
        assert model is not None
        return store.embeddings.fields(np.array(keys, dtype=np.int64), model)


def test_each_vector_names_its_part(experiences, open_memory):
    experiences.store("red lamp", " ", "green lamp")
    open_memory().observe("blue lamp")
    experiences.store("", "", "")
    episodes, fields, vectors = parts(experiences, 1, 2, 3, 4)
    assert episodes.tolist() == [1, 1, 2, 3]
    assert fields.tolist() == [0, 2, -1, 0]
    texts = ["red lamp", "green lamp", "blue lamp", ""]
    expected = np.array([stored(WordEmbedder().vector(text)) for text in texts])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_of_no_episode_there_are_no_parts(experiences):
    experiences.store("red lamp", "", "")
    episodes, fields, vectors = parts(experiences)
    assert (episodes.shape, fields.shape, vectors.shape) == ((0,), (0,), (0, 32))
