"""Which namespaces match conditions on their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ANY: Final = "*"
"""Stands for any one label in a condition."""


def listed(
    namespaces: Iterable[tuple[str, ...]],
    conditions: Sequence[tuple[str, tuple[str, ...]]],
    depth: int | None,
) -> list[tuple[str, ...]]:
    """Return the namespaces that meet every condition, cut to a depth, each once, sorted.

    Args:
        namespaces: Labels of each.
        conditions: "prefix" or "suffix", and the labels there.
        depth: How many labels to leave; None is all.
    """
    return sorted(
        {
            one[:depth]
            for one in namespaces
            if all(_matches(one, kind, path) for kind, path in conditions)
        }
    )


def _matches(namespace: tuple[str, ...], kind: str, path: tuple[str, ...]) -> bool:
    if len(namespace) < len(path):
        return False
    there = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in (ANY, label) for wanted, label in zip(path, there, strict=True))
