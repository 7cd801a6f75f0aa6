"""Figures of judged questions as tables, made of the same document that `--json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engram.bench.judged.measures import CUTS, DOCUMENT_MEASURES, LEVELS
from engram.bench.report import banner, print_table
from engram.cli.output import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["print_comparison", "print_summary"]

_HEADLINE = (
    "session_recall_any@5",
    "session_recall_all@5",
    "turn_recall_any@5",
    "turn_recall_all@5",
    "turn_ndcg@5",
    "turn_mrr",
)
_SHORT = {"session": "S", "turn": "T"}
_SIZES = {level: f"{level}s" for level in LEVELS}
_READINGS = ("recall_any", "recall_all", "recall", "ndcg")

_Group = dict[str, Any]


def print_summary(document: Mapping[str, Any]) -> None:
    """Print what `summary` returned, in percent, and nothing else."""
    groups: dict[str, _Group] = document["groups"]
    of_documents = DOCUMENT_MEASURES[0] in groups["all"]
    headline = document["folds"][document["label"]]["group"]
    banner(f"{document['set']}: {document['questions']:,} questions, {document['label']}")
    measures = DOCUMENT_MEASURES if of_documents else _HEADLINE
    _print_groups("", groups, measures)
    if not of_documents:
        _print_cuts(groups[headline], headline)
    _print_intervals(groups[headline], headline, measures)
    if "variants" in document:
        variants = {label: one[headline] for label, one in document["variants"].items()}
        _print_groups(f"Labels, group {headline}", variants, measures)
    _print_folds(document["folds"], measures)
    _print_abstention(document["abstention"])
    _print_sizes(document["haystack"], {"turn": "documents"} if of_documents else _SIZES)
    _print_latency(document["latency"])


def print_comparison(document: Mapping[str, Any]) -> None:
    """Print what `comparison` returned, in percent and points."""
    labels = f"{document['label']} and {document['second_label']}"
    banner(f"{document['set']}: {document['questions']:,} questions, {labels}")
    for only in ("only_first", "only_second"):
        if document[only]:
            line(f"Left out, in {only.removeprefix('only_')} alone: {document[only]:,}")
    for group, measures in document["groups"].items():
        line(f"Group {group}")
        print_table(
            ("", "n", "first", "second", "difference", "95 %", "wins", "losses", "ties"),
            [
                (
                    _head(name),
                    f"{one['n']:,}",
                    _percent(one["first"]),
                    _percent(one["second"]),
                    f"{100 * one['difference']:+.1f}",
                    _between(one["interval"]),
                    *(f"{one[count]:,}" for count in ("wins", "losses", "ties")),
                )
                for name in (*_HEADLINE, *DOCUMENT_MEASURES)
                if (one := measures.get(name)) is not None
            ],
        )
        line()


def _head(name: str) -> str:
    level, _, rest = name.partition("_")
    return f"{_SHORT[level]} {rest.removeprefix('recall_')}" if level in _SHORT else name


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _between(bounds: Sequence[float | None]) -> str:
    return " to ".join(map(_percent, bounds))


def _print_groups(title: str, groups: Mapping[str, _Group], measures: Sequence[str]) -> None:
    if title:
        line(title)
    # Documents are counted once.
    counts = [name for name in ("n", "n_turn") if name in next(iter(groups.values()))]
    print_table(
        ("", *(name.replace("_", " ") for name in counts), *map(_head, measures)),
        [
            (
                name,
                *(f"{group[count]:,}" for count in counts),
                *(_percent(group[measure]) for measure in measures),
            )
            for name, group in groups.items()
        ],
    )
    line()


def _print_cuts(group: _Group, name: str) -> None:
    line(f"First k answers, group {name}")
    rows = [
        (f"{level} {reading}", *(_percent(group[f"{level}_{reading}@{k}"]) for k in CUTS))
        for level in LEVELS
        for reading in _READINGS
    ]
    print_table(("", *(f"k={k}" for k in CUTS)), rows)
    line()


def _print_intervals(group: _Group, name: str, measures: Sequence[str]) -> None:
    line(f"95 % intervals, group {name}")
    known = [measure for measure in measures if measure in group["interval"]]
    rows = [(_head(one), _percent(group[one]), _between(group["interval"][one])) for one in known]
    print_table(("", "mean", "95 %"), rows)
    line()


def _print_folds(folds: Mapping[str, _Group], measures: Sequence[str]) -> None:
    line("Five folds, lowest to highest")
    print_table(
        ("", *map(_head, measures)),
        [
            (label, *(_between((one["min"].get(m), one["max"].get(m))) for m in measures))
            for label, one in folds.items()
        ],
    )
    line()


def _print_abstention(labels: Mapping[str, _Group]) -> None:
    if not labels:
        return
    line("Questions that nothing answers against the others, by the best answer")
    rows = [
        (
            label,
            f"{one['n_abstention']:,}",
            f"{one['n_answerable']:,}",
            *(
                cell
                for name in ("auroc_confidence", "auroc_score")
                for cell in (_percent(one[name]), _between(one["interval"].get(name, (None,))))
            ),
        )
        for label, one in labels.items()
    ]
    heads = ("AUROC confidence", "95 %", "AUROC score", "95 %")
    print_table(("", "nothing", "others", *heads), rows)
    line()


def _print_sizes(haystack: Mapping[str, float], levels: Mapping[str, str]) -> None:
    line("The first k answers as a share of the haystack")
    print_table(
        ("", "mean size", *(f"k={k}" for k in CUTS)),
        [
            (
                name,
                f"{haystack[f'{level}s']:,.1f}",
                *(f"{100 * haystack[f'{level}_share@{k}']:.2f}" for k in CUTS),
            )
            for level, name in levels.items()
        ],
    )
    line()


def _print_latency(latency: Mapping[str, _Group]) -> None:
    if latency:
        print_table(
            ("", "n", "p50 ms", "p95 ms"),
            [
                (label, f"{one['n']:,}", f"{one['p50_ms']:.1f}", f"{one['p95_ms']:.1f}")
                for label, one in latency.items()
            ],
        )
