"""Numbers about the whole, and what should become of single memories."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.training.messages import Metric, Recommendation
from engram.training.repeats import near_pairs
from engram.training.rows import PartVectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engram.training.rows import Corpus

_LEAST_SCORE: Final = 0.3
_UPDATES: Final = 100


def metrics(corpus: Corpus, found: Mapping[str, int]) -> Iterator[Metric]:
    """Yield numbers about the memories and what was found in them; nothing without memories.

    Args:
        corpus: The memories.
        found: How many there are of what was looked for, by the name of the number.
    """
    rows = corpus.rows
    if not rows:
        return
    scores = [row.score for row in rows if row.score is not None]
    yield Metric("memory_count", float(len(rows)))
    # Divided first: scores may be as large as numbers get.
    yield Metric("avg_score", math.fsum(score / len(scores) for score in scores))
    for memory_type, count in sorted(Counter(row.memory_type for row in rows).items()):
        yield Metric(f"type_fraction_{memory_type}", count / len(rows))
    if corpus.q_values:
        updates = sum(value.update_count for value in corpus.q_values) / len(corpus.q_values)
        yield Metric("q_table_convergence", min(updates / _UPDATES, 1.0))
    for name, count in found.items():
        yield Metric(name, float(count))


def recommendations(corpus: Corpus) -> Iterator[Recommendation]:
    """Yield what should become of memories: those of little use first, then those said twice.

    A memory is to be merged at most once; one that is of little use as well is named twice.
    """
    for row in corpus.rows:
        if row.score is not None and row.score < _LEAST_SCORE:
            reason = f"Score {row.score:.2f} below threshold {_LEAST_SCORE}"
            yield Recommendation(row.id, "archive", reason)
    for earlier, later in _said_twice(corpus):
        known = corpus.rows[earlier]
        reason = f"Says nearly the same as {known.id}, also of the type {known.memory_type}"
        yield Recommendation(corpus.rows[later].id, "merge", reason)


def _said_twice(corpus: Corpus) -> list[tuple[int, int]]:
    """Return pairs of an earlier row and a later one that says nearly the same.

    Both are of one type and project, and each of the three parts nearly agrees; a blank one only
    with a blank one.
    """
    parts = [PartVectors(corpus.vectors, corpus.owners), *corpus.others]
    places = [np.full(len(corpus.rows), -1) for _ in parts]
    for place, part in zip(places, parts, strict=True):
        place[part.owners] = np.arange(len(part.owners))
    alike: dict[tuple[str, str | None, tuple[int, ...]], list[int]] = {}
    for at, row in enumerate(corpus.rows):
        texts = (row.context, row.action, row.result)
        filled = tuple(field for field, text in enumerate(texts) if text.strip())
        if filled and all(places[field][at] >= 0 for field in filled):
            alike.setdefault((row.memory_type, row.project, filled), []).append(at)
    pairs = [
        (members[earlier], members[later])
        for (*_, filled), members in alike.items()
        if len(members) > 1
        for earlier, later in near_pairs(
            [parts[field].vectors[places[field][members]] for field in filled]
        ).tolist()
    ]
    return sorted(pairs, key=lambda pair: pair[1])
