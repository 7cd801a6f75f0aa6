"""Memories with something to learn from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engram.training.rows import Row

DAY = 86_400_000_000
WORDS = {
    "bugfix": "crash trace null pointer broken login",
    "decision": "postgres broker choose cluster storage vendor",
    "pattern": "retry wrapper decorator builder reuse pool",
}
"""What memories of each type speak of."""


def row(number: int, memory_type: str, context: str, **values: object) -> Row:
    given = {
        "id": f"m{number}",
        "memory_type": memory_type,
        "context": context,
        "action": "",
        "result": "",
        "project": None,
        "score": 0.0,
        "tags": (),
        "parent_id": None,
        "created": number * DAY,
        "updated": number * DAY,
        "last_used": None,
        "used_count": 0,
        "judged": False,
    }
    return Row(**{**given, **values})


def classified_rows(count: int) -> list[Row]:
    """Memories of three types, told apart by their words."""
    chance = np.random.default_rng(1)
    rows = []
    for number in range(count):
        kind = list(WORDS)[number % 3]
        words = chance.permutation(WORDS[kind].split())[:4]
        rows.append(row(number, kind, " ".join(words[:2]), action=" ".join(words[2:])))
    return rows


def ranked_rows(count: int) -> list[Row]:
    """Memories, those with a high score judged."""
    scores = np.random.default_rng(2).permutation(np.linspace(0, 1, count))
    return [
        row(number, "decision", "twenty letters, no a", score=float(score), judged=score > 0.5)
        for number, score in enumerate(scores)
    ]


def mixed_rows(count: int) -> list[Row]:
    """Memories of three types, those with a high score judged."""
    return [
        replace(one, score=ranked.score, judged=ranked.judged)
        for one, ranked in zip(classified_rows(count), ranked_rows(count), strict=True)
    ]
