"""Vectors as the store keeps them: float16, unit length, one row per chunk of an episode.

Rounding to float16 moves a unit vector of 384 dimensions by about 3e-4. Queries go through the
same rounding (`as_stored`), so a text is at distance zero from itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np

from engram.errors import CorruptStore
from engram.storage.standing import TEXTLESS
from engram.storage.triplets import texts_of
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from engram.models import StoredModel
    from engram.storage.connection import Connection
    from engram.storage.triplets import Texts

STORED: Final = np.dtype("<f2")
"""The numbers of a stored vector."""
_BATCH = 8192
_LACKS = (
    "NOT EXISTS (SELECT 1 FROM embedding WHERE episode = e.id AND model = ?)"  # noqa: S608
    f" AND e.id NOT IN ({TEXTLESS})"
)


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Vectors with their episodes.

    Attributes:
        episodes: int64[n], keys, non-decreasing: chunks of an episode lie side by side.
        vectors: float32[n, dim], unit length.
    """

    episodes: NDArray[np.int64]
    vectors: NDArray[np.float32]


def as_stored(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors, float32[..., dim], as they come back once stored."""
    return normalise(vectors.astype(STORED).astype(np.float32))


class Embeddings:
    """The vectors of a store's episodes; every method runs in the caller's transaction.

    Attributes:
        damaged: The episodes that have a vector which is not finite or not of its model's
            dimension, as far as they were met.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.damaged: set[int] = set()

    def add(
        self,
        episodes: Sequence[int],
        vectors: NDArray[np.float32],
        counts: NDArray[np.int64],
        model: int,
        fields: NDArray[np.int64] | None = None,
    ) -> None:
        """Store the chunk vectors of new episodes.

        Args:
            episodes: n episode keys, ascending.
            vectors: float32[m, dim], the chunks of all episodes in order.
            counts: int64[n], how many chunks each episode has; they sum to m.
            model: The model that made them.
            fields: int64[m], which part of an experience each chunk is of, -1: of none; None is
                that for all.
        """
        owners = np.repeat(np.asarray(episodes, dtype=np.int64), counts)
        ends = np.cumsum(counts)
        chunks = np.arange(len(owners)) - np.repeat(ends - counts, counts)
        size = vectors.shape[1] * STORED.itemsize
        stored = vectors.astype(STORED).tobytes()
        parts = [-1] * len(owners) if fields is None else fields.tolist()
        self._connection.executemany(
            "INSERT INTO embedding (episode, chunk, model, vector, field)"
            " VALUES (?, ?, ?, ?, nullif(?, -1))",
            (
                (owner, chunk, model, stored[at * size : (at + 1) * size], part)
                for at, (owner, chunk, part) in enumerate(
                    zip(owners.tolist(), chunks.tolist(), parts, strict=True)
                )
            ),
        )

    def wait(self, episodes: Sequence[int]) -> None:
        """Note of new episodes, by their keys, that their texts wait to be embedded."""
        self._connection.executemany(
            "INSERT INTO unembedded (episode) VALUES (?)", ((key,) for key in episodes)
        )

    def waiting(self, limit: int) -> list[tuple[int, Texts]]:
        """Return episodes whose texts wait to be embedded, with these; refused ones come last."""
        return self._with_texts(
            "SELECT episode, refused AS turn FROM unembedded ORDER BY refused, episode LIMIT ?",
            limit,
        )

    def refuse(self, episodes: Sequence[int]) -> None:
        """Note of waiting texts, by their episodes' keys, that the embedder refused them."""
        self._connection.executemany(
            "UPDATE unembedded SET refused = refused + 1 WHERE episode = ?",
            ((key,) for key in episodes),
        )

    def add_late(
        self,
        episodes: NDArray[np.int64],
        vectors: NDArray[np.float32],
        counts: NDArray[np.int64],
        model: int,
        fields: NDArray[np.int64],
    ) -> list[int]:
        """Store the vectors of episodes that wait for them and return which these were, by key.

        Left out are those that were erased meanwhile, or got theirs. The arguments are those of
        `add`.
        """
        rows: list[Any] = []
        if len(episodes):
            rows = self._connection.execute(
                "SELECT u.episode, EXISTS (SELECT 1 FROM embedding AS v WHERE v.episode = u.episode"
                " AND v.model = ?) FROM carray(?) AS k"
                " CROSS JOIN unembedded AS u ON u.episode = k.value",
                (model, apsw.carray(episodes)),
            ).fetchall()
        # A re-embedding that somebody's first write overtook may have been here.
        lacking = np.isin(episodes, [key for key, embedded in rows if not embedded])
        chunks = np.repeat(lacking, counts)
        self.add(
            episodes[lacking].tolist(), vectors[chunks], counts[lacking], model, fields[chunks]
        )
        self._connection.executemany(
            "DELETE FROM unembedded WHERE episode = ?", ((key,) for key, _ in rows)
        )
        return [key for key, _ in rows]

    def nothing_waits(self) -> None:
        """Note that every episode has vectors now."""
        self._connection.execute("DELETE FROM unembedded")

    def missing(self, model: int, after: int, limit: int) -> list[tuple[int, Texts]]:
        """Return the first episodes after a key that lack the model's vectors, with their texts."""
        return self._with_texts(
            f"SELECT id AS episode, 0 AS turn FROM episode AS e WHERE {_LACKS} AND id > ?"  # noqa: S608
            " ORDER BY id LIMIT ?",
            model,
            after,
            limit,
        )

    def _with_texts(self, keys: str, *bindings: int) -> list[tuple[int, Texts]]:
        rows = self._connection.execute(
            "SELECT e.id, e.content, e.heading, x.context_bytes, x.action_bytes, i.parts"  # noqa: S608
            f" FROM ({keys}) AS k CROSS JOIN episode AS e ON e.id = k.episode"
            " LEFT JOIN experience AS x ON x.episode = e.id"
            " LEFT JOIN item AS i ON i.episode = e.id ORDER BY k.turn, k.episode",
            bindings,
        )
        return [
            (
                key,
                texts_of(
                    content,
                    None if context is None else (context, action),
                    None if parts is None else json.loads(parts),
                    heading,
                ),
            )
            for key, content, heading, context, action, parts in rows
        ]

    def count_missing(self, model: int) -> int:
        """Return how many episodes lack the model's vectors."""
        count: int = self._connection.execute(
            f"SELECT count(*) FROM episode AS e WHERE {_LACKS}",  # noqa: S608
            (model,),
        ).get
        return count

    def remove_others(self, models: Sequence[int], after: int, limit: int) -> int | None:
        """Delete the vectors of all models but some, among the next rows.

        Args:
            models: The models whose vectors stay.
            after: Where to go on: what the call before returned, 0 at first.
            limit: How many rows to look at.

        Returns:
            Where to go on, None when that was the last row.
        """
        last: int | None = self._connection.execute(
            "SELECT max(id) FROM (SELECT id FROM embedding WHERE id > ? ORDER BY id LIMIT ?)",
            (after, limit),
        ).get
        if last is not None:
            kept = ", ".join("?" * len(models))
            self._connection.execute(
                "DELETE FROM embedding WHERE id > ? AND id <= ?"  # noqa: S608
                f" AND model NOT IN ({kept})",
                (after, last, *models),
            )
        return last

    def between(self, first: int, last: int, model: StoredModel) -> Iterator[VectorBatch]:
        """Yield the model's vectors of the episodes `first` to `last`, both included.

        Damaged ones are left out; see `damaged`.
        """
        cursor = self._connection.execute(
            "SELECT episode, vector FROM embedding"
            " WHERE episode BETWEEN ? AND ? AND model = ? ORDER BY episode, chunk",
            (first, last, model.id),
        )
        while rows := list(islice(cursor, _BATCH)):
            yield self._sound(rows, model.dim)[0]

    def of(self, episodes: NDArray[np.int64], model: StoredModel) -> VectorBatch:
        """Return the model's vectors of some episodes, given by ascending keys, int64[n].

        Damaged ones are left out; see `damaged`.
        """
        rows = []
        if len(episodes):
            rows = self._connection.execute(
                "SELECT v.episode, v.vector FROM carray(?) AS k CROSS JOIN embedding AS v"
                " ON v.episode = k.value AND v.model = ?",
                (apsw.carray(episodes), model.id),
            ).fetchall()
        return self._sound(rows, model.dim)[0]

    def fields(
        self, episodes: NDArray[np.int64], model: StoredModel
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Return the model's vectors of some episodes with the parts of experiences they are of.

        Damaged ones are left out; see `damaged`.

        Args:
            episodes: int64[n], keys, ascending.
            model: The model.

        Returns:
            Of each chunk, by episode and then by chunk: its episode, int64[m]; which part of an
            experience it is of, int64[m], -1 where it is of none; its vector, float32[m, dim].
        """
        rows: list[Any] = []
        if len(episodes):
            rows = self._connection.execute(
                "SELECT v.episode, v.vector, coalesce(v.field, -1) FROM carray(?) AS k"
                " CROSS JOIN embedding AS v ON v.episode = k.value AND v.model = ?"
                " ORDER BY v.episode, v.chunk",
                (apsw.carray(episodes), model.id),
            ).fetchall()
        found, sound = self._sound(rows, model.dim)
        return found.episodes, np.array([row[2] for row in sound], dtype=np.int64), found.vectors

    def refuse_damage(self) -> None:
        """Refuse to go on where a damaged vector was met: an answer would lack its episode.

        Raises:
            CorruptStore: There was one.
        """
        if self.damaged:
            message = "a stored vector is not finite or not of its model's dimension"
            raise CorruptStore(message, "erase its episode, or restore a backup")

    def forgotten(self, first: int, last: int) -> None:
        """Note that the episodes `first` to `last`, both included, are gone."""
        if self.damaged:
            self.damaged -= {key for key in self.damaged if first <= key <= last}

    def _sound(self, rows: list[Any], dim: int) -> tuple[VectorBatch, list[Any]]:
        """Return rows as columns, see `sound_batch`, and those that are not damaged."""
        batch, sound, damaged = sound_batch(rows, dim)
        self.damaged |= damaged
        if (np.diff(batch.episodes) < 0).any():
            message = "the stored vectors are out of order"
            raise CorruptStore(message, "run `engram verify`, or restore a backup")
        return batch, sound


def sound_batch(rows: list[Any], dim: int) -> tuple[VectorBatch, list[Any], set[int]]:
    """Turn rows `(key, vector, ...)` into columns; in a damaged file a row can hold anything.

    Returns:
        The columns of the rows that are not damaged, these rows, and the keys of the others.
    """
    if not rows:
        none = np.empty((0, dim), dtype=np.float32)
        return VectorBatch(np.empty(0, dtype=np.int64), none), rows, set()
    batch = _batch(rows, dim)
    if batch is not None:
        return batch, rows, set()
    # One by one, to tell which it is.
    sound = [row for row in rows if _batch([row], dim) is not None]
    return sound_batch(sound, dim)[0], sound, {row[0] for row in set(rows) - set(sound)}


def _batch(rows: list[Any], dim: int) -> VectorBatch | None:
    """Return rows as columns, None where one of them is damaged."""
    keys, blobs = list(zip(*rows, strict=True))[:2]
    try:
        episodes = np.array(keys, dtype=np.int64)
        vectors = np.frombuffer(b"".join(blobs), dtype=STORED).reshape(len(rows), dim)
    except (TypeError, ValueError, OverflowError):
        return None
    if not np.isfinite(vectors).all():
        return None
    return VectorBatch(episodes, normalise(vectors.astype(np.float32)))
