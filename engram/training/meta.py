"""Numbers about the whole, and what should become of single memories."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from engram.training.clustering import near_pairs
from engram.training.messages import Metric, Recommendation

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
    """Return pairs of an earlier row and a later one of its type whose contexts nearly agree."""
    by_type: dict[str, list[int]] = {}
    owners = corpus.owners.tolist()
    for at, owner in enumerate(owners):
        by_type.setdefault(corpus.rows[owner].memory_type, []).append(at)
    pairs = [
        (owners[places[earlier]], owners[places[later]])
        for places in by_type.values()
        for earlier, later in near_pairs(corpus.vectors[places]).tolist()
    ]
    return sorted(pairs, key=lambda pair: pair[1])
