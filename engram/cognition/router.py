"""Choosing how to go about a task by its mode, and learning from what the choice was worth.

Tabular Q-learning without successor states: one value for each mode, level and variant, moved
towards the scores that memories were judged with. That is 60 values, however long it learns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

EPSILON: Final = 0.15
"""How often a level tries any of its variants."""

ALPHA: Final = 0.1
"""How far a value moves towards a reward."""

LEVELS: Final = {
    "search": ("high_threshold", "medium_threshold", "low_threshold"),
    "llm": ("cheap", "balanced", "expensive"),
    "context": ("raw", "summarize"),
    "proactivity": ("passive", "proactive"),
}
"""The variants of each level."""


class Routing(NamedTuple):
    """The mode of a task, and one variant of each level, in their order."""

    mode: str
    search_strategy: str
    llm_selection: str
    contextualization: str
    proactivity: str


ROUTINE: Final = "routine"

# In the order in which they are looked for: the words that speak of each, and what it begins with.
_MODES: Final = {
    "debug": (
        "bug error stack trace crash fix issue debug exception panic",
        ("high_threshold", "cheap", "raw", "passive"),
    ),
    "plan": (
        "plan estimate risk assess schedule timeline scope roadmap",
        ("low_threshold", "expensive", "summarize", "proactive"),
    ),
    "architecture": (
        "design choose structure technology framework library pattern architect component",
        ("low_threshold", "expensive", "summarize", "proactive"),
    ),
    "review": (
        "review refactor improve clean lint optimize quality",
        ("medium_threshold", "expensive", "raw", "passive"),
    ),
    "coding": (
        "implement code function method class feature module write create add",
        ("medium_threshold", "cheap", "raw", "passive"),
    ),
    ROUTINE: (
        "update version config dependency setup init bump",
        ("high_threshold", "cheap", "raw", "passive"),
    ),
}
_MODE_OF: Final = {word: mode for mode, (words, _) in _MODES.items() for word in words.split()}
MODES: Final = tuple(_MODES)


def detect(query: str) -> str | None:
    """Return the mode that a query's words speak of, the first of `MODES`; None if of none.

    Words are what is between white space, in any case, punctuation included.
    """
    spoken = {_MODE_OF.get(word) for word in query.lower().split()}
    return next((mode for mode in MODES if mode in spoken), None)


def select(
    mode: str, values: Mapping[tuple[str, str], tuple[float, int]], chance: Random
) -> Routing:
    """Return how to go about a task.

    Args:
        mode: One of `MODES`.
        values: The value of the mode's variants, by level and variant, and by how many rewards it
            is known; those that never had one are missing.
        chance: Where exploration comes from.

    Returns:
        Of each level any variant in `EPSILON` of the cases, else the one with the highest value,
        the first of equals; the mode's own where no variant ever had a reward.
    """
    chosen = []
    for (level, variants), default in zip(LEVELS.items(), _MODES[mode][1], strict=True):
        known = {values[level, one][0]: one for one in reversed(variants) if (level, one) in values}
        if chance.random() < EPSILON:
            chosen.append(chance.choice(variants))
        else:
            chosen.append(known[max(known)] if known else default)
    return Routing(mode, *chosen)


def rewarded(value: float, reward: float) -> float:
    """Return the value of a variant, 0 before its first reward, after another reward."""
    return value + ALPHA * (reward - value)
