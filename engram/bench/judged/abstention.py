"""How well the best answer's figure tells questions that nothing answers from the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.bench.judged.resampling import intervals, resamples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.bench.judged.records import Record

__all__ = ["abstention", "auroc"]

_SCORE, _CONFIDENCE = 2, 3


def auroc(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
    """Return how likely one of the first is above one of the second, ties counting half.

    It is the area under the receiver operating characteristic.
    """
    return float(_above(higher, lower).mean())


def _above(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> NDArray[np.float64]:
    first, second = higher[:, None], lower[None, :]
    above: NDArray[np.float64] = (first > second) + 0.5 * (first == second)
    return above


def abstention(records: Sequence[Record], label: str) -> dict[str, Any]:
    """Return how well the best answers of a label tell the two kinds of questions apart.

    Returns:
        `n_abstention` and `n_answerable`, `auroc_confidence` and `auroc_score` (None where there
        is no such figure), and `interval` with their bounds. Empty where only one kind was asked.
    """
    without = [record for record in records if record.abstention]
    others = [record for record in records if not record.abstention]
    if not without or not others:
        return {}
    document: dict[str, Any] = {"n_abstention": len(without), "n_answerable": len(others)}
    bounds: dict[str, list[float]] = {}
    for name, column in (("auroc_confidence", _CONFIDENCE), ("auroc_score", _SCORE)):
        higher, lower = _best(others, label, column), _best(without, label, column)
        if np.isnan(higher).any() or np.isnan(lower).any():
            document[name] = None
            continue
        document[name] = round(auroc(higher, lower), 6)
        bounds[name] = _interval(_above(higher, lower))
    return {**document, "interval": bounds}


def _best(records: Sequence[Record], label: str, column: int) -> NDArray[np.float64]:
    """Return a figure of each question's best answer; no answer at all is below every figure."""
    best = [
        record.answers[label][0][column] if record.answers[label] else -math.inf
        for record in records
    ]
    return np.array(best, dtype=np.float64)


def _interval(above: NDArray[np.float64]) -> list[float]:
    """Return the interval of the mean of a table of pairs, its rows and columns drawn anew."""
    rows = resamples(above.shape[0], "answerable") / above.shape[0]
    columns = resamples(above.shape[1], "abstention") / above.shape[1]
    resampled = ((rows @ above) * columns).sum(axis=1)
    return [round(float(bound), 6) for bound in intervals(resampled[:, None])[:, 0]]
