"""From records to figures: everything that is printed or published comes from here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.bench.judged import records as kept
from engram.bench.judged.abstention import abstention
from engram.bench.judged.groups import FOLDS, TYPE_MIX, TYPE_WEIGHTED, folds, groups, headline
from engram.bench.judged.measures import CUTS, measure_names, measured
from engram.bench.judged.resampling import intervals, means, resamples
from engram.bench.stats import LatencyStats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.bench.judged.records import Run, Times

__all__ = ["figure", "json_of", "summary"]

_DIGITS = 6

Document = dict[str, Any]


def json_of(file: Path) -> Document:
    """Return what a file of records says, as `--json` prints it.

    Raises:
        BadFileError: It holds no records, or the file of times beside it something else.
        OSError: It cannot be read.
    """
    return summary(kept.read(file), kept.read_times(file))


def summary(run: Run, times: Sequence[Times] = ()) -> Document:
    """Return the figures of a run: its header and, by name, what the reference lists.

    Args:
        run: The records.
        times: How long its questions took.
    """
    values = {label: measured(run.records, label) for label in run.labels}
    by_label = _groups_by_label(run, values)
    document: Document = {
        **run.header,
        "questions": len(run.records),
        "label": run.labels[0],
        "groups": by_label[run.labels[0]],
    }
    if len(run.labels) > 1:
        document["variants"] = by_label
    document["folds"] = {label: _fold_figures(run, values[label]) for label in run.labels}
    document["haystack"] = _haystack(run)
    document["latency"] = _latency(run, times)
    document["abstention"] = {
        label: figures for label in run.labels if (figures := abstention(run.records, label))
    }
    return document


def figure(value: float) -> float | None:
    """Return a figure as it is published: six digits, None where there is nothing to measure."""
    return None if math.isnan(value) else round(float(value), _DIGITS)


def _groups_by_label(run: Run, values: dict[str, NDArray[np.float64]]) -> dict[str, Document]:
    names = measure_names(of_documents=run.of_documents)
    by_label: dict[str, Document] = {label: {} for label in run.labels}
    parts: dict[str, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
    for group, rows in groups(run.data_set, run.records).items():
        # Drawn once for all labels, which are therefore compared on the same questions.
        times = resamples(len(rows), group)
        for label in run.labels:
            part = values[label][rows]
            mean = means(part, np.ones((1, len(rows))))[0]
            resampled = means(part, times)
            if group in TYPE_MIX:
                parts.setdefault(label, []).append((mean, resampled))
            by_label[label][group] = {
                **_counts(run, rows),
                **_figures(names, mean, resampled),
            }
    if all(group in by_label[run.labels[0]] for group in TYPE_MIX):
        for label, groups_ in by_label.items():
            shares = [TYPE_MIX[group] for group in groups_ if group in TYPE_MIX]
            groups_[TYPE_WEIGHTED] = {
                **{count: groups_["all"][count] for count in ("n", "n_turn")},
                **_weighted(names, shares, parts[label]),
            }
    return by_label


def _weighted(
    names: Sequence[str],
    shares: Sequence[int],
    parts: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> Document:
    """Return the figures of types mixed by their shares; those without evidence are left out."""
    weights = np.array([shares], dtype=np.float64)
    mean = means(np.array([mean for mean, _ in parts]), weights)[0]
    stacked = np.array([resampled for _, resampled in parts])
    flat = stacked.reshape(len(parts), -1)
    return _figures(names, mean, means(flat, weights).reshape(stacked.shape[1:]))


def _counts(run: Run, rows: NDArray[np.intp]) -> Document:
    chosen = [run.records[row] for row in rows]
    with_turns = sum(bool(record.gold_turns) for record in chosen)
    if run.of_documents:
        return {"n": with_turns}
    return {"n": sum(bool(record.gold_sessions) for record in chosen), "n_turn": with_turns}


def _figures(
    names: Sequence[str], mean: NDArray[np.float64], resampled: NDArray[np.float64]
) -> Document:
    bounds = intervals(resampled)
    return {
        **{name: figure(value) for name, value in zip(names, mean, strict=True)},
        "interval": {
            name: [figure(low), figure(high)]
            for name, low, high in zip(names, *bounds, strict=True)
            if not math.isnan(low)
        },
    }


def _fold_figures(run: Run, values: NDArray[np.float64]) -> Document:
    """Return the mean of each fold of the headline group, and the lowest and highest of them."""
    group = headline(run.data_set, run.records)
    rows = groups(run.data_set, run.records)[group]
    fold = folds(run.data_set, run.records)[rows]
    members = [rows[fold == one] for one in range(FOLDS)]
    each = means(values[rows], np.array([fold == one for one in range(FOLDS)], dtype=np.float64))
    names = measure_names(of_documents=run.of_documents)
    columns = {
        name: [known for known in map(figure, column) if known is not None]
        for name, column in zip(names, each.T, strict=True)
    }
    return {
        "group": group,
        "n": [_counts(run, one)["n"] for one in members],
        "mean": {
            name: [figure(value) for value in column]
            for name, column in zip(names, each.T, strict=True)
        },
        "min": {name: min(known) for name, known in columns.items() if known},
        "max": {name: max(known) for name, known in columns.items() if known},
    }


def _haystack(run: Run) -> Document:
    """Return the mean size of the haystacks, and which share of one the first k answers are."""
    sizes = {
        "turn": np.array([record.turns for record in run.records], dtype=np.float64),
        "session": np.array([record.sessions for record in run.records], dtype=np.float64),
    }
    document: Document = {f"{level}s": figure(size.mean()) for level, size in sizes.items()}
    for level, size in sizes.items():
        for k in CUTS:
            share = np.minimum(k, size) / np.maximum(size, 1)
            document[f"{level}_share@{k}"] = figure(share.mean())
    return document


def _latency(run: Run, times: Sequence[Times]) -> Document:
    """Return p50 and p95 of the recalls by label, and of filling a store, in milliseconds."""
    asked = {record.question for record in run.records}
    known = [one for one in times if one.question in asked]
    samples = {
        label: [one.seconds[label] for one in known if label in one.seconds] for label in run.labels
    }
    samples["ingest"] = [one.ingest for one in known if one.ingest is not None]
    return {label: _percentiles(seconds) for label, seconds in samples.items() if seconds}


def _percentiles(seconds: Sequence[float]) -> Document:
    stats = LatencyStats.from_samples([1000.0 * one for one in seconds])
    return {"n": len(seconds), "p50_ms": figure(stats.p50_ms), "p95_ms": figure(stats.p95_ms)}
