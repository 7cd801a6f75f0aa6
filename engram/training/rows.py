"""The memories that a run learns from, as far as each could be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Row:
    """A memory. Times are microseconds since the epoch; what could not be read is None.

    Attributes:
        id: Its public id; no two rows share one.
        memory_type: Its type, never "insight".
        context: In what situation.
        action: What was done.
        result: What came of it.
        score: How useful it was judged, finite; 0.0 before it was.
        tags: Its tags.
        parent_id: The memory it followed from.
        created: When it was made.
        updated: When it was changed.
        last_used: When it was last of use; None also says never.
        used_count: How often it was of use.
        judged: Whether it was judged after a search had shown it.
    """

    id: str
    memory_type: str
    context: str
    action: str
    result: str
    score: float | None
    tags: tuple[str, ...]
    parent_id: str | None
    created: int | None
    updated: int | None
    last_used: int | None
    used_count: int | None
    judged: bool


class QValue(NamedTuple):
    """What a choice of the router was worth so far."""

    level: str
    state: str
    action: str
    value: float
    update_count: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a run learns from.

    Attributes:
        rows: The memories, in the order they were stored.
        vectors: float32[m, dim], unit length, of the contexts of those rows that have a sound one.
        owners: int64[m], the row of each vector, ascending.
        q_values: What the router learned.
        skipped: How many memories could not be read, or not whole.
    """

    rows: list[Row]
    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]
    q_values: list[QValue]
    skipped: int = 0
