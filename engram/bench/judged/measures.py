"""How good one ranking is, where it is known what belongs on top.

The measures of conversations are those of LongMemEval's retrieval protocol (its
`src/retrieval/eval_utils.py`), and beside them the share of the evidence that was found and the
reciprocal rank.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from engram.bench.judged.records import Record

__all__ = [
    "CUTS",
    "DEPTH",
    "DOCUMENT_MEASURES",
    "LEVELS",
    "MEASURES",
    "document_measures",
    "measure_names",
    "measured",
    "ranking_measures",
]

CUTS = (1, 5, 10, 50)
"""The numbers of answers that are looked at."""

DEPTH = CUTS[-1]
LEVELS = ("turn", "session")

MEASURES = (
    *(f"{name}@{k}" for k in CUTS for name in ("recall_any", "recall_all", "recall", "ndcg")),
    "mrr",
)
"""The measures of one ranking, in the order `ranking_measures` gives them."""

DOCUMENT_MEASURES = ("ndcg@10", "ndcg_binary@10", "recall@10", "hit@5", "mrr@10")
"""The measures of a collection of documents, in the order `document_measures` gives them."""

_DOCUMENTS = 10
_HIT = 5

# LongMemEval's discount: the second rank still counts in full.
_OFFICIAL = [1.0, *(1 / math.log2(rank) for rank in range(2, DEPTH + 1))]
_OFFICIAL_IDEAL = [0.0, *accumulate(_OFFICIAL)]

# The discount of trec_eval, which judged collections are measured with.
_STANDARD = [1 / math.log2(rank + 1) for rank in range(1, _DOCUMENTS + 1)]


def ranking_measures(ranked: Iterable[str], gold: Collection[str]) -> list[float]:
    """Measure a ranking of turns or sessions.

    At each cut k: `recall_any` is 1 where something of the evidence is among the first k,
    `recall_all` where all of it is, `recall` is the share of it that is, and `ndcg` has gains of 0
    and 1 and LongMemEval's discount: 1 at rank 1, 1 / log2(rank) below. `mrr` is 1 / rank of the
    first piece of evidence, 0 where none is among the first 50.

    Args:
        ranked: Ids, the best first; one that comes again is counted where it came first.
        gold: Ids of the evidence, at least one, each once.

    Returns:
        The values of `MEASURES`, each in 0..1.
    """
    wanted = set(gold)
    distinct = list(dict.fromkeys(ranked))[:DEPTH]
    ranks = [rank for rank, one in enumerate(distinct) if one in wanted]
    values: list[float] = []
    for k in CUTS:
        found = [rank for rank in ranks if rank < k]
        gained = sum(_OFFICIAL[rank] for rank in found)
        values += (
            float(bool(found)),
            float(len(found) == len(wanted)),
            len(found) / len(wanted),
            gained / _OFFICIAL_IDEAL[min(k, len(wanted))],
        )
    return [*values, 1 / (ranks[0] + 1) if ranks else 0.0]


def document_measures(ranked: Iterable[str], grades: Mapping[str, float]) -> list[float]:
    """Measure a ranking of documents.

    `ndcg@10` has the grades for gains, `ndcg_binary@10` gains of 1, both the discount
    1 / log2(rank + 1); `recall@10` is the share of relevant documents among the first ten, `hit@5`
    is 1 where one is among the first five, `mrr@10` is 1 / rank of the first, 0 below ten.

    Args:
        ranked: Ids of documents, the best first.
        grades: How relevant the relevant ones are, at least one, all above 0.

    Returns:
        The values of `DOCUMENT_MEASURES`, each in 0..1.
    """
    gains = [grades.get(one, 0.0) for one in list(dict.fromkeys(ranked))[:_DOCUMENTS]]
    ranks = [rank for rank, gain in enumerate(gains) if gain]
    ideal = sorted(grades.values(), reverse=True)
    return [
        _discounted(gains) / _discounted(ideal),
        _discounted([float(gain > 0) for gain in gains]) / _discounted([1.0] * len(grades)),
        len(ranks) / len(grades),
        float(bool(ranks) and ranks[0] < _HIT),
        1 / (ranks[0] + 1) if ranks else 0.0,
    ]


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain * discount for gain, discount in zip(gains, _STANDARD, strict=False))


def measure_names(*, of_documents: bool) -> tuple[str, ...]:
    """Return the names of the columns of `measured`."""
    if of_documents:
        return DOCUMENT_MEASURES
    return tuple(f"{level}_{name}" for level in LEVELS for name in MEASURES)


def measured(records: Sequence[Record], label: str) -> NDArray[np.float64]:
    """Measure the answers of a label.

    Sessions are ranked by their first turn in the answer, so k sessions may be more than k turns
    deep, to its end.

    Returns:
        A row for each record and a column for each of `measure_names`; NaN where a record has no
        evidence of the kind that is measured.
    """
    return np.array([_row(record, label) for record in records], dtype=np.float64)


def _row(record: Record, label: str) -> list[float]:
    answers = record.answers[label]
    turns = [answer[0] for answer in answers]
    if record.grades is not None:
        grades = {one: record.grades.get(one, 1.0) for one in record.gold_turns}
        return document_measures(turns, grades) if grades else [math.nan] * len(DOCUMENT_MEASURES)
    sessions = [answer[1] for answer in answers]
    unknown = [math.nan] * len(MEASURES)
    return [
        value
        for ranked, gold in ((turns, record.gold_turns), (sessions, record.gold_sessions))
        for value in (ranking_measures(ranked, gold) if gold else unknown)
    ]
