"""Turns of conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TurnColumns(NamedTuple):
    """What conversations say of episodes."""

    conversation: NDArray[np.int64]
    answers: NDArray[np.int64]
    assistant: NDArray[np.bool_]


class Turns:
    """The turns of a store."""

    def __init__(self, connection: object) -> None:
        self._connection = connection

    def of(self, keys: NDArray[np.int64]) -> TurnColumns:
        """Return what conversations say of some episodes."""
        return TurnColumns(np.zeros_like(keys), np.zeros_like(keys), np.zeros(len(keys), np.bool_))
