"""Keeping experiences: storing, reading and deleting them."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from engram import arguments
from engram.config.experience import SAME_FROM
from engram.engine.embedding_parts import embed_parts
from engram.engine.forgetting import Forgetting
from engram.errors import EngramError, InvalidArgument, ModelMismatch, NotFound
from engram.experience.alike import alike
from engram.experience.results import ExperienceStatus, Stored
from engram.experience.tags import read_tags
from engram.paths import Resolver
from engram.retrieval.recall import refreshed
from engram.storage import INSIGHT, MEMORY_TYPES, NewEpisode, NewExperience, Origin, as_stored
from engram.transfer.rows import memory_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.embedding import Embedder
    from engram.engine.embedding_parts import Parts
    from engram.models import StoredModel
    from engram.storage.triplets import Experience

MAX_BYTES: Final = 10_000
"""Bytes of UTF-8 that context, action and result may have, each."""

MAX_ID_BYTES: Final = 100
"""Likewise an id."""

_LOG: Final = logging.getLogger("engram.experience")
_SOURCE_TYPE = "socket"
_SLICE = 500
"""Experiences read in one transaction, which others wait for."""


class _Embedded(NamedTuple):
    """The chunks of an experience's parts, and what made them."""

    embedder: Embedder
    parts: Parts


