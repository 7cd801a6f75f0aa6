"""The one path of every import: embed what lacks vectors, then write in one transaction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engram.engine.embedding_parts import embed_parts
from engram.engine.session import Session
from engram.errors import Busy
from engram.storage import KINDS, heading, texts_of
from engram.tracing import count_episodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engram.embedding import Embedder
    from engram.models import StoredModel
    from engram.storage import Record, RecordWriter

    Placed = tuple[str, str, Record]
    # Those of an experience, or of an item.
    _Sizes = tuple[tuple[int, int], None] | tuple[None, list[int]]
    Progress = Callable[[int, int], None]

_BATCH = 64
"""Texts embedded at a time."""
_PROGRESS_EVERY = 500
_EVENT_KINDS = {"episode": "episodic", "fact": "semantic"}


class _Vectors(NamedTuple):
    """What the record of an episode is to say of its vectors, by these names."""

    vectors: list[bytes]
    fields: list[int]
    heading: str | None


class Importing(Session):
    """What the imports of all formats share."""

    def _import(
        self,
        read: Callable[[], Iterable[Placed]],
        model: StoredModel | None,
        *,
        merge: bool,
        total: int = 0,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Write records and return how many of each kind were new.

        Args:
            read: Yields the records with their kinds and places, checked; called once to embed and
                once to write.
            model: The model of the vectors that records bring; None is that they bring none.
            merge: Skip what is there.
            total: How many records there are, for `progress`.
            progress: Called now and then with the records written and `total`.
        """
        with self._store.reading():
            stored = self._store.model()
        taken = model if self._takes(model, stored) else None
        embedder, vectors = self._embed_lacking(read, taken or stored, taken, merge=merge)
        written: list[tuple[str, str]] = []
        with self._store.writing():
            current = self._store.model()
            if current != stored and not self._fits(current, taken, embedder):
                message = "the store changed its model during the import; nothing was written"
                raise Busy(message, "import again")
            writer = self._store.record_writer(
                model=self._key_of_model(current, taken, embedder), merge=merge
            )
            for done, (kind, where, record) in enumerate(read(), start=1):
                added = self._add(writer, kind, where, record, vectors)
                if added and kind in _EVENT_KINDS and self._events is not None:
                    written.append((record["uid"], _EVENT_KINDS[kind]))
                if progress is not None and done % _PROGRESS_EVERY == 0:
                    progress(done, total)
            writer.finish(self._now())
        if self._events is None:
            count_episodes("memory_written", writer.written["episode"])
        self._emit("memory_written", ({"memory_id": uid, "kind": kind} for uid, kind in written))
        if progress is not None:
            progress(total, total)
        return {kind: writer.written[kind] for kind in KINDS}

    @staticmethod
    def _add(
        writer: RecordWriter,
        kind: str,
        where: str,
        record: Record,
        vectors: dict[str, _Vectors],
    ) -> bool:
        if kind == "episode" and record["uid"] in vectors:
            record = record | vectors[record["uid"]]._asdict()
        return writer.add(kind, record, where)

    def _takes(self, model: StoredModel | None, stored: StoredModel | None) -> bool:
        """Say whether vectors of a model can be stored as they are."""
        if model is None:
            return False
        if stored is not None:
            return (model.fingerprint, model.dim) == (stored.fingerprint, stored.dim)
        return (
            self._follows_store or self._embedder is None or self._same_model(self._embedder, model)
        )

    def _embed_lacking(
        self,
        read: Callable[[], Iterable[Placed]],
        model: StoredModel | None,
        taken: StoredModel | None,
        *,
        merge: bool,
    ) -> tuple[Embedder | None, dict[str, _Vectors]]:
        """Read all records and embed the episodes without usable vectors.

        Args:
            read: Yields the records.
            model: The model to embed with; None is the default one.
            taken: The model whose vectors are taken as they are.
            merge: Leave out episodes that are in the store.

        Returns:
            The embedder, if one was needed, and what the records of those episodes are to say of
            vectors and of the heading that is in them, by public id.
        """
        # Which episodes are experiences is said after all episodes; and two readings of a file at
        # once would lose their places in it.
        lacking, sizes, vectors = _survey(read(), everything=taken is None)
        if not lacking:
            return None, vectors
        embedder: Embedder | None = None
        batch: dict[str, Record] = {}

        def embed() -> None:
            nonlocal embedder
            with self._store.reading():
                there = {uid for uid in batch if merge and self._store.episodes.key(uid, None)}
            wanted = {uid: record for uid, record in batch.items() if uid not in there}
            batch.clear()
            if wanted:
                embedder = embedder or self._the_embedder(model)
                self._check_model(embedder, model)
                vectors.update(_chunks(embedder, wanted, sizes))

        for kind, _, record in read():
            lacks = kind == "episode" and (taken is None or "vectors" not in record)
            if lacks and record["uid"] not in vectors:
                batch.setdefault(record["uid"], record)
                if len(batch) >= _BATCH:
                    embed()
        embed()
        return embedder, vectors

    def _fits(
        self, current: StoredModel | None, taken: StoredModel | None, embedder: Embedder | None
    ) -> bool:
        """Say whether vectors that were taken or made are of the model the store has by now."""
        return (taken is None or self._takes(taken, current)) and (
            embedder is None or self._same_model(embedder, current)
        )

    def _key_of_model(
        self, current: StoredModel | None, taken: StoredModel | None, embedder: Embedder | None
    ) -> int | None:
        """Return the key of the model of the import's vectors, inside the transaction."""
        if current is not None:
            return current.id
        if taken is not None:
            return self._store.add_model(taken.fingerprint, taken.name, taken.dim)
        return None if embedder is None else self._model_for_writing(embedder)


def _survey(
    records: Iterable[Placed], *, everything: bool
) -> tuple[bool, dict[str, _Sizes], dict[str, _Vectors]]:
    """Return whether an episode may lack vectors, and the parts, by id, of those that have some.

    Last come the vectors of the episodes that get none: those of items without a text.

    Args:
        records: All records.
        everything: Whether no record's vectors can be taken.
    """
    lacking = False
    sizes: dict[str, _Sizes] = {}
    none: dict[str, _Vectors] = {}
    for kind, _, record in records:
        if kind == "episode":
            lacking = lacking or everything or "vectors" not in record
        elif kind == "experience":
            sizes[record["episode"]] = (record["context_bytes"], record["action_bytes"]), None
        elif kind == "item" and "parts" in record:
            sizes[record["episode"]] = None, json.loads(record["parts"])
        elif kind == "item":
            none[record["episode"]] = _Vectors([], [], None)
    return lacking, sizes, none


def _chunks(
    embedder: Embedder, records: dict[str, Record], sizes: dict[str, _Sizes]
) -> Iterable[tuple[str, _Vectors]]:
    """Embed episodes and return the vectors of each one's chunks, as they are stored."""
    texts, headings = [], dict[str, str | None]()
    for uid, record in records.items():
        size, pieces = sizes.get(uid, (None, None))
        said_by = heading(record.get("actors", ()), record["occurred_at"])
        headings[uid] = None if uid in sizes else said_by
        texts.append(texts_of(record["content"], size, pieces, headings[uid]))
    parts = embed_parts(embedder, texts)
    rows = [row.tobytes() for row in parts.vectors.astype("<f2")]
    ends = np.cumsum(parts.counts).tolist()
    for uid, end, count in zip(records, ends, parts.counts.tolist(), strict=True):
        chunks = slice(end - count, end)
        yield uid, _Vectors(rows[chunks], parts.fields[chunks].tolist(), headings[uid])
