"""Sentences to remember and questions to ask, the same ones for the same seed.

`simple_sentence` cycles through short lists. `sentences` imitates the words of real notes: their
frequencies fall as one over the rank, and names, numbers and identifiers keep adding new ones.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from engram.bench import vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["content_words", "decisions", "long_questions", "sentences", "simple_sentence"]

_NAMES = ("Alice", "Bob", "Carol", "David", "Eve", "Frank", "Grace", "Hugo")
_VERBS = ("joined", "left", "founded", "advised", "visited", "funded")
_FIRMS = ("Northwind", "Bluepeak", "Sunfield", "Ironleaf", "Clearbay", "Redstone")
_CITIES = ("Berlin", "Lisbon", "Oslo", "Vienna", "Dublin", "Prague")
_ROLES = ("designer", "lawyer", "teacher", "pilot", "chemist")

_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset(
    (
        "about",
        "been",
        "from",
        "have",
        "that",
        "their",
        "there",
        "this",
        "were",
        "what",
        "will",
        "with",
        "would",
    )
)


def simple_sentence(index: int) -> str:
    """Return sentence `index` of the latency and cost benchmarks."""
    name, verb, firm, city, role = (
        _nth(words, index) for words in (_NAMES, _VERBS, _FIRMS, _CITIES, _ROLES)
    )
    return f"{name} {verb} {firm} in {city} as a {role} (event {index})."


def sentences(count: int, seed: int) -> list[str]:
    """Return the first `count` sentences of the endless row that belongs to a seed."""
    chance = random.Random(seed)  # noqa: S311 - text, not secrets
    return [_sentence(chance) for _ in range(count)]


def _sentence(chance: random.Random) -> str:
    return chance.choice(vocabulary.TEMPLATES).format(
        name=_person(chance),
        other=_zipf(vocabulary.FIRST_NAMES, chance),
        verb=_zipf(vocabulary.VERBS, chance),
        subject=_zipf(vocabulary.SUBJECTS, chance),
        thing=f"{_zipf(vocabulary.QUALITIES, chance)} {_zipf(vocabulary.SUBJECTS, chance)}",
        place=_zipf(vocabulary.PLACES, chance),
        number=int(10 ** (6 * chance.random())),
        identifier=f"{chance.choice('ABCDEFGH')}{int(10 ** (3 + 4 * chance.random()))}",
    )


def _person(chance: random.Random) -> str:
    first = _zipf(vocabulary.FIRST_NAMES, chance)
    if chance.random() < 0.4:
        return first
    middle = _zipf(vocabulary.NAME_STARTS, chance).lower() if chance.random() < 0.5 else ""
    start, end = _zipf(vocabulary.NAME_STARTS, chance), _zipf(vocabulary.NAME_ENDS, chance)
    return f"{first} {start}{middle}{end}"


def _zipf(words: Sequence[str], chance: random.Random) -> str:
    """Return a word; how likely it is falls as one over its rank."""
    return words[int((len(words) + 1) ** chance.random()) - 1]


def decisions(count: int, first: int = 0) -> list[str]:
    """Return `count` questions that no text answers by its wording, from number `first` on."""
    return [
        f"what was decided about the {_nth(vocabulary.SUBJECTS, at)}"
        f" {_nth(vocabulary.PLACES, at)}, note {at}"
        for at in range(first, first + count)
    ]


def _nth(words: Sequence[str], at: int) -> str:
    return words[at % len(words)]


def content_words(text: str) -> list[str]:
    """Return the words of a text that say what it is about."""
    return [word for word in _WORD.findall(text) if word.lower() not in _COMMON]


def long_questions(texts: Sequence[str], start: str, count: int) -> list[str]:
    """Return questions of `start` and three words of a text each, taking the texts in turn.

    Args:
        texts: Texts that are not in the store.
        start: How each question begins.
        count: How many.
    """
    words = [found for found in map(content_words, texts) if len(found) >= 3] or [["nothing"]]
    return [f"{start} {' '.join(words[at % len(words)][:3])}" for at in range(count)]
