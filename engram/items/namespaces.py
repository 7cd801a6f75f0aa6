"""Names of items: what they may be, and which namespaces match conditions on their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engram import arguments
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Name = tuple[tuple[str, ...], str]
"""A namespace and a key."""

MAX_NAME_BYTES: Final = 10_000
"""Bytes of UTF-8 that a key may have, and the labels of a namespace with one between any two."""

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


def checked_name(namespace: object, key: object) -> Name:
    """Return the name of an item: the labels of its namespace, and its key.

    Raises:
        InvalidArgument, InvalidType: One of them is refused.
    """
    labels, name = checked_labels(namespace, "namespace"), arguments.text(key, "key")
    _check_size(name, "key")
    return labels, name


def checked_labels(namespace: object, argument: str) -> tuple[str, ...]:
    """Return the labels of a namespace.

    Raises:
        InvalidArgument, InvalidType: They are refused.
    """
    labels = arguments.names(namespace, argument)
    _check_size("/".join(labels), argument)
    return labels


def _check_size(text: str, argument: str) -> None:
    if len(text.encode()) > MAX_NAME_BYTES:
        message = f"{argument} must have at most {MAX_NAME_BYTES} bytes of UTF-8"
        raise InvalidArgument(message)
