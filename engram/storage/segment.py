"""Text as full-text search sees it, in any script.

FTS5's own `unicode61` splits at spaces and punctuation, folds case and drops Latin diacritics.
What it does not know is done here, before it sees the text:

* Scripts written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan), and
  Korean, where particles are glued to words: a run of such characters becomes overlapping pairs,
  and in documents each single character too. Words of one and two characters are terms of their
  own, longer ones are found by their pairs.
* Vowel points of Hebrew and Arabic, the accents of Greek, Cyrillic io, width and compatibility
  forms: the pointed and the plain spelling become one.

Text that needs none of this, all of ASCII included, is its own searchable form and costs nothing.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise

MAX_TERMS = 256
"""Distinct terms of a query that are searched for; further ones are left out."""

# Ranges of the scripts whose words are not set apart by spaces.
_UNSPACED_RANGES = (
    ("\u0e00", "\u0eff"),  # Thai, Lao
    ("\u0f00", "\u0fff"),  # Tibetan
    ("\u1000", "\u109f"),  # Burmese
    ("\u1100", "\u11ff"),  # Hangul letters
    ("\u1780", "\u17ff"),  # Khmer
    ("\u3005", "\u3007"),  # Han iteration mark, closing mark, zero
    ("\u3040", "\u30ff"),  # Hiragana, Katakana
    ("\u3130", "\u318f"),  # Hangul compatibility letters
    ("\u31f0", "\u31ff"),  # Katakana extensions
    ("\u3400", "\u4dbf"),  # Han extension A
    ("\u4e00", "\u9fff"),  # Han
    ("\uac00", "\ud7af"),  # Hangul syllables
    ("\uf900", "\ufaff"),  # Han compatibility
    ("\U0001b000", "\U0001b16f"),  # Kana supplements
    ("\U00020000", "\U0003ffff"),  # Han extensions B and later
)
_UNSPACED_LETTERS = "".join(f"{low}-{high}" for low, high in _UNSPACED_RANGES)


# Compiled at the first use: to start, most programs need none of them.
@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"([{_UNSPACED_LETTERS}]+)")


@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED_LETTERS}]{{1,2}}|[^\s{_UNSPACED_LETTERS}]+")


@cache
def _irregular() -> re.Pattern[str]:
    # Greek, Cyrillic io, Hebrew, Arabic, marks and format characters, sharp s, extended Greek
    return re.compile(
        "[\u0300-\u03ff\u0401\u0451\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u0670\u06d6-\u06ed"
        "\u00df\u1e9e\u1f00-\u1fff\u00ad\u200b-\u200f\u2060\ufeff]"
    )


@cache
def _spellings() -> dict[int, str | None]:
    """Return the characters that are dropped or spelled otherwise, for `str.translate`."""
    table: dict[int, str | None] = dict.fromkeys(
        [
            *range(0x0591, 0x05BE),  # Hebrew points and accents
            *(0x05BF, 0x05C1, 0x05C2, 0x05C4, 0x05C5, 0x05C7),
            *range(0x0610, 0x061B),  # Arabic marks, tatweel, vowel signs
            0x0640,
            *range(0x064B, 0x0660),
            0x0670,
            *(c for c in range(0x06D6, 0x06EE) if unicodedata.category(chr(c)) == "Mn"),
            *(0x00AD, *range(0x200B, 0x2010), 0x2060, 0xFEFF),  # soft hyphen, zero width
        ]
    )
    for code in (*range(0x0370, 0x0400), *range(0x1F00, 0x2000)):
        letters = unicodedata.normalize("NFD", chr(code))
        plain = "".join(c for c in letters if unicodedata.category(c) != "Mn")
        if plain != chr(code):
            table[code] = plain
    table.update({0x0401: "Е", 0x0451: "е", 0x00DF: "ss", 0x1E9E: "SS"})
    return table


def normalise(text: str) -> str:
    """Return `text` with one spelling for what readers take as the same letters."""
    if text.isascii():
        return text
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return text.translate(_spellings()) if _irregular().search(text) else text


def _clusters(run: str) -> list[str]:
    """Split a run into letters, each with the marks that belong to it."""
    clusters: list[str] = []
    for character in run:
        if clusters and unicodedata.category(character)[0] == "M":
            clusters[-1] += character
        else:
            clusters.append(character)
    return clusters


def _pairs(letters: list[str]) -> list[str]:
    return [first + second for first, second in pairwise(letters)]


def _document_terms(run: str) -> str:
    """Return the searchable form of an unspaced run: each letter, and each pair of them."""
    letters = _clusters(run)
    both = zip(letters, [*_pairs(letters), ""], strict=True)
    terms = [term for letter_and_pair in both for term in letter_and_pair if term]
    return f" {' '.join(terms)} "


def searchable(text: str) -> str:
    """Return the form of a document that full-text search indexes."""
    text = normalise(text)
    if text.isascii() or not _unspaced().search(text):
        return text
    return _unspaced().sub(lambda run: _document_terms(run[0]), text)


def search_text(content: str) -> str | None:
    """Return what `episode.search_text` holds: the searchable form, None where it is the text."""
    # Most texts are ASCII: told apart here, they cost next to nothing.
    if content.isascii() or (text := searchable(content)) == content:
        return None
    return text


def _query_terms(word: str) -> list[str]:
    """Return what one space-free word of a query is searched as."""
    terms: list[str] = []
    for piece in _unspaced().split(word):
        if not piece:
            continue
        if not _unspaced().fullmatch(piece):
            terms.append(piece)
            continue
        letters = _clusters(piece)
        terms.extend(_pairs(letters) or letters)
    return terms


def is_unspaced(character: str) -> bool:
    """Return whether a character is of a script whose words are not set apart by spaces."""
    return _unspaced().match(character) is not None


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where each word of a text begins and ends, in characters.

    Words are set apart by white space. In scripts that use none two letters count as a word, which
    is about its length in Chinese and Japanese.
    """
    return [found.span() for found in _word().finditer(text)]


def match_every_term(query: str) -> str:
    """Return the FTS5 expression that finds all terms of a query together, "" when it has none."""
    return " AND ".join(map(quoted, query_terms(query)))


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query in their order, at most `MAX_TERMS` of them."""
    terms: dict[str, None] = {}
    for word in dict.fromkeys(normalise(query.replace("\0", " ")).split()):
        for term in _query_terms(word):
            if any(character.isalnum() for character in term):
                terms.setdefault(term)
        if len(terms) >= MAX_TERMS:
            break
    return list(terms)[:MAX_TERMS]


def quoted(term: str) -> str:
    """Return the FTS5 expression that finds one term of a query."""
    return '"' + term.replace('"', '""') + '"'
