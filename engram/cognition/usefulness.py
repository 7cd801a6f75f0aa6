"""How useful a memory is likely to be, told from its words, its age and its use."""

from __future__ import annotations

import math
import re
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_SHARES: Final = (0.4, 0.3, 0.3)
_FADES_OVER: Final = 30.0
_USED_OFTEN: Final = 10


def usefulness(query: str, text: str, days: float, used: int) -> tuple[float, str]:
    """Return a memory's likely usefulness, 0 to 1, and what it is made of.

    Args:
        query: What was asked; its words that the text has count, each as often as it stands there.
        text: What the memory says.
        days: Days since it was last changed; one of the future counts as new.
        used: How often it was used.
    """
    asked = _WORD.findall(query.lower())
    said = set(_WORD.findall(text.lower()))
    keyword = sum(word in said for word in asked) / len(asked) if asked else 0.0
    recency = math.exp(-max(days, 0.0) / _FADES_OVER)
    frequency = min(used / _USED_OFTEN, 1.0)
    parts = (keyword, recency, frequency)
    score = sum(share * part for share, part in zip(_SHARES, parts, strict=True))
    reason = f"keyword:{keyword:.2f} recency:{recency:.2f} frequency:{frequency:.2f}"
    return min(max(score, 0.0), 1.0), reason
