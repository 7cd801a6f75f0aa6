"""When two spellings are one name, and when a text contains a name."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from engram.storage.segment import is_unspaced

if TYPE_CHECKING:
    from collections.abc import Iterable


def folded(text: str) -> str:
    """Return the form under which spellings of a name are compared.

    Case is folded, composed and decomposed characters are the same, and so is any white space.
    """
    folded_case = unicodedata.normalize("NFC", text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded_case).split())


def mentions(text: str, names: Iterable[str]) -> bool:
    """Return whether a text contains one of some folded names as a word.

    A word ends where letters, digits and their marks do. Scripts without spaces show no such end,
    so a name in one of them counts wherever it stands.
    """
    text = folded(text)
    return any(_contains(text, name) for name in names)


def _contains(text: str, name: str) -> bool:
    start = text.find(name)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(name) : start + len(name) + 1]
        if not (_joined(before, name[0]) or _joined(name[-1], after)):
            return True
        start = text.find(name, start + 1)
    return False


def _joined(left: str, right: str) -> bool:
    """Return whether two neighbouring characters belong to one word."""
    return _in_word(left) and _in_word(right) and not (is_unspaced(left) or is_unspaced(right))


def _in_word(character: str) -> bool:
    return bool(character) and unicodedata.category(character)[0] in "LNM"
