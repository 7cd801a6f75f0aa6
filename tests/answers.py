"""What a store answers, as values to compare, and whether that is the truth."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import numpy as np
from plain_twin import stored
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput
from engram.index import ranking
from engram.storage import EpisodeFilter

START = datetime(2025, 1, 1, tzinfo=UTC)
DIM = 8
WORDS = [*(f"w{n}" for n in range(40)), "don't", "on-call"]
QUERIES = ("w1 w2", "w7 don't w8 on-call")
FILTERS = (
    {},
    {"tags": ["t3"]},
    {"actors": ["ann"], "provenance": "user"},
    {"since": START + timedelta(hours=100), "until": START + timedelta(hours=300)},
)

Answer = list[tuple[str, float, float]]


def embedder() -> WordEmbedder:
    return WordEmbedder(DIM)


def filled(memory: Engram, count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return memory.observe_many(
        ObserveInput(
            " ".join(chance.choices(WORDS, k=5)),
            tags=[f"t{chance.randrange(5)}"],
            actors=chance.sample(["ann", "bob"], 1),
            provenance=chance.choice(["user", "tool"]),
            timestamp=START + timedelta(hours=number),
        )
        for number in range(count)
    )


def answers(memory: Engram) -> list[Answer]:
    """What recalls find that are certain of it: by meaning, by words as well, with filters."""
    return [
        [
            (hit.episode.id, hit.score, hit.distance)
            for hit in memory.recall(query, 12, mode=mode, accuracy="exact", **filters)
        ]
        for query in QUERIES
        for mode in ("cosine", "hybrid")
        for filters in FILTERS
    ]


def assert_true(memory: Engram, k: int = 40) -> None:
    """Recalls by meaning must be brute force over the stored vectors, those by words FTS5's."""
    store = memory._store
    for query in QUERIES:
        found = [hit.episode.id for hit in memory.recall(query, k, mode="cosine", accuracy="exact")]
        with store.reading():
            index = memory._current_index()
            index.refresh()
            with patch.multiple(ranking, K1=1.2, B=0.75):
                ours = index.match(query, EpisodeFilter(), k)
            theirs = store.text.search(query, EpisodeFilter(), k)
            batches = list(store.embeddings.between(1, 2**62, store.model()))
            keys = np.concatenate([batch.episodes for batch in batches])
            apart = np.concatenate([batch.vectors for batch in batches]).astype(np.float64)
            apart -= stored(embedder().vector(query))
            nearest = keys[np.lexsort((keys, np.linalg.norm(apart, axis=1)))[:k]]
            expected = [episode.id for episode in store.episodes.fetch(nearest)]
        assert found == expected
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9)
