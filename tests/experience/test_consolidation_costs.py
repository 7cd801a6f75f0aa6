"""Consolidating much takes as many steps as there is to do, not as there are pairs."""

from __future__ import annotations

import random

import pytest
from imported import imported
from stand_ins import WordEmbedder

from engram.cognition import similar

LETTERS = "abcdefghijklmnop"


def name(source: random.Random) -> str:
    return "".join(source.choice(LETTERS) for _ in range(8))


def templated(count: int) -> list:
    """What agents log: one sentence, and a name in it."""
    source = random.Random(1)
    names = [name(source) for _ in range(count)]
    return [
        imported(
            f"m{n}",
            f"service {one} failed to start after deploy",
            f"restart the service {one} by hand",
            f"service {one} runs again",
        )
        for n, one in enumerate(names)
    ]


def ordinary(count: int) -> list:
    """Sentences of words some of which are in every other one."""
    source = random.Random(2)
    words = [name(source) for _ in range(1000)]
    common = [1 / (n + 1) for n in range(len(words))]
    return [
        imported(f"m{n}", *(" ".join(source.choices(words, common, k=k)) for k in (12, 8, 6)))
        for n in range(count)
    ]


class Alike(WordEmbedder):
    """Takes everything for the same."""

    def vector(self, text):
        return super().vector("same")


@pytest.fixture
def checks(monkeypatch) -> list[None]:
    """One entry for each pair whose words are compared."""
    compared: list[None] = []
    real = similar.shared_words

    def counted(asked, others):
        compared.append(None)
        return real(asked, others)

    monkeypatch.setattr(similar, "shared_words", counted)
    return compared


@pytest.mark.parametrize("texts", [templated, ordinary])
@pytest.mark.parametrize("embed", [True, False], ids=["vectors", "words"])
def test_few_pairs_are_compared(opened, checks, texts, embed):
    memory = opened()
    memory.import_experiences(texts(1200), embed=embed)
    seen = memory.preview()
    joined = sum(len(group.duplicate_ids) for group in seen.duplicate_groups)
    # All pairs are 719,400.
    assert len(checks) <= 1200 + joined


@pytest.mark.parametrize("embed", [True, False], ids=["vectors", "words"])
def test_it_stops_comparing_where_everything_looks_alike(opened, checks, monkeypatch, embed):
    """Neither an embedder that knows no differences nor a few words for all make it long."""
    monkeypatch.setattr(similar, "MOST_COMPARED", 5)
    source = random.Random(3)
    memory = opened(embedder=Alike())
    memory.import_experiences(
        [imported(f"m{n}", " ".join(source.sample(LETTERS, 10))) for n in range(300)], embed=embed
    )
    memory.preview()
    assert 300 < len(checks) <= 300 * 5


def test_an_embedder_that_knows_no_differences_finds_the_same_words(opened, checks):
    memory = opened(embedder=Alike())
    memory.import_experiences(templated(600))
    [group] = memory.preview().duplicate_groups
    assert len(group.duplicate_ids) == 599
    assert len(checks) == 599


def relabelled(memory) -> int:
    store = memory._store
    with store.reading():
        return [op for op, _, _ in store.changes_after(0)].count("relabel")


def test_a_survivor_is_tagged_once_a_run_and_once_an_undoing(experiences):
    experiences.import_experiences(
        [imported(f"m{n:03}", tags=("all", f"t{n}")) for n in range(150)]
    )
    run = experiences.consolidate().run_id
    assert len(experiences.get("m000").tags) == 151
    assert relabelled(experiences) == 1
    assert experiences.undo(run) == 149
    assert experiences.get("m000").tags == ("all", "t0")
    assert relabelled(experiences) == 2
    experiences.consolidate()
    experiences.delete("m001")
    assert relabelled(experiences) == 4
    assert len(experiences.get("m000").tags) == 150


def test_an_agents_log_is_one_query_whoever_else_wrote(opened, monkeypatch):
    ana, ben = opened("ana"), opened("ben")
    ana.import_experiences([imported("a1"), imported("a2")])
    ana.consolidate()
    ben.import_experiences([imported(f"b{n}") for n in range(40)])
    run = ben.consolidate().run_id
    asked = []
    real = ana._store._connection.execute
    monkeypatch.setattr(
        ana._store._connection, "execute", lambda *said: (asked.append(said), real(*said))[1]
    )
    assert [step.memory_ids for step in ana.consolidation_log()] == [("a1", "a2")]
    assert len(asked) == 1
    assert [step.run_id for step in ben.consolidation_log(3)] == [run] * 3
    assert len(opened().consolidation_log(100)) == 40
