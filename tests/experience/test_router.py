"""The router finds the mode of a task, explores a little and prefers what was worth most."""

from __future__ import annotations

import random

import pytest

from engram.cognition.router import (
    ALPHA,
    EPSILON,
    LEVELS,
    MODES,
    Routing,
    detect,
    rewarded,
    select,
)


class Never(random.Random):
    """Chance that never explores."""

    def random(self) -> float:
        return EPSILON


@pytest.mark.parametrize(
    ("query", "mode"),
    [("the login crash", "debug"), ("PLAN the release", "plan"), ("choose it", "architecture"),
     ("lint rules", "review"), ("write tests", "coding"), ("bump it", "routine"),
     ("review the bug", "debug"), ("implement the roadmap", "plan"), ("refactor a class", "review"),
     ("update the code", "coding"), ("design a module", "architecture"), ("a panic", "debug"),
     ("crash!", None), ("debugging", None), ("", None), ("hello world", None)],
)  # fmt: skip
def test_the_first_mode_that_a_query_speaks_of_is_its_mode(query, mode):
    assert detect(query) == mode


@pytest.mark.parametrize(
    ("mode", "choice"),
    [("debug", "high_threshold cheap raw passive"),
     ("plan", "low_threshold expensive summarize proactive"),
     ("architecture", "low_threshold expensive summarize proactive"),
     ("review", "medium_threshold expensive raw passive"),
     ("coding", "medium_threshold cheap raw passive"),
     ("routine", "high_threshold cheap raw passive")],
)  # fmt: skip
def test_a_mode_begins_with_its_own_choice(mode, choice):
    assert select(mode, {}, Never()) == Routing(mode, *choice.split())


def test_the_variant_worth_most_is_chosen_among_those_that_had_a_reward():
    values = {("search", "low_threshold"): (0.2, 3), ("search", "high_threshold"): (0.1, 9),
              ("llm", "balanced"): (0.0, 1), ("context", "raw"): (0.5, 1),
              ("context", "summarize"): (0.5, 1), ("proactivity", "loud"): (1.0, 1)}  # fmt: skip
    assert select("debug", values, Never()) == (
        *("debug", "low_threshold", "balanced", "raw", "passive"),
    )


def test_exploration_reaches_every_variant_about_as_often_as_it_should():
    chance = random.Random(1)
    runs = 4000
    seen = [select("debug", {}, chance) for _ in range(runs)]
    for place, variants in enumerate(LEVELS.values(), 1):
        counts = {name: sum(one[place] == name for one in seen) for name in variants}
        default = select("debug", {}, Never())[place]
        for name in set(variants) - {default}:
            assert counts[name] / runs == pytest.approx(EPSILON / len(variants), abs=0.02)


def test_one_seed_gives_one_choice():
    assert {select(mode, {}, random.Random("id")) for mode in MODES} == {
        select(mode, {}, random.Random("id")) for mode in MODES
    }


def test_a_value_moves_towards_its_rewards():
    assert rewarded(0.0, 1.0) == ALPHA == 0.1
    assert rewarded(0.1, 1.0) == pytest.approx(0.19)
    assert rewarded(0.5, 0.0) == pytest.approx(0.45)
    value = 0.0
    for _ in range(200):
        value = rewarded(value, 0.8)
    assert value == pytest.approx(0.8, abs=1e-6)


def test_good_choices_come_to_be_preferred_and_bad_ones_avoided():
    chance = random.Random(7)
    good = {
        "search": "low_threshold",
        "llm": "balanced",
        "context": "summarize",
        "proactivity": "passive",
    }
    values: dict[tuple[str, str], tuple[float, int]] = {}
    for _ in range(400):
        routing = select("debug", values, chance)
        for level, variant in zip(LEVELS, routing[1:], strict=True):
            value, updates = values.get((level, variant), (0.0, 0))
            reward = 0.9 if good[level] == variant else 0.1
            values[level, variant] = rewarded(value, reward), updates + 1
    assert select("debug", values, Never())[1:] == tuple(good.values())
    assert len(values) <= sum(map(len, LEVELS.values()))
