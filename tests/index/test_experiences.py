"""Filters on what an episode is as an experience, and on tags that may change, cost no answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from answers import embedder

from engram import Engram
from engram.embedding import embed_query
from engram.index import nearest
from engram.storage import EpisodeFilter, NewEpisode, NewExperience, as_stored

pytestmark = pytest.mark.usefixtures("small_segments")

TAGS = ("Rust", "rust", "RUST", "Straße", "STRASSE", "new  line", "new line", "plain")
TYPES = ("decision", "pattern", "bugfix")
PROJECTS = (None, "alpha", "beta", "/home/ann/alpha")


@dataclass
class Row:
    agent: str | None
    tags: tuple[str, ...]
    memory_type: str | None = None
    project: str | None = None


class Twin:
    """A store of random experiences and other episodes, and the same in a list."""

    def __init__(self, memory: Engram, count: int, seed: int = 5) -> None:
        self.memory = memory
        self.chance = random.Random(seed)
        self.rows: list[Row] = []
        while len(self.rows) < count:
            self.add(min(self.chance.choice([1, 7, 60]), count - len(self.rows)))

    def add(self, count: int) -> None:
        some = self.chance.choice
        agent, plain = some([None, "a", "b"]), some([True, False, False])
        rows = [
            Row(agent, tuple(self.chance.choices(TAGS, k=some([0, 1, 2, 3]))))
            if plain
            else Row(
                agent,
                tuple(self.chance.choices(TAGS, k=some([0, 1, 2, 3]))),
                some(TYPES),
                some(PROJECTS),
            )
            for _ in range(count)
        ]
        said = [
            NewExperience(row.memory_type, "w1", "w2", "", 0, row.project)
            for row in rows
            if row.memory_type is not None
        ]
        store = self.memory._store
        vectors = as_stored(np.array([embedder().vector("w1")] * count, dtype=np.float32))
        with store.writing():
            stored = store.model()
            store.add_episodes(
                [NewEpisode("w1", 0, tags=row.tags) for row in rows],
                vectors,
                np.ones(count, dtype=np.int64),
                model=stored.id if stored else store.add_model("words", None, vectors.shape[1]),
                agent=agent,
                now=0,
                experiences=said,
            )
        self.rows += rows

    def retag(self) -> None:
        at = self.chance.randrange(len(self.rows))
        row = self.rows[at]
        row.tags = tuple(self.chance.choices(TAGS, k=self.chance.randrange(4)))
        with self.memory._store.writing():
            self.memory._store.retag(at + 1, row.tags, 0)

    def filter(self) -> EpisodeFilter:
        some = self.chance.choice
        return EpisodeFilter(
            agent=some([None, None, "a", "nobody"]),
            tags=some([(), (), ("Rust",), ("nobody's",)]),
            any_case_tags=some([(), ("rUST",), ("rust", "strasse"), ("NEW LINE",), ("missing",)]),
            memory_types=some([(), ("bugfix",), ("decision", "pattern"), ("insight",)]),
            project=some([None, None, "alpha", "/home/ann/alpha", "nobody's"]),
        )

    def keys(self, allowed: EpisodeFilter) -> list[int]:
        return [key for key, row in enumerate(self.rows, 1) if allows(allowed, row)]


def plain(tag: str) -> str:
    return " ".join(tag.casefold().split())


def allows(allowed: EpisodeFilter, row: Row) -> bool:
    return (
        allowed.agent in (None, row.agent)
        and set(allowed.tags) <= set(row.tags)
        and {plain(tag) for tag in allowed.any_case_tags} <= {plain(tag) for tag in row.tags}
        and (not allowed.memory_types or row.memory_type in allowed.memory_types)
        and (allowed.project is None or row.project == allowed.project)
    )


def found(memory: Engram, allowed: EpisodeFilter, k: int) -> Iterator[list[int]]:
    """What a filter lets through: the nearest, the best by words, of SQL all; first k, ascending.

    All rows are equally near and match equally well, so that the first in order win.
    """
    vector = as_stored(embed_query(embedder(), "w1"))
    with memory._store.reading():
        index = memory._current_index()
        index.refresh()
        yield nearest(index, vector, k, allowed, "high").episodes.tolist()
        yield index.match("w1", allowed, k)[0].tolist()
        yield memory._store.text.search("w1", allowed, k)[0].tolist()
        yield memory._store.episodes.matching(allowed).tolist()[:k]
        assert memory._store.episodes.count(allowed) == sum(
            one.count for one in index.select(allowed)
        )


@pytest.mark.parametrize("count", [60, 700])
def test_any_filter_is_a_look_at_every_episode(open_memory, count):
    memory = open_memory(embedder=embedder())
    twin = Twin(memory, count)
    for _ in range(3):
        for _ in range(60):
            allowed, k = twin.filter(), twin.chance.choice([1, 5, 4000])
            expected = twin.keys(allowed)[:k]
            for one in found(memory, allowed, k):
                assert one == expected
        for _ in range(20):
            twin.retag()
        twin.add(10)
    assert bool(memory._index.segments) == (count > 60)
    assert memory.check() == []


def test_new_tags_are_seen_by_every_instance_and_after_a_restart(open_memory):
    memory, other = open_memory(embedder=embedder()), open_memory(embedder=embedder())
    twin = Twin(memory, 300)
    memory.maintain()
    allowed = EpisodeFilter(any_case_tags=("rust",))
    for _ in range(3):
        for one in (memory, other):
            for answer in found(one, allowed, 4000):
                assert answer == twin.keys(allowed)
        for _ in range(40):
            twin.retag()
    for one in (memory, other):
        one.close()
    again = open_memory(embedder=embedder())
    for answer in found(again, allowed, 4000):
        assert answer == twin.keys(allowed)


def test_tags_can_be_set_and_set_back(open_memory):
    memory = open_memory()
    uid = memory.observe("w1", tags=["b", "a", "b"], actors=["ann", "bob"])
    other = memory.observe("w1", tags=["a"], actors=["ann", "bob"])
    for tags in (["c", "a"], [], ["b", "a", "b"]):
        with memory._store.writing():
            memory._store.retag(1, tags, 0)
        episode = memory.get(uid)
        assert (episode.tags, episode.actors) == (tags, ["ann", "bob"])
        assert [hit.episode.id for hit in memory.recall("w1", tags=["a"])] == (
            [uid, other] if "a" in tags else [other]
        )
    with memory._store.writing():
        memory._store.retag(1, [], 0)
        names = memory._store._connection.execute("SELECT name FROM label ORDER BY name").fetchall()
    assert names == [("a",), ("ann",), ("bob",)]


def test_only_a_scope_is_a_filter_that_asks_for_nothing_else():
    assert EpisodeFilter(agent="a").only_scope
    for more in ({"any_case_tags": ("a",)}, {"memory_types": ("pattern",)}, {"project": "p"}):
        assert not EpisodeFilter(agent="a", **more).only_scope
