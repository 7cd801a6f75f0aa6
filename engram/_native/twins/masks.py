"""Which rows count, for the twins that take a mask of owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["counting_rows"]


def counting_rows(
    rows: NDArray[np.integer], allowed: NDArray[np.bool_] | None, owners: NDArray[np.uint32] | None
) -> NDArray[np.bool_]:
    """Which of `rows` have an allowed owner."""
    if allowed is None:
        return np.ones(len(rows), np.bool_)
    owner = rows if owners is None else owners[rows]
    counting = np.zeros(len(rows), np.bool_)
    known = owner < len(allowed)
    counting[known] = allowed[owner[known]]
    return counting
