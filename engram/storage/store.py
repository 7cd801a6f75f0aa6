"""The store as the rest of engram sees it: nouns with methods, and two kinds of transaction."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from engram.errors import Busy, Closed, CorruptStore, Forked
from engram.storage import schema, uids
from engram.storage.access import AccessLog, Recall
from engram.storage.agents import Agents
from engram.storage.changes import Changes
from engram.storage.columns import Columns
from engram.storage.connection import MAPPED, Connection
from engram.storage.consistency import Consistency
from engram.storage.consolidations import Consolidations
from engram.storage.counting import count
from engram.storage.dependents import Dependents
from engram.storage.dormant_evaluation import DormantEvaluation
from engram.storage.duplicates import Duplicates
from engram.storage.embedding_models import EmbeddingModels
from engram.storage.embeddings import Embeddings
from engram.storage.episodes import Episodes, NewEpisode
from engram.storage.erasure import EntityErasure
from engram.storage.experiences import Experiences
from engram.storage.fact_evidence import FactEvidence
from engram.storage.fact_search import FactSearch
from engram.storage.facts import Facts
from engram.storage.feedback import Feedback
from engram.storage.graph import Graph
from engram.storage.items import NOBODY, Items
from engram.storage.judgements import Judgements
from engram.storage.labels import Labels
from engram.storage.lifecycle import Lifecycle
from engram.storage.memories import Memories
from engram.storage.merged_tags import MergedTags
from engram.storage.names import Names
from engram.storage.observations import Observations
from engram.storage.parents import Parents
from engram.storage.projects import Projects
from engram.storage.record_writer import RecordWriter
from engram.storage.records import Column, RecordReader, columns
from engram.storage.reflections import Reflections
from engram.storage.routing import ChoiceValues
from engram.storage.store_file import StoreFile
from engram.storage.strength import Strength
from engram.storage.training import Training
from engram.storage.turns import Turns

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engram.models import Counts, StoredModel
    from engram.storage.items import NewItem
    from engram.storage.triplets import NewExperience

_MAPPED_SHARE: Final = 4


class Store(StoreFile):
    """One store file.

    Every method but `close` runs in the caller's transaction: `with store.reading()` holds one
    snapshot, `with store.writing()` commits all or nothing.

    Args:
        path: A file, made when missing, or ":memory:".
        now: The time, in microseconds.
        key: Passphrase of an encrypted store.
        busy_timeout: Seconds to wait for another connection's lock.
        durability: "normal" or "full", see `Connection`.
        memory_budget: Bytes that everything about the store should get by with.
        create: Make the file when nothing is there.

    Raises:
        CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy, InvalidArgument: As documented on
            `Connection` and `schema.bring_up_to_date`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        now: int,
        *,
        key: str | None = None,
        busy_timeout: float = 10.0,
        durability: Literal["normal", "full"] = "normal",
        memory_budget: int,
        create: bool = True,
    ) -> None:
        connection = Connection(
            path,
            key=key,
            busy_timeout=busy_timeout,
            durability=durability,
            mapped=min(MAPPED, memory_budget // _MAPPED_SHARE),
            create=create,
        )
        try:
            schema.bring_up_to_date(connection, now)
        except BaseException:
            connection.close()
            raise
        super().__init__(connection)
        self._agents = Agents(self._connection)
        self._changes = Changes(self._connection, self._residue)
        self.labels = Labels(self._connection)
        self.columns = Columns(self._connection)
        self.episodes = Episodes(self._connection, self.labels)
        self.turns = Turns(self._connection)
        self.models = EmbeddingModels(self._connection)
        self.embeddings = Embeddings(self._connection)
        self.strength = Strength(self._connection)
        self.memories = Memories(self._connection)
        self.experiences = Experiences(self._connection)
        self.duplicates = Duplicates(self._connection)
        self.items = Items(self._connection)
        self.parents = Parents(self._connection)
        self._dependents = Dependents(self._connection)
        self.judgements = Judgements(self._connection)
        self.feedback = Feedback(self._connection)
        self.choice_values = ChoiceValues(self._connection)
        self.training = Training(self._connection)
        self.names = Names(self._connection)
        self.projects = Projects(self._connection)
        self.facts = Facts(
            self._connection, self._agents, self._changes, self.projects, self.fact_text
        )
        self.evidence = FactEvidence(self._connection)
        self.fact_search = FactSearch(self._connection)
        self.graph = Graph(self._connection, self._agents, self._changes)
        self.reflections = Reflections(self._connection, self._agents)
        self.dormancy = DormantEvaluation(self._connection)
        self._access = AccessLog(self._connection)
        self.lifecycle = Lifecycle(self._connection, self._changes, self.projects)
        self._merged_tags = MergedTags(self._connection, self.labels, self.retag)
        self.consolidations = Consolidations(self._connection, self.lifecycle, self._merged_tags)
        self.erasure = EntityErasure(
            self._connection,
            self._changes,
            self.facts,
            self._access,
            self._dependents,
            self.remove_episodes,
        )
        # Held while a language model is asked, so that none is asked twice; before any transaction.
        self.reflecting = threading.RLock()

    def model(self) -> StoredModel | None:
        """Return the model of the vectors that are searched, None while there is none."""
        return self.models.current()

    def add_model(self, fingerprint: str, name: str | None, dim: int) -> int:
        """Record the model whose vectors the store is going to hold and return its key."""
        return self.models.take("current", fingerprint, name, dim).id

    def agent(self, name: str) -> int | None:
        """Return the key of an agent, None when it never wrote."""
        return self._agents.key(name)

    def agents(self) -> list[str]:
        """Return the agents that have episodes, sorted."""
        return self._agents.with_episodes()

    def add_episodes(
        self,
        new: Sequence[NewEpisode],
        vectors: NDArray[np.float32] | None,
        counts: NDArray[np.int64] | None,
        *,
        model: int | None,
        agent: str | None,
        now: int,
        fields: NDArray[np.int64] | None = None,
        experiences: Sequence[NewExperience] = (),
        items: Sequence[NewItem] = (),
    ) -> list[str]:
        """Insert episodes with everything that makes them findable and return their public ids.

        Args:
            new: n episodes.
            vectors: float32[m, dim], unit length, the chunks of all episodes in order; None: there
                is no way to make them, and the texts wait for one, but for items without any.
            counts: int64[n], chunks of each episode; None without vectors.
            model: The model that made the vectors; None without vectors.
            agent: Who writes.
            now: The time, in microseconds.
            fields: int64[m], which part of an experience each chunk is of, -1: of none.
            experiences: What the episodes are beside that, n of them or none.
            items: Likewise.
        """
        owner = self._agents.add(agent)
        keys, ids = self.episodes.add(new, owner, now)
        self.turns.add(keys, new, owner)
        if vectors is None or counts is None or model is None:
            bare = {key for key, one in zip(keys, items, strict=False) if not one.texts}
            self.embeddings.wait([key for key in keys if key not in bare])
        else:
            self.embeddings.add(keys, vectors, counts, model, fields)
        if experiences:
            self.experiences.add(keys, experiences)
        if items:
            self.items.add(keys, items, owner or NOBODY, now)
        self.text.add(keys[0], keys[-1])
        if any(episode.origin is not None for episode in new):
            self.projects.add(keys[0], keys[-1])
        self.changed("observe", keys[0], keys[-1], now)
        return [uids.from_stored(uid) for uid in ids]

    def retag(self, episode: int, tags: Sequence[str], now: int) -> None:
        """Put tags in the place of those that an episode, given by its key, has."""
        self.labels.set_tags(episode, tags)
        self.changed("relabel", episode, episode, now)

    def remove_episodes(self, keys: Sequence[int], now: int) -> list[str]:
        """Erase episodes from every table, and what rests on one of them; see `Dependents`.

        Tags that an experience has from one that goes, and from no other, go from it too. Many at
        once are cheaper than one by one.

        Returns:
            The public ids of all that went, in insertion order.
        """
        gone = self._dependents.of(keys)
        brought = self._merged_tags.brought(gone.values())
        self._dependents.let_go(list(gone), gone.values())
        self.lifecycle.forget_history(gone)
        self._take_out(gone, now)
        self._merged_tags.take(brought, now)
        return list(gone.values())

    def retire_episodes(self, retired: Mapping[int, str], now: int, *, replaced: bool) -> None:
        """Take episodes out of every table; what rests on them rests on their sources from then on.

        Args:
            retired: Their keys and public ids.
            now: The time, in microseconds.
            replaced: Others get their ids: what names them and their history stays.
        """
        self._dependents.hand_on(retired)
        if not replaced:
            self._dependents.let_go(list(retired), retired.values())
            self.lifecycle.forget_history(retired)
        self._take_out(retired, now)

    def _take_out(self, gone: Mapping[int, str], now: int) -> None:
        rebuild = self.text.is_cheaper_to_rebuild(len(gone))
        if not rebuild:
            self.text.remove(list(gone))
        self.projects.remove(gone)
        for key in gone:
            self._access.forget(key)
            self.episodes.remove(key)
            self.changed("forget", key, key, now)
        if rebuild:
            self.text.rebuild()

    def remove_observation(self, observation: str, now: int) -> bool:
        """Erase a check observation, by its public id; return whether it was there."""
        if removed := Observations(self._connection).remove(observation):
            self.changed("forget_text", 0, 0, now)
        return removed

    def changed(self, op: str, first: int, last: int, now: int) -> None:
        """Note a write in the change log; see `Changes` for what operations name."""
        self._changes.add(op, first, last, now)

    def last_change(self) -> int:
        """Return the sequence number of the last committed write, 0 before the first."""
        return self._changes.last()

    def changes_after(self, seq: int) -> Iterator[tuple[str, int, int]]:
        """Yield `(op, first, last)` of each write after `seq`, in order."""
        return self._changes.after(seq)

    def note_recall(
        self, agent: str | None, query: str | None, at: int, episodes: Sequence[int]
    ) -> None:
        """Keep a recall for the access log and write what waits when it is worth a commit.

        Called outside any transaction. While another connection writes, the entries go on waiting.
        """
        if self._access.add(Recall(agent, query, at, tuple(episodes))):
            with suppress(Busy):
                self.flush(wait=False)

    def flush(self, *, wait: bool = True) -> None:
        """Write the feedback and the access-log entries that wait, each in one transaction.

        Args:
            wait: Whether to wait while another connection writes.

        Raises:
            Busy: Another connection writes; the entries go on waiting.
        """
        self.feedback.flush(wait=wait)
        if self._access.waiting:
            with self.writing(wait=None if wait else 0.0):
                written = self._access.write()
                last = self._connection.last_id  # of the recalls, whose ids are consecutive
                strengthened = [self.graph.strengthen(r.episodes, r.agent) for r in written]
                if any(strengthened):
                    self.changed("strengthen", last - len(written) + 1, last, written[-1].at)
            self._access.written(written)

    def counts(self, agent: str | None) -> Counts:
        """Count what the store holds, for one agent or, with None, for all."""
        return count(self._connection, agent, self.facts, self.graph)

    def check(self) -> list[str]:
        """Return what is wrong with the file, nothing when it is sound; see `Consistency`.

        Called outside any transaction.
        """
        with self.reading():
            consistency = Consistency(
                self._connection, self.models, self.embeddings, (self.text, self.fact_text)
            )
            if missing := consistency.missing():
                return missing
            problems = consistency.problems()
        for text, memories in ((self.text, "episodes"), (self.fact_text, "facts")):
            try:
                with self.writing():
                    text.check()
            except CorruptStore:
                problems.append(f"the full-text index differs from the {memories}")
        return problems

    def records(self, agent: str | None, *, vectors: bool = False) -> RecordReader:
        """Return a reader of what an agent sees, or with None of everything; see `RecordReader`.

        Args:
            agent: Whose view.
            vectors: Whether episodes bring their vectors along.
        """
        return RecordReader(self._connection, agent, self.model() if vectors else None)

    def record_columns(self, table: str) -> tuple[Column, ...]:
        """Return the columns of a table that records carry."""
        with self.reading():
            return columns(self._connection, table)

    def record_writer(self, *, model: int | None, merge: bool) -> RecordWriter:
        """Return what writes an import; see `RecordWriter`."""
        return RecordWriter(
            self._connection,
            self._agents,
            self.labels,
            self.graph,
            self.text,
            self.fact_text,
            self._changes,
            model=model,
            merge=merge,
        )

    def backup(self, dest: str | os.PathLike[str]) -> None:
        """Copy the store, with the access-log entries that wait, to a file; see `Connection`.

        Called outside any transaction.
        """
        self.flush()
        self._connection.backup(dest)

    def close(self) -> None:
        """Write what waits and close the file; twice is harmless."""
        try:
            with suppress(Busy, Closed, Forked):
                self.flush()
        finally:
            self._connection.close()
