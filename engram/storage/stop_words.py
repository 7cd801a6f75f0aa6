"""The English words that say nothing of what a text is about, and queries without them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


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

_WORD: Final = re.compile(r"\W*(?P<word>[^\W_]+)(?:['\u2019](?P<ending>[^\W_]+))?\W*")


def without_stop_words(terms: Iterable[str]) -> list[str]:
    """Return the terms of a query that say what it is about, or all where none does.

    A possessive is asked for as its owner: texts that name "Ann" answer what is asked of "Ann's".
    "not" goes as well: a ranking by words cannot tell what is denied.

    Args:
        terms: Distinct words as they stand in the query, with the punctuation around them.

    Returns:
        Distinct terms in their order.
    """
    given = list(terms)
    kept = dict.fromkeys(filter(None, map(_told, given)))
    return list(kept) or given


def _told(term: str) -> str:
    """Return what a term asks for, "" for a stop word."""
    found = _WORD.fullmatch(term)
    if found is None:
        return term
    word, ending = found["word"].casefold(), (found["ending"] or "").casefold()
    if not ending:
        return "" if word in _WORDS else term
    if ending in _ENDINGS and word in STOP_WORDS:
        return ""
    # "can't" is "can" and "t"; of other contractions only the possessive is common.
    return found["word"] if ending == "s" else term
