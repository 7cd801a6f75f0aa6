"""The English words that say nothing of what a text is about, and queries without them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z]+", text))


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

STOP_WORDS: Final = _WORDS | _STUMPS | _ENDINGS
"""In small letters, with the pieces that contractions are split into."""


def without_stop_words(terms: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of a query that say what it is about, in their order.

    A possessive is asked for as its owner: texts that name "Ann" answer what is asked of "Ann's".
    "not" goes as well: a ranking by words cannot tell what is denied.

    Args:
        terms: What white space sets apart in the query, each split into its words in small letters.
    """
    return [word for term in terms for word in term if word not in _stop_words_in(term)]


def _stop_words_in(term: Sequence[str]) -> frozenset[str]:
    """Return which words are stop words in a term.

    By itself "Don" is a name and "D" a vitamin; and in "on-call" both words say something.
    """
    if len(term) == 1:
        return _WORDS
    return STOP_WORDS if term[-1] in _ENDINGS else frozenset()
