"""The English words that say nothing of what a text is about, and queries without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# "may" is no stop word: it is a month as well.
_WORDS: Final = _words("""
    a about after again all also am an and any are as at be because been before being both but by
    can could did do does doing done during each for from further get got had has have having he her
    here hers herself him himself his how i if in into is it its itself just let like many me might
    mine more most much must my myself no nor not of off on once or other our ours ourselves out
    over own same shall she should since so some such than that the their theirs them themselves
    then there these they this those through to too under until up upon us very was we were what
    when where whether which while who whom whose why will with within would you your yours yourself
    yourselves
""")
# What is left of "don't" and "we'll" where a text is split at the apostrophe.
_STUMPS: Final = _words("""
    ain aren couldn didn doesn don hadn hasn haven isn mustn needn shan shouldn wasn weren won
    wouldn
""")
_ENDINGS: Final = _words("d ll m re s t ve")
# Titles begin with them, names seldom.
_ARTICLES: Final = _words("a an the")

STOP_WORDS: Final = _WORDS | _STUMPS | _ENDINGS
"""In small letters, with the pieces that contractions are split into."""


_OPENING: Final = "\"'([{_*\u00ab\u2018\u201c"
_CLOSING: Final = "\"')]}_*\u00bb\u2019\u201d"


def without_stop_words(terms: Sequence[str], words: Sequence[Sequence[str]]) -> list[str]:
    """Return the words of a query that say what it is about, in their order.

    A possessive is asked for as its owner: texts that name "Ann" answer what is asked of "Ann's".
    "not" goes as well: a ranking by words cannot tell what is denied. "Will" and "US" stay where
    they are written so.

    Args:
        terms: What white space sets apart in the query.
        words: The words of each, in small letters.
    """
    return [
        word
        for named, term in zip(_named(terms), words, strict=True)
        for word in term
        if word not in _stop_words_in(term, named=named)
    ]


def _named(terms: Sequence[str]) -> Iterator[bool]:
    """Yield of each term whether it is written as names are, and that says something.

    It does not at the beginning of a sentence, or where each word is written so; but two capitals
    do anywhere in a query that has small letters.
    """
    bare = [term.lstrip(_OPENING) for term in terms]
    shouted = " ".join(terms).isupper()
    titled = not any(term[:1].islower() for term in bare)
    begins = True
    for given, term in zip(terms, bare, strict=True):
        capital, second = term[:1].isupper(), term[1:2]
        yield capital and (
            (second.isupper() and not shouted) or (second.isalpha() and not begins and not titled)
        )
        begins = given.rstrip(_CLOSING).endswith((".", "?", "!", ":"))


def _stop_words_in(term: Sequence[str], *, named: bool) -> frozenset[str]:
    """Return which words are stop words in a term.

    By itself "Don" is a name and "D" a vitamin; and in "on-call" both words say something.
    """
    if len(term) == 1:
        return _ARTICLES if named else _WORDS
    if term[-1] not in _ENDINGS:
        return frozenset()
    return _ENDINGS if named and term[-1] == "s" else STOP_WORDS
