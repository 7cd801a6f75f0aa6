"""A question as a search understands it: its words, its phrases, its intent, whom it names."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from engram.storage.segment import is_unspaced, query_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CHANNELS: Final = ("dense", "bm25", "graph", "hopfield")
"""Where candidates come from. The last is in the report's vocabulary and has no ranking here: it
would order by the same similarities as the first."""

_WEIGHTS: Final = {
    "why": (1.0, 0.8, 1.5, 0.6),
    "when": (0.8, 1.2, 0.8, 0.6),
    "who": (0.8, 0.8, 1.8, 0.6),
    "how": (1.2, 1.0, 0.8, 0.6),
    "what": (1.0, 1.0, 1.0, 0.6),
}
_SIGNS: Final = {
    "why": frozenset({"why", "because", "reason", "reasons", "cause", "caused", "motivation"}),
    "when": frozenset({"when", "date", "day", "time", "since", "until", "ago", "yesterday"}),
    "who": frozenset({"who", "whom", "whose", "person", "people", "team", "owner"}),
    "how": frozenset({"how", "steps", "procedure", "way", "process", "configure", "install"}),
}
_PHRASE: Final = re.compile(r'"([^"]+)"')
_WORD_EDGES: Final = "\"'“”‘’«»()[]{}<>.,;:!?…。、？！「」『』"
_POSSESSIVE: Final = re.compile(r"['’]s$", re.IGNORECASE)
_NAME_WORDS: Final = 4
_RUN_LENGTHS: Final = (2, 3, 4, 1, 5, 6, 7, 8)
"""Letters of a name in a script without spaces, the most common first."""

_NAMES_MOST: Final = 512


@dataclass(frozen=True, slots=True)
class Question:
    """A query, read.

    Attributes:
        original: As the caller wrote it.
        text: Without spare white space.
        terms: Its distinct words, as full text has them.
        phrases: What it has in double quotes.
        intent: "why", "when", "who", "how" or "what".
        names: What may be a name in it.
    """

    original: str
    text: str
    terms: tuple[str, ...]
    phrases: tuple[str, ...]
    intent: str
    names: tuple[str, ...]

    @classmethod
    def read(cls, query: str) -> Question:
        """Return what a query asks."""
        text = " ".join(query.split())
        words = [word.strip(_WORD_EDGES).casefold() for word in text.split()]
        counts = {intent: sum(word in signs for word in words) for intent, signs in _SIGNS.items()}
        best = max(counts, key=lambda intent: counts[intent])
        return cls(
            original=query,
            text=text,
            terms=tuple(term.casefold() for term in query_terms(text)),
            phrases=tuple(" ".join(phrase.split()) for phrase in _PHRASE.findall(text)),
            intent=best if counts[best] else "what",
            names=_names(text),
        )

    @property
    def weights(self) -> Mapping[str, float]:
        """What a rank of each channel is worth to this intent."""
        return dict(zip(CHANNELS, _WEIGHTS[self.intent], strict=True))


def _names(text: str) -> tuple[str, ...]:
    """Return what may be a name in a text: up to four words, or a run of unspaced letters."""
    words = [stripped for word in text.split() if (stripped := word.strip(_WORD_EDGES))]
    found: dict[str, None] = {}
    for name in chain(_phrases(words), _runs(words)):
        found |= dict.fromkeys(_spellings(name))
        if len(found) >= _NAMES_MOST:
            break
    return tuple(found)[:_NAMES_MOST]


def _phrases(words: Sequence[str]) -> Iterator[str]:
    for size in range(1, _NAME_WORDS + 1):
        for start in range(len(words) - size + 1):
            name = " ".join(words[start : start + size])
            yield name
            if (bare := _POSSESSIVE.sub("", name)) != name:
                yield bare


def _runs(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if any(map(is_unspaced, word)):
            for size in _RUN_LENGTHS:
                for start in range(len(word) - size + 1):
                    yield word[start : start + size]


def _spellings(name: str) -> tuple[str, ...]:
    """Return a name in the cases it may be kept in; of ASCII letters the store sees to that."""
    if name.isascii():
        return (name,)
    composed = unicodedata.normalize("NFC", name)
    return name, composed, composed.lower(), composed.title(), composed.upper()
