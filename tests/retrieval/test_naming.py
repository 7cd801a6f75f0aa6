"""Whom a query names: what they took part in is sooner what is asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engram import Blending, Engram, ObserveInput

# Each text has both names, as a heading or in it.
TALK = [("Ann", "so, Ben Kos: the deal is on"), ("Ben Kos", "so, Ann: the deal is on")]


def told(memory: Engram, said: list[tuple[object, str]]) -> None:
    memory.observe_many(
        ObserveInput(text, actors=[by] if isinstance(by, str) else by) for by, text in said
    )


def gains(memory: Engram, query: str, named: float = 1.0, **options: object) -> list[float]:
    """What naming gives each episode, in the order they were written, over the first one."""
    found = []
    for weight in (named, 0.0):
        hits = memory.recall(query, 50, blending=Blending(named=weight), **options)
        scores = {hit.episode.id: hit.score for hit in hits}
        found.append([scores[one.id] for one in memory.episodes(newest_first=False).episodes])
    ratios = [on / off for on, off in zip(*found, strict=True)]
    return [ratio / ratios[0] for ratio in ratios]


@pytest.mark.parametrize(
    ("query", "share"),
    [
        ("what Ben Kos says of the deal", 1.0),
        ("what does BEN think of the deal?", 0.5),
        ("is Kos's deal on", 0.5),
        ("the deal", 0.0),
        ("Benno and the deal", 0.0),
    ],
)
@pytest.mark.parametrize("weight", [0.1, 0.4, 1.0])
def test_as_much_of_a_name_as_the_query_has_counts(
    memory: Engram, query: str, share: float, weight: float
) -> None:
    told(memory, TALK)
    assert gains(memory, query, weight)[1] == pytest.approx(1.0 + weight * share)


def test_both_are_named_and_neither_is_favoured(memory: Engram) -> None:
    told(memory, TALK)
    assert gains(memory, "the deal of Ann and Ben Kos")[1] == pytest.approx(1.0)


def test_of_several_actors_the_one_who_is_named_most_counts(memory: Engram) -> None:
    told(memory, [("Cy", "a deal"), (["Ann Lee", "Bo Kos"], "a deal."), ("Ann Lee", "a deal")])
    assert gains(memory, "the deal of Bo Kos and Ann") == pytest.approx([1.0, 2.0, 1.5])


@pytest.mark.parametrize("role", ["user", "assistant", "tool", " system "])
def test_a_role_is_nobody_s_name(memory: Engram, role: str) -> None:
    told(memory, [("Ann", "the deal is on"), (role, "the deal is on!")])
    assert gains(memory, f"what the {role.strip()} says of the deal")[1] == pytest.approx(1.0)


NAMES = (
    "Zoë|Zoe\u0308|东京|王小明|田中太郎|김철수|สมชาย|Мария|Алёна|Ανδρέας|דָּוִד|مُحَمَّد|प्रिया|Weiß|Ａｄａ|ﬁona|İlker|O'Neil"
    "|anna@x.org|Will|May|Duke of York|The Rock"
)


@pytest.mark.parametrize("name", NAMES.split("|"))
def test_names_of_any_script(memory: Engram, name: str) -> None:
    told(memory, [("Ann", f"{name} has the deal"), (name, "Ann has the deal")])
    assert gains(memory, f"the deal of {name}?")[1] == pytest.approx(2.0)


@pytest.mark.parametrize(
    "name", ["🙂", "...", "a" * 101, "Ada " * 26, "\u0301", "Ada\0" + " Ada" * 25]
)
def test_what_is_no_word_or_too_long_is_nobody_s_name(memory: Engram, name: str) -> None:
    told(memory, [("Ann", f"{name} has the deal"), (name, "Ann has the deal")])
    assert gains(memory, f"the deal of {name}?")[1] == pytest.approx(1.0)


def test_of_many_actors_the_first_four_count(memory: Engram) -> None:
    crowd = [f"Person{at}" for at in range(300)]
    told(memory, [("Ann", "the deal is on"), (crowd, "the deal is on.")])
    assert gains(memory, "the deal of Person3")[1] == pytest.approx(2.0)
    assert gains(memory, "the deal of Person4")[1] == pytest.approx(1.0)


def test_where_meaning_alone_counts_nobody_is_favoured(memory: Engram) -> None:
    told(memory, TALK)
    assert gains(memory, "the deal of Ben Kos", fts_weight=0.0)[1] == pytest.approx(1.0)


def test_facts_have_no_actors(memory: Engram) -> None:
    told(memory, TALK)
    memory.assert_fact("Ben Kos", "signed", "the deal")
    shares = []
    for weight in (1.0, 0.0):
        hits = memory.recall_memories("the deal of Ben Kos", blending=Blending(named=weight))
        scores = {getattr(hit, "episode", None) and hit.episode.content: hit.score for hit in hits}
        assert len(scores) == 3
        shares.append((scores[None] / scores[TALK[0][1]], scores[TALK[1][1]] / scores[TALK[0][1]]))
    assert shares[0][0] == pytest.approx(shares[1][0])
    assert shares[0][1] == pytest.approx(2.0 * shares[1][1])


def test_another_agent_s_people_change_nothing_here(open_memory: Callable[..., Engram]) -> None:
    mine, other = open_memory("agent://a.example/x"), open_memory("agent://a.example/y")
    told(mine, [("Ann", "the deal is on"), ("Cy", "the deal is on!")])
    told(other, [("Ben", "the deal is on")] * 3)
    assert gains(mine, "what Ben says of the deal")[1] == pytest.approx(1.0)
