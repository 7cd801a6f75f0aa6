"""The rows that a filter allows are those a look at every episode finds, in the form that suits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from answers import answers, embedder, filled

from engram import Engram, ObserveInput
from engram.index.selection import LabelRows, Selection, Selector
from engram.storage import EpisodeFilter
from engram.times import to_micros

pytestmark = pytest.mark.usefixtures("small_segments")

START = datetime(2025, 1, 1, tzinfo=UTC)
FEW = 40


@dataclass
class Row:
    key: int
    agent: str | None
    item: ObserveInput


class Columns:
    """A store of random episodes, and the same in a list."""

    def __init__(self, open_memory, count: int = 700, *, agents=(None, "a", "b", "c")) -> None:
        self.chance = random.Random(7)
        self.rows: list[Row] = []
        self.memories = {agent: open_memory(agent, embedder=embedder()) for agent in agents}
        self.memory = self.memories[agents[0]]
        while len(self.rows) < count:
            agent = self.chance.choice(agents)
            items = [self.item() for _ in range(min(count - len(self.rows), 50))]
            self.memories[agent].observe_many(items)
            self.rows += [Row(len(self.rows) + 1 + n, agent, one) for n, one in enumerate(items)]

    def item(self) -> ObserveInput:
        # The later, the later they happened, roughly: zones overlap.
        hours = len(self.rows) // 4 + self.chance.randrange(40)
        return ObserveInput(
            "w1",
            tags=self.chance.sample(["t0", "t1", "t2"], self.chance.randrange(3)),
            actors=self.chance.sample(["ann", "bob"], self.chance.randrange(3)),
            timestamp=START + timedelta(hours=hours),
            provenance=self.chance.choice(["user", "tool", "external"]),
            quarantined=self.chance.random() < 0.3,
        )

    def filter(self) -> EpisodeFilter:
        some = self.chance.choice
        since, until = (to_micros(START + timedelta(hours=h), "h") for h in (some(range(220)), 215))
        if some([True, False]):
            until = since + some([0, 5, 40]) * 3_600_000_000
        return EpisodeFilter(
            agent=some([None, None, "a", "b", "nobody"]),
            since=some([None, since]),
            until=some([None, until]),
            tags=some([(), (), ("t1",), ("t0", "t2"), ("missing",)]),
            actors=some([(), (), ("ann",), ("bob", "ann")]),
            provenances=some([(), (), ("user",), ("tool", "external")]),
            exclude_quarantined=some([True, False]),
        )

    def forget(self, share: float) -> None:
        for row in [one for one in self.rows if self.chance.random() < share]:
            with self.memory._store.writing():
                self.memory._store.remove_episodes([row.key], 0)
            self.rows.remove(row)


NOTHING_HIDDEN = np.empty(0, dtype=np.int64)


def allows(allowed: EpisodeFilter, row: Row) -> bool:
    at = to_micros(row.item.timestamp, "timestamp")
    return (
        allowed.agent in (None, row.agent)
        and (allowed.since is None or at >= allowed.since)
        and (allowed.until is None or at <= allowed.until)
        and set(allowed.tags) <= set(row.item.tags)
        and set(allowed.actors) <= set(row.item.actors)
        and (not allowed.provenances or row.item.provenance in allowed.provenances)
        and not (allowed.exclude_quarantined and row.item.quarantined)
    )


def keys(part, one: Selection) -> list[int]:
    """The keys of the selected rows, from whichever form they have; the form must be right."""
    assert one.rows is None or one.mask is None
    if one.rows is not None:
        assert one.rows.dtype == np.uint32
        rows = one.rows
    elif one.mask is not None:
        assert len(one.mask) == part.rows
        rows = np.flatnonzero(one.mask)
    else:
        rows = np.arange(part.rows)
    assert one.count == len(rows)
    assert (one.rows is not None) == (one.count <= FEW and one.count < part.rows)
    assert (one.mask is None and one.rows is None) == (one.count == part.rows)
    return part.keys[rows].tolist()


def selected(memory: Engram, allowed: EpisodeFilter, labels: LabelRows | None = None) -> list[int]:
    with memory._store.reading():
        index = memory._current_index()
        index.refresh()
        selector = Selector(memory._store, allowed, labels or LabelRows(), NOTHING_HIDDEN)
        parts = [part for part in index.parts if part.rows]
        return [key for part in parts for key in keys(part, selector.select(part))]


@pytest.mark.parametrize("agents", [(None,), (None, "a", "b", "c")])
@pytest.mark.parametrize("gone", [0.0, 0.5, 0.97])
def test_any_filter_is_a_look_at_every_episode(open_memory, agents, gone):
    columns = Columns(open_memory, agents=agents)
    selected(columns.memory, EpisodeFilter())
    labels = LabelRows()
    for round_ in range(2):
        for _ in range(80):
            allowed = columns.filter()
            expected = [row.key for row in columns.rows if allows(allowed, row)]
            assert selected(columns.memory, allowed, labels) == expected
        if round_ == 0:
            columns.forget(gone)
    assert len(columns.memory._index.segments) > 1


def test_a_tail_is_selected_from_as_well(open_memory):
    columns = Columns(open_memory, 90)
    labels = LabelRows()
    for _ in range(60):
        allowed = columns.filter()
        expected = [row.key for row in columns.rows if allows(allowed, row)]
        assert selected(columns.memory, allowed, labels) == expected
    assert columns.memory._index.segments == []


def tagged(memory: Engram, counts: dict[str, int], rows: int = 256) -> None:
    memory.observe_many(
        ObserveInput("w1", tags=[tag for tag, count in counts.items() if number < count])
        for number in range(rows)
    )


@pytest.mark.parametrize(
    ("count", "form"),
    [(0, "list"), (1, "list"), (40, "list"), (41, "mask"), (255, "mask"), (256, "all")],
)
def test_few_are_listed_many_masked_and_all_neither(memory, count, form):
    tagged(memory, {"t": count})
    with memory._store.reading():
        index = memory._current_index()
        index.refresh()
        [segment, _] = index.parts
        one = Selector(
            memory._store, EpisodeFilter(tags=("t",)), LabelRows(), NOTHING_HIDDEN
        ).select(segment)
    found = "list" if one.rows is not None else "mask" if one.mask is not None else "all"
    assert (one.count, found) == (count, form)


def test_what_leaves_nothing_out_costs_no_mask(memory):
    filled(memory, 256)
    late = to_micros(datetime(2100, 1, 1, tzinfo=UTC), "late")
    for allowed in (EpisodeFilter(), EpisodeFilter(since=0), EpisodeFilter(since=0, until=late)):
        with memory._store.reading():
            index = memory._current_index()
            index.refresh()
            one = Selector(memory._store, allowed, LabelRows(), NOTHING_HIDDEN).select(
                index.segments[0]
            )
        assert one == Selection(256)


def test_only_zones_that_a_bound_cuts_are_looked_into(memory, monkeypatch):
    memory.observe_many(
        ObserveInput("w1", timestamp=START + timedelta(hours=n)) for n in range(256)
    )
    memory.recall("w1")
    [segment] = memory._index.segments
    looked = []
    times = type(segment).times.func(segment)

    class Watched:
        def __getitem__(self, part):
            looked.append(part)
            return times[part]

    monkeypatch.setitem(vars(segment), "times", Watched())
    since = to_micros(START + timedelta(hours=40), "since")
    until = to_micros(START + timedelta(hours=200), "until")
    with memory._store.reading():
        selector = Selector(
            memory._store, EpisodeFilter(since=since, until=until), LabelRows(), NOTHING_HIDDEN
        )
        assert keys(segment, selector.select(segment)) == list(range(41, 202))
    assert looked == [slice(32, 48), slice(192, 208)]


def test_a_filter_asked_again_follows_every_change(open_memory):
    """What is kept of a filter goes when parts or their contents change."""
    memory = open_memory(embedder=embedder())
    ids = filled(memory, 400)
    memory.maintain()
    filled(memory, 60, seed=2)
    expected = answers(memory)
    # The tail becomes a segment, and nothing is merged.
    memory.maintain()
    assert answers(memory) == expected
    assert len(memory._index.segments) == 2
    memory.forget(ids[3])
    found = [hit.episode.id for hit in memory.recall("w1", 500, mode="cosine")]
    assert len(found) == 459
    assert ids[3] not in found
