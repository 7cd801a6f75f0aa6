"""What the trained models see of a memory: the same when they learn and when they are asked."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from hashlib import blake2b
from typing import Final

from engram.storage.segment import searchable

LEAST_ROWS: Final = 10
"""With fewer memories no model is trained."""

FEATURES: Final = ("score", "used_count", "recency_days", "text_length", "has_tags")
"""What the ranking model sees, in this order."""

_DAY: Final = 86_400_000_000
_LONGEST: Final = 40
_LAST: Final = 0x20000


def classified_text(context: str, action: str) -> str:
    """Return what the classifier reads of a memory."""
    return f"{context} {action}"


def tokens(text: str) -> list[str]:
    """Return the words of a text, in lower case: two letters, digits or underscores and more.

    In scripts without spaces each pair of letters is one. What is longer than any word, 40 bytes
    of UTF-8, is left out.
    """
    words = _words().findall(searchable(text).lower())
    return [word for word in words if len(word.encode()) <= _LONGEST]


def digest(token: str) -> str:
    """Return what a model knows a token by: 8 bytes of BLAKE2b in hexadecimal."""
    return blake2b(token.encode(), digest_size=8).hexdigest()


@cache
def _words() -> re.Pattern[str]:
    # Vowel signs and the like are no letters to a pattern, but parts of a word.
    marks = "".join(one for one in map(chr, range(_LAST)) if unicodedata.category(one)[0] == "M")
    return re.compile(f"[\\w{marks}]{{2,}}")


def ranking_features(
    score: float, used_count: int, created: int, last: int, characters: int, *, has_tags: bool
) -> tuple[float, ...]:
    """Return the values of `FEATURES` for a memory.

    Args:
        score: How useful it was judged.
        used_count: How often it was of use.
        created: When it was made, in microseconds since the epoch.
        last: When it was last of use, or else changed; likewise.
        characters: The length of its context and action.
        has_tags: Whether it has any tag.
    """
    recency = max(0.0, (last - created) / _DAY)
    return (score, float(used_count), recency, float(characters), float(has_tags))
