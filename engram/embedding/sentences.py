"""Where the sentences of a text are."""

from __future__ import annotations

import re

__all__ = ["sentence_spans"]

# An end mark with what closes after it, if space follows; the marks of scripts without spaces need
# none. A line break ends a sentence too: headings and list items have no mark. A run of marks or
# of space is tried from its beginning alone: from each of its characters it would take the square.
_END = re.compile(
    r"""(?<![.!?…])[.!?…]+["'”’)\]]*(?=\s)|[。！？｡︒]+[」』”’）]*|[।॥؟۔།]+|(?<!\s)\s*\n\s*"""
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return where each sentence begins and ends, in characters, without the space around it.

    Every character that is no space is in exactly one of them. An abbreviation's point counts as an
    end: for choosing a passage or comparing vectors a sentence too many does no harm.
    """
    ends = [found.end() for found in _END.finditer(text)]
    spans: list[tuple[int, int]] = []
    start = 0
    for end in (*ends, len(text)):
        piece = text[start:end]
        if bare := piece.strip():
            first = start + piece.index(bare)
            spans.append((first, first + len(bare)))
        start = end
    return spans
