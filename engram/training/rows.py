"""The memories that a run learns from, as far as each could be read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from engram.errors import InvalidArgument
from engram.storage.training_source import BAD, public_id, reading
from engram.times import from_micros, to_micros
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.storage.training_source import MemoryCells, TrainingSource, VectorShape

_AT_ONCE: Final = 8192
_STRINGS: Final = msgspec.json.Decoder(list[str])


@dataclass(frozen=True, slots=True)
class Row:
    """A memory. Times are microseconds since the epoch; what could not be read is None.

    Attributes:
        id: Its public id; no two rows share one.
        memory_type: Its type, never "insight".
        context: In what situation.
        action: What was done.
        result: What came of it.
        project: Whose it is.
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
    project: str | None
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


class PartVectors(NamedTuple):
    """The vectors of one part of the memories.

    Attributes:
        vectors: float16[m, dim] or float32[m, dim], unit length, of those that have a sound one.
        owners: int64[m], the row of each vector, ascending.
    """

    vectors: NDArray[np.float16] | NDArray[np.float32]
    owners: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a run learns from.

    Attributes:
        rows: The memories, in the order they were stored.
        vectors: float32[m, dim], unit length, of the contexts of those rows that have a sound one.
        owners: int64[m], the row of each vector, ascending.
        q_values: What the router learned.
        others: The vectors of actions and of results, in half precision: they are many.
        skipped: How many memories could not be read, or not whole.
    """

    rows: list[Row]
    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]
    q_values: list[QValue]
    others: tuple[PartVectors, ...] = ()
    skipped: int = 0


def read_corpus(database: Path, key: str | None = None, agent: str | None = None) -> Corpus:
    """Return what a store, or a database of the reference server, holds.

    Args:
        database: The file; it stays as it is, and others may write it meanwhile.
        key: Its passphrase, if it is encrypted.
        agent: The only agent of a store whose memories are read; None: everybody's.

    Raises:
        EngramError: It cannot be read; see `engram.storage.training_source.reading`.
    """
    with reading(database, key, agent) as source:
        return _Reader(source).corpus()


class _Reader:
    """Turns cells into rows and counts the memories that are not whole."""

    def __init__(self, source: TrainingSource) -> None:
        self._source = source
        self._rows: list[Row] = []
        self._ids: set[str] = set()
        self._places: dict[int, int] = {}
        self._lost = 0
        self._partial: set[int] = set()

    def corpus(self) -> Corpus:
        shape = self._source.shape()
        parts = [_Vectors(shape, dtype) for dtype in ("float32", "float16", "float16")]
        judged = self._source.judged()
        for batch in self._source.memories():
            first = len(self._rows)
            kept = [cells for cells in batch if self._take(cells, judged)]
            # The last three cells.
            for cell, part in enumerate(parts, -3):
                there = ((first + at, cells[cell]) for at, cells in enumerate(kept))
                part.add([(owner, blob) for owner, blob in there if blob is not None])
        for chunks in self._source.vectors():
            for field, part in enumerate(parts):
                part.add(
                    [
                        (self._places[key], blob)
                        for key, of, blob in chunks
                        if of == field and key in self._places
                    ]
                )
        contexts, *others = (part.whole() for part in parts)
        refused: set[int] = set().union(*(part.refused for part in parts))
        return Corpus(
            self._rows,
            contexts.vectors.astype(np.float32, copy=False),
            contexts.owners,
            list(_q_values(self._source)),
            tuple(others),
            self._lost + len(self._partial | refused),
        )

    def _take(self, cells: MemoryCells, judged: set[str]) -> bool:
        """Keep a memory; return whether it can be told from others and says something."""
        uid = public_id(cells.id_kind, cells.uid)
        said = [_text(cell) for cell in cells[3:7]]
        if cells.project is not None:
            said.append(_text(cells.project))
        if uid is None or uid in self._ids or None in said:
            self._lost += 1
            return False
        row, whole = _row(uid, said, cells, judged)
        if not whole:
            self._partial.add(len(self._rows))
        self._places[cells.key] = len(self._rows)
        self._ids.add(uid)
        self._rows.append(row)
        return True


def _row(uid: str, said: list[Any], cells: MemoryCells, judged: set[str]) -> tuple[Row, bool]:
    """Return a row, and whether everything in it could be read."""
    score, used = _number(cells.score), cells.used_count
    tags = _tags(cells.tags)
    has_parent = cells.parent_kind != "null"
    parent = public_id(cells.parent_kind, cells.parent) if has_parent else None
    created, updated, last_used = map(_time, (cells.created, cells.updated, cells.last_used))
    memory_type, context, action, result, *project = said
    row = Row(
        id=uid,
        memory_type=memory_type,
        context=context,
        action=action,
        result=result,
        project=project[0] if project else None,
        score=score,
        tags=tags or (),
        parent_id=parent,
        created=created,
        updated=updated,
        last_used=last_used,
        used_count=used if isinstance(used, int) else None,
        judged=uid in judged,
    )
    whole = (
        None not in (score, tags, created, updated, row.used_count)
        and (parent is not None) == has_parent
        and (last_used is not None) == (cells.last_used is not None)
    )
    return row, whole


def _text(cell: Any) -> str | None:
    if not isinstance(cell, bytes):
        return None
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None


def _number(cell: Any) -> float | None:
    if isinstance(cell, (int, float)) and math.isfinite(cell):
        return float(cell)
    return None


def _time(cell: Any) -> int | None:
    """Return a time in microseconds, None where a cell holds none of the years 1 to 9999."""
    try:
        if isinstance(cell, int):
            return to_micros(from_micros(cell))
        return to_micros(datetime.fromisoformat(_text(cell) or ""))
    except (InvalidArgument, OverflowError, ValueError):
        return None


def _tags(cell: Any) -> tuple[str, ...] | None:
    """Return tags, which are a JSON array or have commas between them; None: they are damaged."""
    if cell is None:
        return ()
    text = _text(cell)
    if text is None:
        return None
    try:
        tags = _STRINGS.decode(text)
    except (msgspec.DecodeError, RecursionError):
        tags = [tag.strip() for tag in text.split(",")]
    return tuple(tag for tag in tags if tag.strip())


def _q_values(source: TrainingSource) -> Iterator[QValue]:
    for *cells, value, updates in source.q_values():
        level, state, action = map(_text, cells)
        worth = _number(value)
        if level is None or state is None or action is None or worth is None or updates == BAD:
            continue
        yield QValue(level, state, action, worth, updates)


class _Vectors:
    """Vectors of one part as they are read: one for each owner, the mean of what it has.

    Args:
        shape: How they are stored.
        kept: The NumPy type that they are kept in.

    Attributes:
        refused: The owners of vectors that are of another size, not finite, or zero.
    """

    def __init__(self, shape: VectorShape, kept: str) -> None:
        self._dim = shape.dim
        self._dtype = np.dtype(shape.dtype)
        self._size = shape.dim * self._dtype.itemsize
        # Where nothing is written, the system gives no memory.
        self._sums = np.zeros((shape.at_most, shape.dim), dtype=kept)
        self._owners = np.zeros(shape.at_most, dtype=np.int64)
        self._used = 0
        self.refused: set[int] = set()

    def add(self, pairs: Sequence[tuple[int, Any]]) -> None:
        """Add stored vectors with their owners, which ascend from call to call."""
        sound = [pair for pair in pairs if _is_blob(pair[1], self._size)]
        self.refused.update(owner for owner, blob in pairs if not _is_blob(blob, self._size))
        if not sound:
            return
        owners = np.array([owner for owner, _ in sound], dtype=np.int64)
        stored = np.frombuffer(b"".join(blob for _, blob in sound), dtype=self._dtype)
        vectors = stored.reshape(-1, self._dim).astype(np.float32)
        good = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
        self.refused.update(owners[~good].tolist())
        owners, vectors = owners[good], normalise(vectors[good])
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        if not len(begins):
            return
        # Of one whose vectors are in two batches the first part has its place already.
        again = int(self._used > 0 and self._owners[self._used - 1] == owners[0])
        start = self._used - again
        end = start + len(begins)
        self._sums[start:end] += np.add.reduceat(vectors, begins, axis=0)
        self._owners[start:end] = owners[begins]
        self._used = end

    def whole(self) -> PartVectors:
        """Return the vectors and their owners."""
        vectors, owners = self._sums[: self._used], self._owners[: self._used]
        for first in range(0, self._used, _AT_ONCE):
            some = vectors[first : first + _AT_ONCE]
            some[:] = normalise(some.astype(np.float32))
        good = vectors.any(axis=1)
        self.refused.update(owners[~good].tolist())
        return (
            PartVectors(vectors, owners) if good.all() else PartVectors(vectors[good], owners[good])
        )


def _is_blob(cell: Any, size: int) -> bool:
    return isinstance(cell, bytes) and len(cell) == size and size > 0
