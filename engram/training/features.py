"""What the trained models see of a memory: the same when they learn and when they are asked."""

from __future__ import annotations

import re
from typing import Final

LEAST_ROWS: Final = 10
"""With fewer memories no model is trained."""

FEATURES: Final = ("score", "used_count", "recency_days", "text_length", "has_tags")
"""What the ranking model sees, in this order."""

WORD_PATTERN: Final = r"(?u)\b\w\w+\b"
"""What counts as a word of a text in lower case."""

_DAY: Final = 86_400_000_000
_TOKENS: Final = re.compile(WORD_PATTERN)


def classified_text(context: str, action: str) -> str:
    """Return what the classifier reads of a memory."""
    return f"{context} {action}"


def tokens(text: str) -> list[str]:
    """Return the words of a text: two letters, digits or underscores and more, in lower case."""
    return _TOKENS.findall(text.lower())


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