class Keeping(Forgetting):
    """The calls that keep experiences."""

    def store(
        self,
        context: str,
        action: str,
        result: str,
        *,
        memory_type: str = "decision",
        tags: str | Iterable[str] | None = None,
        project: str | None = None,
        threshold: float = SAME_FROM,
    ) -> Stored:
        """Keep an experience, or use the one again that says the same.

        The same says one of the same type, project and agent whose three texts are the same byte
        for byte, or have the same meaning each. It is used once more then, and gets the tags that
        it lacks.

        Where the texts cannot be embedded, for whatever reason, they are kept and found by their
        words; `embed_waiting` makes up for it.

        Args:
            context: The situation, at most `MAX_BYTES`.
            action: What was done, likewise.
            result: What came of it, likewise.
            memory_type: "decision", "pattern", "bugfix", "context", "antipattern" or "insight".
            tags: Labels to filter by, in a form that `read_tags` takes.
            project: Whose it is, any text. An absolute path is the project of the episode too.
            threshold: The cosine that the meanings of all three parts have to exceed, above 0, up
                to 1; nothing exceeds 1, and only the same texts are the same.

        Raises:
            InvalidArgument, InvalidType: An argument is refused; nothing is written.
            ModelMismatch: The embedder is not the one whose vectors the store holds.
            Busy, StoreFull, Closed: The store cannot be written; nothing is.
        """
        now = self._now()
        new = NewExperience(
            arguments.one_of(memory_type, MEMORY_TYPES, "memory_type"),
            experience_text(context, "context"),
            experience_text(action, "action"),
            experience_text(result, "result"),
            now,
            None if project is None else arguments.text(project, "project"),
        )
        least = arguments.number(threshold, "threshold", 0.0, 1.0)
        if not least:
            message = "threshold must be above 0"
            raise InvalidArgument(message)
        episode = NewEpisode(
            new.content,
            now,
            tags=read_tags(tags),
            origin=origin_of(new.project, _SOURCE_TYPE, Resolver()),
        )
        while True:
            embedded = self._embedded(new)
            self._warm_up()
            with self._store.writing():
                model = self._store.model()
                if embedded is None or self._same_model(embedded.embedder, model):
                    kept = self._keep(new, episode, embedded, model, least)
                    break
        if not kept.deduplicated:
            self._emit("memory_written", [{"memory_id": kept.id, "kind": "episodic"}])
        return kept

    def _warm_up(self) -> None:
        """Bring the index up to date, so that the write lock is not held for that."""
        with self._store.reading():
            if self._store.model() is not None:
                index = self._current_index()
                refreshed(index, lambda: None)

    def _keep(
        self,
        new: NewExperience,
        episode: NewEpisode,
        embedded: _Embedded | None,
        model: StoredModel | None,
        threshold: float,
    ) -> Stored:
        """Store an experience or use the one again that says the same, in a write transaction."""
        same = self._store.duplicates.identical(new, self._agent)
        if same is None and embedded is not None and model is not None:
            same = alike(
                self._store,
                self._current_index(),
                new,
                as_stored(embedded.parts.vectors),
                embedded.parts.fields,
                self._agent,
                threshold,
            )
        if same is not None:
            return self._use_again(same, episode)
        parts = None if embedded is None else embedded.parts
        [uid] = self._store.add_episodes(
            [episode],
            None if parts is None else parts.vectors,
            None if parts is None else parts.counts,
            model=None if embedded is None else self._model_key(embedded.embedder, model),
            agent=self._agent,
            now=new.updated_at,
            fields=None if parts is None else parts.fields,
            experiences=[new],
        )
        return Stored(uid, indexed=parts is not None)

    def _use_again(self, key: int, episode: NewEpisode) -> Stored:
        self._store.duplicates.use_again(key, episode.occurred_at)
        there = self._store.experiences.read([key])[key]
        united = tuple(dict.fromkeys((*there.tags, *episode.tags)))
        if len(united) > len(set(there.tags)):
            more = [tag for tag in united if tag not in there.tags]
            self._store.retag(key, [*there.tags, *more], episode.occurred_at)
        return Stored(there.id, indexed=there.indexed, deduplicated=True)

    def get(self, memory_id: str) -> Experience:
        """Return one experience; one that consolidation deleted is not there.

        Raises:
            NotFound: No experience has this id, or it is not this agent's.
            InvalidType: The id is no `str`.
        """
        uid = arguments.text(memory_id, "memory_id")
        with self._store.reading():
            found = self._experience(uid)
        if found is None:
            message = "there is no such experience"
            raise NotFound(message, "it may be erased, or another agent's")
        return found

    def _experience(self, uid: str) -> Experience | None:
        key = self._store.episodes.visible(uid, self._agent)
        return None if key is None else self._store.experiences.read([key]).get(key)

    def delete(self, memory_id: str) -> None:
        """Erase an experience, or any other episode, as `Engram.forget` does.

        Raises:
            NotFound: No episode has this id, or it is not this agent's.
            InvalidType: The id is no `str`.
            Busy, StoreFull, Closed: The store cannot be written; nothing is erased.
        """
        missing = NotFound("there is no such memory", "it may be erased, or another agent's")
        self._forget(memory_id, "memory_id", missing)

    def insights(self) -> list[Experience]:
        """Return what the trainer learned, in insertion order.

        Insights that were merged into others, and those that were deleted, are left out.
        """
        return self._listed(INSIGHT)

    def _listed(
        self, memory_type: str | None = None, *, exported: bool = False
    ) -> list[Experience]:
        """Return the experiences that lists show, read a slice at a time.

        Args:
            memory_type: The only type; None is every one.
            exported: Name only parents that are among them, or that the store does not know.
        """
        found: list[Experience] = []
        after = 0
        while True:
            with self._store.reading():
                some = self._store.experiences.listed(self._agent, memory_type, after, _SLICE)
                parents = self._store.parents.exported(some, self._agent) if exported else {}
            found += [
                replace(one, parent_id=parents[key]) if key in parents else one
                for key, one in some.items()
            ]
            if len(some) < _SLICE:
                return found
            after = max(some)

    def delete_insight(self, memory_id: str) -> None:
        """Erase an insight.

        Raises:
            NotFound: No experience has this id, or it is not this agent's.
            InvalidArgument: It is no insight.
            InvalidType: The id is no `str`.
            Busy, StoreFull, Closed: The store cannot be written; nothing is erased.
        """
        # What an experience is never changes, so its type may be read in a transaction before.
        if self.get(memory_id).memory_type != INSIGHT:
            message = f"memory {memory_id} is not an insight"
            raise InvalidArgument(message)
        self.delete(memory_id)

    def status(self) -> ExperienceStatus:
        """Return how much there is; costs time in how many experiences there are, not in bytes."""
        # What cannot be written now, and is not counted, is next time.
        with suppress(EngramError):
            self._store.feedback.flush(wait=False)
        with self._store.reading():
            held = self._store.experiences.counts(self._agent)
            facts = self._store.facts.count()
        return ExperienceStatus(
            memory_count=held.experiences - held.gone,
            indexed_count=held.experiences - held.unindexed,
            pending_judgments=held.pending,
            index_size=held.episodes - held.unsearched,
            waiting=held.waiting,
            episodes=held.episodes,
            facts=facts,
            quarantined=held.quarantined,
        )

    def _embedded(self, new: NewExperience) -> _Embedded | None:
        """Embed the parts of an experience; None where that fails.

        Raises:
            ModelMismatch: The embedder is not the one whose vectors the store holds.
        """
        embedder = self._usable_embedder()
        if embedder is None:
            return None
        try:
            parts = embed_parts(embedder, [new.texts])
        except Exception as error:  # noqa: BLE001 - it can raise anything, and the text is kept
            _LOG.warning("a text was not embedded: %s", type(error).__name__)
            return None
        return _Embedded(embedder, parts)

    def _usable_embedder(self) -> Embedder | None:
        """Return the embedder of the store's model, None where there is no way to have it.

        Raises:
            ModelMismatch: The embedder is not the one whose vectors the store holds.
        """
        with self._store.reading():
            model = self._store.model()
        try:
            embedder = self._the_embedder(model)
            self._check_model(embedder, model)
        except ModelMismatch:
            raise
        except Exception as error:  # noqa: BLE001 - it can be missing, damaged, or fail to load
            _LOG.warning("the embedder cannot be used: %s", type(error).__name__)
            return None
        return embedder


def experience_text(value: object, argument: str) -> str:
    """Return a part of an experience, checked.

    Raises:
        InvalidType: It is no `str`.
        InvalidArgument: It is no Unicode text, or has more than `MAX_BYTES`.
    """
    given = arguments.text(value, argument)
    if len(given.encode()) > MAX_BYTES:
        message = f"{argument} exceeds maximum length of {MAX_BYTES} bytes"
        raise InvalidArgument(message)
    return given


def experience_id(value: object, argument: str) -> str:
    """Return the id of an experience that comes from elsewhere, checked.

    Raises:
        InvalidType: It is no `str`.
        InvalidArgument: It is empty, has more than `MAX_ID_BYTES`, or is the id of something else.
    """
    uid = memory_id(value, argument)
    if len(uid.encode()) > MAX_ID_BYTES:
        message = f"{argument} must have 1 to {MAX_ID_BYTES} bytes"
        raise InvalidArgument(message)
    return uid


def origin_of(project: str | None, source_type: str, paths: Resolver) -> Origin:
    """Return where an experience came from, and its project where that is an absolute path."""
    is_path = project is not None and project.startswith("/")
    return Origin(project=paths.canonical(project) if is_path else None, source_type=source_type)
