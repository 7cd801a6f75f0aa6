"""Figures of judged questions, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engram.bench.judged.measures import CUTS, LEVELS
from engram.bench.plots import draw_figure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["draw"]

_BARS = ("turn_recall_any@5", "turn_recall_all@5")
_WIDTH = 0.4


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw recall against k for every label, and for the first label by group.

    Args:
        document: What `summary` returned for conversations.
        folder: Where the files go.

    Returns:
        The PNG files, which are replaced.
    """
    group = document["folds"][document["label"]]["group"]
    variants = document.get("variants") or {document["label"]: document["groups"]}
    curves = {label: groups[group] for label, groups in variants.items()}
    return [
        *(_draw_curves(folder / f"{level}-recall.png", curves, level) for level in LEVELS),
        _draw_bars(folder / "recall-by-group.png", document["groups"]),
    ]


def _draw_curves(file: Path, curves: Mapping[str, Mapping[str, float]], level: str) -> Path:
    def plot(axes: Any) -> None:
        for at, (label, figures) in enumerate(curves.items()):
            for reading, style in (("any", "-"), ("all", "--")):
                values = [100 * figures[f"{level}_recall_{reading}@{k}"] for k in CUTS]
                name = f"{label}, {reading}"
                axes.plot(CUTS, values, style, color=f"C{at}", marker="o", label=name)

    return draw_figure(
        file,
        plot,
        xscale="log",
        xticks=CUTS,
        xticklabels=CUTS,
        xlabel="k",
        ylabel=f"questions with any or all evidence {level}s in the first k, %",
    )


def _draw_bars(file: Path, groups: Mapping[str, Mapping[str, Any]]) -> Path:
    names = [
        name for name, group in groups.items() if all(bar in group["interval"] for bar in _BARS)
    ]

    def plot(axes: Any) -> None:
        for at, bar in enumerate(_BARS):
            means = [100 * groups[name][bar] for name in names]
            bounds = [groups[name]["interval"][bar] for name in names]
            errors = [
                [max(0, mean - 100 * low) for mean, (low, _) in zip(means, bounds, strict=True)],
                [max(0, 100 * high - mean) for mean, (_, high) in zip(means, bounds, strict=True)],
            ]
            places = [place + at * _WIDTH for place in range(len(names))]
            axes.barh(places, means, _WIDTH, xerr=errors, capsize=2, label=bar)
        axes.invert_yaxis()

    return draw_figure(
        file,
        plot,
        xlabel="questions, %, with 95 % intervals",
        yticks=[place + _WIDTH / 2 for place in range(len(names))],
        yticklabels=names,
    )
