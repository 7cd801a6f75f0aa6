"""What every call of an `Engram` leans on: store, scope, embedder, clock, events."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from engram import arguments
from engram.cognition.decay import DecayConfig
from engram.embedding import check_embedder, embed_documents, embed_query, resolve
from engram.errors import EngramError, InvalidArgument, InvalidType, ModelMismatch
from engram.events import EventLog, resolve_events_path
from engram.index import DEFAULT_BUDGET, EpisodeIndex, Shelf, Upkeep
from engram.storage import Store, as_stored
from engram.times import to_micros, utc_now
from engram.tracing import count_events, stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from engram.embedding import Embedder
    from engram.llm import LLMAdapter
    from engram.models import Counts, StoredModel


class Session:
    """An open store, seen by one agent or by all."""

    def __init__(
        self,
        path: str | os.PathLike[str] = ":memory:",
        *,
        embedder_model: str | None = None,
        embedder: Embedder | None = None,
        agent_id: str | None = None,
        key: str | None = None,
        durability: Literal["normal", "full"] = "normal",
        busy_timeout: float = 10.0,
        clock: Callable[[], datetime] = utc_now,
        decay_config: DecayConfig | None = None,
        llm: LLMAdapter | None = None,
        events_path: str | os.PathLike[str] | None = None,
        memory_budget: int = DEFAULT_BUDGET,
        create: bool = True,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            message = f"path must be a str or an os.PathLike, not {type(path).__name__}"
            raise InvalidType(message)
        if embedder is not None and embedder_model is not None:
            message = "embedder and embedder_model were both given"
            raise InvalidArgument(message, "pass one of them")
        if embedder is not None:
            check_embedder(embedder)
        if durability not in ("normal", "full"):
            message = "durability must be 'normal' or 'full'"
            raise InvalidArgument(message)
        if key is not None and not isinstance(key, str):
            message = f"key must be a str, not {type(key).__name__}"
            raise InvalidType(message)
        self._agent = None if agent_id is None else arguments.text(agent_id, "agent_id")
        timeout = arguments.number(busy_timeout, "busy_timeout", 0.0, 3600.0)
        self._budget = arguments.integer(memory_budget, "memory_budget", 0, 2**63 - 1)
        self._clock = clock
        self._decay_config = decay_config or DecayConfig()
        self._llm = llm
        log = resolve_events_path(events_path)
        self._events = (
            None if log is None else EventLog(log, fsync=durability == "full", clock=clock)
        )
        self._embedder = embedder if embedder_model is None else resolve(embedder_model)
        self._follows_store = self._embedder is None
        self._store = Store(
            path,
            self._now(),
            key=key,
            busy_timeout=timeout,
            durability=durability,
            memory_budget=self._budget,
            create=arguments.flag(create, "create"),
        )
        self._index: EpisodeIndex | None = None
        self._upkeep: Upkeep | None = None
        # The last erasure that `wipe` was asked to see to; None before the first.
        self._wiped_up_to: int | None = None
        try:
            self._hide()
            if self._embedder is not None:
                with self._store.reading():
                    self._check_model(self._embedder, self._store.model())
        except BaseException:
            self._store.close()
            raise

    @property
    def agent_id(self) -> str | None:
        """Whose memory this is; None is everyone's."""
        return self._agent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write buffered access-log entries and close the file; closing twice is harmless."""
        if self._upkeep is not None:
            self._upkeep.stop()
        # What is derived may stay behind; the mark of an erasure is in the file for who is next.
        with suppress(EngramError):
            if self._upkeep is not None:
                self._upkeep.finish()
        with suppress(EngramError):
            self._store.flush()
            # Whoever was in the way of wiping has been waited for once.
            if self._erased_up_to() != self._wiped_up_to:
                self._wipe()
        self._store.close()

    def list_agents(self) -> list[str]:
        """Return the agents that have episodes in the file, sorted."""
        with self._store.reading():
            return self._store.agents()

    def counts(self) -> Counts:
        """Return how much the store holds: this agent's episodes, the file's facts."""
        with self._store.reading():
            counts = self._store.counts(self._agent)
        return replace(counts, index_bytes=Shelf(self._index_folder).size())

    def model(self) -> StoredModel | None:
        """Return the embedding model whose vectors the store holds, None before the first write."""
        with self._store.reading():
            return self._store.model()

    def check(self) -> list[str]:
        """Return what is wrong with the file, an empty list when it is sound.

        Reads everything: SQLite's integrity check, references between rows, the full-text index,
        the vectors and the change log against the episodes and facts, and the entity graph. Where
        a table or another part of the schema is missing, it says only that.
        """
        return self._store.check()

    def _now(self) -> int:
        return to_micros(self._clock(), "clock()")

    def _scope(self, cross_agent: bool) -> str | None:
        return None if arguments.flag(cross_agent, "cross_agent") else self._agent

    def _the_embedder(self, stored: StoredModel | None) -> Embedder:
        """Return the embedder given at opening; when none was, that of the store's model."""
        embedder = self._embedder
        if embedder is None or (self._follows_store and not self._same_model(embedder, stored)):
            if stored is not None and stored.name is None:
                message = "the store holds vectors of an embedder that was passed as embedder="
                raise ModelMismatch(message, "pass the same one again")
            embedder = self._embedder = resolve(None, stored=stored.name if stored else None)
        return embedder

    @staticmethod
    def _description(embedder: Embedder) -> tuple[str, str | None, int]:
        name = getattr(embedder, "name", None)
        return embedder.fingerprint, name if isinstance(name, str) else None, embedder.dim

    @staticmethod
    def _same_model(embedder: Embedder, stored: StoredModel | None) -> bool:
        return stored is None or (embedder.fingerprint, embedder.dim) == (
            stored.fingerprint,
            stored.dim,
        )

    def _check_model(self, embedder: Embedder, stored: StoredModel | None) -> None:
        if stored is None or self._same_model(embedder, stored):
            return
        message = (
            f"the store holds vectors of {stored.fingerprint!r} ({stored.dim} dimensions),"
            f" the embedder is {embedder.fingerprint!r} ({embedder.dim} dimensions)"
        )
        raise ModelMismatch(
            message,
            "open the store without naming a model; reembed() changes the model of a store",
        )

    @contextmanager
    def _searching(self, query: str) -> Iterator[tuple[NDArray[np.float32], EpisodeIndex] | None]:
        """Embed a query and hold one snapshot of the store: the vector, and the index for it.

        None where the store has no vectors. When the store's model changes while the query is
        embedded, it is embedded again.

        Raises:
            ModelMissing, ModelMismatch: The query cannot be embedded as the episodes were.
        """
        # The model of the last recall is most likely still the store's.
        stored = None if self._index is None else self._index.model
        if self._embedder is None or not self._same_model(self._embedder, stored):
            stored = None
        while True:
            if stored is None:
                with self._store.reading():
                    stored = self._store.model()
            vector = None if stored is None else self._query_vector(query, stored)
            with self._store.reading():
                if self._store.model() == stored:
                    yield None if vector is None else (vector, self._current_index())
                    return
            stored = None

    def _query_vector(self, query: str, stored: StoredModel | None) -> NDArray[np.float32]:
        embedder = self._the_embedder(stored)
        self._check_model(embedder, stored)
        with stage("embed"):
            return as_stored(embed_query(embedder, query))

    def _current_index(self) -> EpisodeIndex:
        """Return the index of the store's episodes, inside a transaction; there must be vectors."""
        if self._index is None:
            stored = self._store.model()
            assert stored is not None  # noqa: S101 - the caller saw that there is one
            shelf = Shelf(self._index_folder)
            self._index = EpisodeIndex(self._store, stored, shelf, self._budget)
            self._upkeep = Upkeep(self._index)
        return self._index

    def _index_at_hand(self) -> EpisodeIndex | None:
        """Return the index if that costs nothing like reading the store, inside a transaction."""
        return self._index if self._store.snapshot() is None else self._current_index()

    def _kept_up(self) -> Upkeep | None:
        """Return the upkeep of the index, outside any transaction; None while nothing is there."""
        with self._store.reading():
            if self._store.model() is not None:
                self._current_index()
        return self._upkeep

    def maintain(self) -> None:
        """Bring the index up to date and merge its parts, so that the next recalls are fast.

        Recalls do this themselves as far as they need it, and a thread in the background goes on
        where it takes longer. Worth a call after a large import. Writers need not wait for it:
        no transaction of it lasts longer than reading or marking a part.

        Raises:
            Busy, StoreFull, Closed: The store cannot be read, or not be told of the result.
        """
        self._maintain()

    def _maintain(self) -> None:
        upkeep = self._kept_up()
        if upkeep is not None:
            upkeep.maintain()

    @property
    def _index_folder(self) -> Path | None:
        """Where files derived from the store are, for a large one; None where there are none."""
        return None if self._store.encrypted else self._store.index_folder

    def _drop_index(self) -> None:
        """Let go of the index: the store is under another key now, or under none."""
        if self._upkeep is not None:
            self._upkeep.stop()
        with self._store.reading():
            self._index = self._upkeep = None
        self._hide()

    def _hide(self) -> None:
        """Leave nothing derived beside an encrypted store, whatever a killed process left."""
        if self._store.encrypted:
            Shelf(self._store.index_folder).clear()

    def _scrub(self) -> bool:
        """Leave nothing of what was erased beside the store; return whether that was possible."""
        due = self._erased_up_to()
        folder = self._index_folder
        if due is None or folder is None or not folder.is_dir():
            return True
        upkeep = self._kept_up()
        return upkeep is None or upkeep.scrub(due)

    def _erased_up_to(self) -> int | None:
        with self._store.reading():
            return self._store.erased_up_to()

    def wipe(self) -> bool:
        """Leave nothing of what was erased in any file; return whether that was possible.

        `close` does it too, where something was erased since this was last called. It is not
        possible while another connection reads or writes for longer than the busy timeout, or where
        the store is so large that only `compact` rebuilds it.

        Raises:
            Busy, StoreFull, Closed: The store cannot be read, or not be told of the result.
        """
        return self._wipe()

    def _wipe(self) -> bool:
        self._wiped_up_to = self._erased_up_to()
        # The store's part takes the mark away that says something was erased.
        return self._scrub() and self._store.wipe()

    @contextmanager
    def _storing(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[int, NDArray[np.float32], NDArray[np.int64]]]:
        """Embed texts and hold the transaction that stores them.

        Yields the key of their model, the chunks' vectors and the chunks of each text. When the
        store's model changes while they are embedded, they are embedded again.

        Raises:
            ModelMissing, ModelMismatch: They cannot be embedded as the store's episodes were.
        """
        while True:
            embedder, vectors, counts = self._embed(texts)
            with self._store.writing():
                stored = self._store.model()
                if self._same_model(embedder, stored):
                    yield self._model_key(embedder, stored), vectors, counts
                    return
            self._check_model(self._the_embedder(stored), stored)

    def _embed(
        self, texts: Sequence[str]
    ) -> tuple[Embedder, NDArray[np.float32], NDArray[np.int64]]:
        """Embed texts to be stored: the embedder, the chunks' vectors, the chunks of each."""
        embedder = self._embedder
        if embedder is None or self._follows_store:
            with self._store.reading():
                stored = self._store.model()
            embedder = self._the_embedder(stored)
        with stage("embed"):
            return embedder, *embed_documents(embedder, texts)

    def _model_for_writing(self, embedder: Embedder) -> int:
        """Return the key of the embedder's model, inside a write transaction.

        Raises:
            ModelMismatch: The store holds another model's vectors.
        """
        stored = self._store.model()
        self._check_model(embedder, stored)
        return self._model_key(embedder, stored)

    def _model_key(self, embedder: Embedder, stored: StoredModel | None) -> int:
        return stored.id if stored else self._store.add_model(*self._description(embedder))

    def _emit(
        self, event: str, data: Iterable[Mapping[str, object]], *, run_id: str | None = None
    ) -> None:
        """Append events for what was just committed; called after the commit, never inside."""
        items = list(data)
        count_events(event, items)
        if self._events is not None:
            self._events.emit_many(event, self._agent, items, run_id=run_id)
