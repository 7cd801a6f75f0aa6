"""Whatever the segments look like, an exact recall is NumPy's brute force and words are FTS5's."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from plain_twin import headed, stored
from stand_ins import WordEmbedder

from engram import Engram, ObserveInput
from engram.embedding import embed_documents
from engram.models import Filters
from engram.storage import EpisodeFilter

pytestmark = pytest.mark.usefixtures("small_segments", "fts5_constants")

WORDS = [*(f"w{n}" for n in range(50)), "do-w1", "it's", "w1.w2.w1", "é-w3"]
START = datetime(2025, 1, 1, tzinfo=UTC)


class ChunkEmbedder(WordEmbedder):
    """Every three words of a text are a chunk."""

    def chunks(self, text: str) -> list[str]:
        words = text.split()
        return [" ".join(words[at : at + 3]) for at in range(0, len(words), 3)]

    def embed_documents(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        parts = [self.chunks(text) for text in texts]
        vectors = self.embed([part for one in parts for part in one])
        return vectors, np.array([len(one) for one in parts], dtype=np.int64)

    def embed_query(self, text: str) -> np.ndarray:
        return self.embed([text])[0]


class Plain:
    """The same episodes in lists."""

    def __init__(self, embedder: WordEmbedder) -> None:
        self.embedder = embedder
        self.ids: list[str] = []
        self.items: list[tuple[str | None, ObserveInput]] = []
        self.chunks = np.empty((0, embedder.dim))
        self.owners: list[int] = []
        self.gone: set[str] = set()

    def add(self, ids: list[str], agent: str | None, items: list[ObserveInput]) -> None:
        added: list[list[np.ndarray]] = []
        for at, item in enumerate(items, len(self.ids)):
            text = headed(item.actors, item.timestamp, item.content)
            vectors, _ = embed_documents(self.embedder, [text])
            added.append([stored(vector) for vector in vectors])
            self.owners += [at] * len(vectors)
        self.chunks = np.concatenate((self.chunks, *added))
        self.ids += ids
        self.items += [(agent, item) for item in items]

    def nearest(self, query: str, k: int, allowed: Callable[..., bool]) -> list[str]:
        vector = stored(WordEmbedder().vector(query)).astype(np.float64)
        apart = self.chunks - vector
        best = np.full(len(self.ids), np.inf)
        np.minimum.at(best, self.owners, np.sqrt(np.einsum("ij,ij->i", apart, apart)))
        kept = [
            at
            for at, (agent, item) in enumerate(self.items)
            if self.ids[at] not in self.gone and allowed(agent, item)
        ]
        return [self.ids[kept[place]] for place in np.argsort(best[kept], kind="stable")[:k]]


def filled(memories: dict[str | None, Engram], plain: Plain, count: int, seed: int) -> None:
    rng = random.Random(seed)
    while len(plain.ids) < count:
        agent = rng.choice(list(memories))
        items = [
            ObserveInput(
                " ".join(rng.choices(WORDS, k=rng.randrange(1, 9))),
                tags=[f"t{share}" for share in (2, 10, 100) if rng.randrange(share) == 0],
                actors=rng.sample(["ann", "bob"], rng.randrange(3)),
                timestamp=START + timedelta(minutes=len(plain.ids) + rng.randrange(300)),
                provenance=rng.choice(["user", "tool", "external"]),
                quarantined=rng.random() < 0.2,
            )
            for _ in range(rng.choice([1, 3, 40, 120]))
        ]
        plain.add(memories[agent].observe_many(items), agent, items)


FILTERS: list[tuple[Filters, Callable[[str | None, ObserveInput], bool]]] = [
    ({}, lambda agent, item: True),
    ({"tags": ["t2"]}, lambda agent, item: "t2" in item.tags),
    ({"tags": ["t10"]}, lambda agent, item: "t10" in item.tags),
    ({"tags": ["t100"]}, lambda agent, item: "t100" in item.tags),
    ({"tags": ["t2", "t10"], "actors": ["ann"]},
     lambda agent, item: {"t2", "t10"} <= set(item.tags) and "ann" in item.actors),
    ({"tags": ["nobody's"]}, lambda agent, item: False),
    ({"provenance": "user"}, lambda agent, item: item.provenance == "user"),
    ({"exclude_quarantined": True}, lambda agent, item: not item.quarantined),
    ({"until": START + timedelta(minutes=800)},
     lambda agent, item: item.timestamp <= START + timedelta(minutes=800)),
    ({"since": START + timedelta(minutes=1100)},
     lambda agent, item: item.timestamp >= START + timedelta(minutes=1100)),
    ({"since": START + timedelta(minutes=500), "until": START + timedelta(minutes=503)},
     lambda agent, item: 500 <= (item.timestamp - START) / timedelta(minutes=1) <= 503),
    ({"since": START + timedelta(minutes=300), "tags": ["t2"], "provenance": ["tool", "user"]},
     lambda agent, item: item.timestamp >= START + timedelta(minutes=300)
     and "t2" in item.tags and item.provenance in ("tool", "user")),
]  # fmt: skip


@pytest.fixture(params=[WordEmbedder, ChunkEmbedder])
def embedder(request) -> WordEmbedder:
    return request.param()


@pytest.fixture
def memories(open_memory, embedder) -> dict[str | None, Engram]:
    return {agent: open_memory(agent, embedder=embedder) for agent in (None, "a", "b")}


def compare(memories: dict[str | None, Engram], plain: Plain, seed: int) -> None:
    rng = random.Random(seed)
    for scope, memory in memories.items():
        for filters, allowed in FILTERS:
            query = " ".join(rng.choices(WORDS, k=4))
            k = rng.choice([1, 5, 40, 4096])
            found = memory.recall(query, k, mode="cosine", accuracy="exact", **filters)
            expected = plain.nearest(
                query,
                k,
                lambda agent, item, scope=scope, allowed=allowed: (
                    scope in (None, agent) and allowed(agent, item)
                ),
            )
            assert [hit.episode.id for hit in found] == expected
            assert all(hit.certificate is not None and hit.certificate.exact for hit in found)
            same_words(memory, query, scope, filters)


def same_words(memory: Engram, query: str, scope: str | None, filters: Filters) -> None:
    allowed = EpisodeFilter(agent=scope)
    if filters.keys() <= {"tags"}:
        allowed = EpisodeFilter(agent=scope, tags=tuple(filters.get("tags") or ()))
    with memory._store.reading():
        index = memory._current_index()
        index.refresh()
        ours = index.match(query, allowed, 30)
        theirs = memory._store.text.search(query, allowed, 30)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("deleted", [0.0, 0.5, 0.9])
def test_exact_recall_is_brute_force(memories, deleted, open_memory, embedder):
    plain = Plain(embedder)
    rng = random.Random(3)
    filled(memories, plain, 700, 1)
    compare(memories, plain, 2)
    filled(memories, plain, 1300, 4)
    for uid in rng.sample(plain.ids, int(deleted * len(plain.ids))):
        memories[None].forget(uid)
        plain.gone.add(uid)
    compare(memories, plain, 5)
    filled(memories, plain, 1500, 6)
    compare(memories, plain, 7)
    memories[None].maintain()
    compare(memories, plain, 8)
    for memory in memories.values():
        memory.close()
    again = {agent: open_memory(agent, embedder=embedder) for agent in memories}
    compare(again, plain, 9)
    filled(again, plain, 1600, 10)
    compare(again, plain, 11)


def test_no_filter_costs_answers(memories, embedder):
    plain = Plain(embedder)
    filled(memories, plain, 900, 1)
    for accuracy in ("high", "fast"):
        for filters, allowed in FILTERS:
            for k in (1, 7, 300):
                found = memories["a"].recall("w1 w2", k, accuracy=accuracy, **filters)
                count = sum(agent == "a" and allowed(agent, item) for agent, item in plain.items)
                assert len(found) == min(k, count)
                assert len({hit.episode.id for hit in found}) == len(found)
