"""The passage of a long text that has most to do with a query, by its words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from engram.embedding.sentences import sentence_spans
from engram.storage.segment import searchable, word_spans
from engram.storage.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["MAX_WORDS", "Passage", "best_passage"]

MAX_WORDS = 160
"""Words a passage may have unless fewer are asked for; a text of no more has none."""

_READ = 65_536  # characters of a text that are read closely unless fewer are asked for
_WANTED = 64  # words of a query that are looked for
_PIECE_WORDS = 40  # what a sentence is cut into that alone is longer than a passage
_TERM = re.compile(r"[^\W_]+")
_MARKS = re.compile("[\u0300-\u036f]")


@dataclass(frozen=True)
class Passage:
    """A piece of a text, as it stands there.

    `source_start` and `source_end` are the characters of the text it begins at and ends before;
    `passage_words` says how many words it has, at most as many as were asked for.
    """

    text: str
    source_start: int
    source_end: int
    passage_words: int


def best_passage(
    query: str, content: str, most: int = MAX_WORDS, closely: int = _READ
) -> Passage | None:
    """Return the passage of a text around the sentence that shares most with a query.

    A word counts by the logarithm of how few of the text's sentences have it; stop words count
    nothing. Words are compared in lower case, without accents and as singulars; in scripts without
    spaces letters and pairs of them are. Around the best sentence, the first of equals, its
    neighbours are taken in turn, those before it first, while there is room for them whole. A
    sentence longer than a passage counts as several.

    Args:
        query: What is looked for; any text. Its first 64 different words count.
        content: What it is looked for in; any text.
        most: Words it may have.
        closely: Characters of the text whose sentences are compared.

    Returns:
        The passage; None where the text is no longer than one, or has none of the query's words.
        Of a text of more than `closely` characters, only the part so long that has most of them
        is read closely.
    """
    wanted = _first_terms(query)
    at = _part_to_read(wanted, content, closely)
    read = content[at : at + closely]
    words = word_spans(read)
    if not wanted or len(words) <= most:
        return None
    pieces = list(_pieces(read, words, most))
    best = _most_telling(
        [wanted & set(_terms(searchable(read[start:end]))) for start, end, _ in pieces]
    )
    if best is None:
        return None
    first, last = _grown(best, [count for _, _, count in pieces], most)
    start, end = pieces[first][0], pieces[last][1]
    counted = sum(count for _, _, count in pieces[first : last + 1])
    return Passage(read[start:end], at + start, at + end, counted)


def _first_terms(query: str) -> set[str]:
    """Return the terms of a query that are looked for."""
    return set(islice(dict.fromkeys(_terms(searchable(query))), _WANTED))


def _part_to_read(wanted: set[str], content: str, length: int) -> int:
    """Return where the part of a very long text begins that is worth reading closely."""
    starts = range(0, len(content), length)
    if len(starts) < 2:
        return 0
    parts = (content[start : start + length].casefold() for start in starts)
    best = _most_telling([{term for term in wanted if term in part} for part in parts])
    return starts[best or 0]


def _most_telling(found: Sequence[set[str]]) -> int | None:
    """Return which of some parts has the terms that fewest have, None where none has any."""
    frequency = Counter(term for terms in found for term in terms)
    if not frequency:
        return None
    worth = [sum(math.log1p(len(found) / frequency[term]) for term in terms) for terms in found]
    return worth.index(max(worth))


def _grown(best: int, counts: Sequence[int], most: int) -> tuple[int, int]:
    """Return the first and the last piece around the best one that together fit into a passage."""
    first = last = best
    room = most - counts[best]
    grew = True
    while grew:
        grew = False
        if first > 0 and counts[first - 1] <= room:
            first -= 1
            room -= counts[first]
            grew = True
        if last + 1 < len(counts) and counts[last + 1] <= room:
            last += 1
            room -= counts[last]
            grew = True
    return first, last


def _pieces(
    content: str, words: Sequence[tuple[int, int]], most: int
) -> Iterator[tuple[int, int, int]]:
    """Yield where each sentence, or piece of a long one, begins and ends, and its words."""
    at = 0
    for start, end in sentence_spans(content):
        begin = at
        while at < len(words) and words[at][0] < end:
            at += 1
        step = at - begin if at - begin <= most else min(_PIECE_WORDS, most)
        firsts = range(begin, at, step) if at > begin else [begin]  # a line of dashes has no word
        cuts = [start, *(words[first][0] for first in firsts[1:]), end]
        for first, (left, right) in zip(firsts, pairwise(cuts), strict=True):
            yield left, right, min(step, at - first)


def _terms(text: str) -> Iterator[str]:
    """Yield the words of a text, stop words left out, in the form in which they are compared."""
    plain = text.casefold()
    if plain.isascii():
        terms = _TERM.findall(plain)
    else:
        plain = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", plain)))
        terms = "".join(map(_in_term, plain)).split()
    return (_singular(term) for term in terms if term not in STOP_WORDS)


@cache
def _in_term(character: str) -> str:
    """Return a character that belongs to words, vowel signs too, and a space for any other."""
    return character if unicodedata.category(character)[0] in "LNM" else " "


def _singular(word: str) -> str:
    """Return an English word without the ending of its plural, roughly."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("ses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
