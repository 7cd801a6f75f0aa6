"""Two runs over the same questions, compared question by question."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.bench.judged.groups import groups
from engram.bench.judged.measures import measure_names, measured
from engram.bench.judged.resampling import intervals, means, resamples
from engram.bench.judged.summary import figure
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.bench.judged.records import Record, Run

__all__ = ["comparison"]


def comparison(first: Run, second: Run, label: str, second_label: str) -> dict[str, Any]:
    """Return by how much the second run is better than the first.

    Args:
        first: The records to compare with.
        second: The records that are compared.
        label: The label of the first run's answers.
        second_label: The label of the second run's.

    Returns:
        `questions` that both were asked, `only_first` and `only_second`, and in `groups`, by group
        and measure: `n`, `first` and `second` (means), `difference`, its paired `interval`, and how
        many questions the second answers better (`wins`), worse (`losses`) and alike (`ties`).

    Raises:
        InvalidArgument: A run has no such label, or they are not over the same data.
    """
    first.check_label(label, "label")
    second.check_label(second_label, "second_label")
    pairs = _pairs(first, second)
    ours = [one for one, _ in pairs]
    before = measured(ours, label)
    after = measured([other for _, other in pairs], second_label)
    names = measure_names(of_documents=first.of_documents)
    return {
        "set": first.data_set,
        "label": label,
        "second_label": second_label,
        "questions": len(pairs),
        "only_first": len(first.records) - len(pairs),
        "only_second": len(second.records) - len(pairs),
        "groups": {
            group: _differences(names, before[rows], after[rows], group)
            for group, rows in groups(first.data_set, ours).items()
        },
    }


def _pairs(first: Run, second: Run) -> list[tuple[Record, Record]]:
    """Return the records of the questions that both runs were asked."""
    if first.header.get("data_sha256") != second.header.get("data_sha256"):
        message = "the records are of different data"
        raise InvalidArgument(message, "compare runs over one file")
    theirs = {record.question: record for record in second.records}
    pairs = [(one, theirs[one.question]) for one in first.records if one.question in theirs]
    if not pairs or first.of_documents != second.of_documents:
        message = "the records have no question in common"
        raise InvalidArgument(message)
    return pairs


def _differences(
    names: Sequence[str],
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    group: str,
) -> dict[str, Any]:
    gained = after - before
    known = ~np.isnan(gained)
    every = np.ones((1, len(gained)))
    mean = [means(np.where(known, part, np.nan), every)[0] for part in (before, after, gained)]
    low, high = intervals(means(gained, resamples(len(gained), group)))
    return {
        name: {
            "n": int(known[:, column].sum()),
            "first": figure(mean[0][column]),
            "second": figure(mean[1][column]),
            "difference": figure(mean[2][column]),
            "interval": [figure(low[column]), figure(high[column])],
            "wins": int((gained[:, column] > 0).sum()),
            "losses": int((gained[:, column] < 0).sum()),
            "ties": int((gained[:, column] == 0).sum()),
        }
        for column, name in enumerate(names)
        if not math.isnan(mean[2][column])
    }
