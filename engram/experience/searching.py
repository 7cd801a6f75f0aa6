"""Searching: the memories that help with a query, and a note of what was shown."""

from __future__ import annotations

import logging
import random
import uuid
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from engram import arguments
from engram.cognition.router import MODES, ROUTINE, detect, select
from engram.config.experience import SEARCH_LIMIT
from engram.engine.session import Session
from engram.errors import EngramError, InvalidArgument, InvalidType, ModelMismatch
from engram.experience.asking import Asked, rankings
from engram.experience.models import TrainedModels, factors
from engram.retrieval.fusion import Fusion, shadow_rewards
from engram.retrieval.recall import refreshed
from engram.storage import INSIGHT, MEMORY_TYPES, EpisodeFilter, RoutedSearch, folded
from engram.training.features import ranking_features

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from engram.cognition.router import Routing
    from engram.index import EpisodeIndex
    from engram.models import StoredModel
    from engram.storage import Outline, Use

__all__ = ["Found", "Hit", "Searching"]

MAX_QUERY_BYTES: Final = 5_000
"""Bytes of UTF-8 that a query may have."""

_MOST: Final = 2**63 - 1
_FUSION: Final = Fusion()

_LOG = logging.getLogger("engram.experience")


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that a search found.

    Attributes:
        id: Its id.
        score: What its places in the rankings by meaning and by words are worth, see `Fusion`; up
            to a tenth more or less where a trained model says how likely it is to be of use.
        memory_type: Its type; "context" of an episode that is no experience.
        context: The situation; all of the text of an episode that is no experience.
        action: What was done.
        result: What came of it.
        tags: Its labels, in the order given.
    """

    id: str
    score: float
    memory_type: str
    context: str
    action: str
    result: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        hits: The memories, best first.
        degraded: Meaning played no part: the query could not be embedded, or nothing that it could
            have found is.
        query_id: The search, a UUID.
        routing: How to go about the task, as far as judgements have taught it.
    """

    hits: list[Hit]
    degraded: bool
    query_id: str
    routing: Routing


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is returned, the keys of it and its use so far, and how to go about the task.

    With a trained model there may be more than is returned; without one there is no use.
    """

    hits: list[Hit]
    keys: tuple[int, ...]
    uses: tuple[Use, ...]
    degraded: bool
    routing: Routing


class _NotEmbedded(Exception):  # noqa: N818 - it never leaves this module
    """The query could not be embedded, for the reason that is this one's cause."""


class Searching(Session):
    """The calls that search."""

    _trained: TrainedModels | None = None

    def use_models(self, folder: str | os.PathLike[str] | None) -> None:
        """Let the models that a trainer wrote to a folder take part in searches.

        One says what mode a task is of where no word of the query does. The other says how likely
        each memory is to be of use, which changes its score by up to a tenth. Only models that
        passed the trainer's test count; later ones are noticed. What is wrong with the folder is
        logged and changes no answer.

        Args:
            folder: It need not be there yet; None: no models.
        """
        self._trained = None if folder is None else TrainedModels(Path(folder).absolute())

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        mode: str | None = None,
        project: str | None = None,
        tags: Iterable[str] | None = None,
        memory_types: Iterable[str] | None = None,
        fusion: Fusion = _FUSION,
    ) -> Found:
        """Return the memories that help with a query, best first.

        A ranking by meaning and one by words become one, see `Fusion`; of two memories with one
        score the newer is first. By words, memories that have a word of the query come before those
        that have one which begins so ("auth", "authentication"). Every filter applies before the
        choice, so there are as many as asked for wherever as many match. Where the query cannot be
        embedded, words decide alone. Quarantined memories are left out, and so are those that were
        merged into another, put away or forgotten. The same search gives the same answer, whatever
        judgements have taught; what they change is how it advises to go about the task. Only
        trained models, see `use_models`, let them count.

        What it shows counts as recalled and waits for a judgement, see `judge`.

        Args:
            query: Any text up to 5,000 bytes; "" ranks by meaning alone.
            limit: How many at most; None is 10.
            mode: The mode of the task, one of `MODES` in any case; None, or anything else, is what
                the query speaks of.
            project: Whose memories count in full; insights do anyway. Others count as
                `fusion.other_project_weight` says. None: all count in full.
            tags: Labels that a memory must have, every one, in any case.
            memory_types: Types of which it must have one; None is any. An episode that is no
                experience has none.
            fusion: What places in the two rankings are worth.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ModelMismatch: The embedder is not the one whose vectors the store holds.
            Closed, Busy, CorruptStore: The store cannot be read.
        """
        asked = self._asked(query, limit, mode, project, tags, memory_types, fusion)
        query_id = str(uuid.uuid4())
        degraded = False
        try:
            with self._searching(asked.text) as found:
                answer = self._answer(asked, found, query_id)
            if found is None:
                # Nothing is embedded yet; whether anything could be says only the embedder.
                self._query_vector(asked.text, None)
        except _NotEmbedded as failure:
            _LOG.warning("a query was not embedded: %s", type(failure.__cause__).__name__)
            degraded = True
            with self._store.reading():
                answer = self._answer(asked, None, query_id)
        answer = self._chosen(asked, answer)
        if self._upkeep is not None:
            self._upkeep.start()
        self._note(asked, answer, query_id)
        return Found(answer.hits, degraded or answer.degraded, query_id, answer.routing)

    def prune_feedback(self) -> int:
        """Write the feedback that waits, and let go of what is beyond the newest 20,000 searches.

        No transaction of it takes long, however much there is.

        Returns:
            How many searches it let go of.

        Raises:
            Busy, StoreFull, Closed: The store cannot be written; a part may be done.
        """
        feedback = self._store.feedback
        feedback.flush()
        removed = 0
        while True:
            with self._store.writing():
                some = feedback.prune()
            removed += some
            if not some:
                return removed

    def _asked(
        self,
        query: str,
        limit: int | None,
        mode: str | None,
        project: str | None,
        tags: Iterable[str] | None,
        memory_types: Iterable[str] | None,
        fusion: Fusion,
    ) -> Asked:
        text = arguments.query(query)
        if len(text.encode()) > MAX_QUERY_BYTES:
            message = f"query exceeds maximum length of {MAX_QUERY_BYTES} bytes"
            raise InvalidArgument(message)
        most = SEARCH_LIMIT if limit is None else arguments.integer(limit, "limit", 0, 2**64 - 1)
        named = None if mode is None else arguments.text(mode, "mode")
        whose = None if project is None else arguments.text(project, "project")
        labels = tuple(map(folded, arguments.names(tags, "tags")))
        types = arguments.names(memory_types, "memory_types")
        if not set(types) <= set(MEMORY_TYPES):
            message = f"memory_types must be of {', '.join(MEMORY_TYPES)}"
            raise InvalidArgument(message)
        if not isinstance(fusion, Fusion):
            message = f"fusion must be a Fusion, not {type(fusion).__name__}"
            raise InvalidType(message)
        allowed = partial(
            EpisodeFilter, agent=self._agent, exclude_quarantined=True, any_case_tags=labels
        )
        filters: tuple[EpisodeFilter, ...] = (allowed(memory_types=types),)
        if whose is not None and fusion.other_project_weight == 0.0:
            filters = (allowed(memory_types=types, project=whose),)
            if not types or INSIGHT in types:
                filters += (allowed(memory_types=(INSIGHT,)),)
        trained = self._trained is not None and self._trained.ranks
        return Asked(text, most, self._mode(text, named), whose, fusion, filters, trained)

    def _mode(self, text: str, named: str | None) -> str:
        """Return the mode of a task by its name or its query."""
        if named is not None and named.lower() in MODES:
            return named.lower()
        learned = None if self._trained is None else self._trained.mode_of
        return detect(text) or (learned and learned(text)) or ROUTINE

    def _query_vector(self, query: str, stored: StoredModel | None) -> NDArray[np.float32]:
        try:
            return super()._query_vector(query, stored)
        except ModelMismatch:
            raise
        except Exception as error:
            # Whatever an embedder raises: words can still answer.
            raise _NotEmbedded from error

    def _answer(
        self,
        asked: Asked,
        found: tuple[NDArray[np.float32], EpisodeIndex] | None,
        query_id: str,
    ) -> _Answer:
        """Return what answers a query, in a transaction; by words alone without its vector."""
        store = self._store
        vector, index = found or (None, self._index)
        rank = partial(rankings, store, index, vector, asked)
        by_meaning, by_words = rank() if index is None else refreshed(index, rank)
        if store.embeddings.damaged:
            damaged = len(store.embeddings.damaged)
            _LOG.warning("%d memories have damaged vectors: only words find them", damaged)
        scores = asked.fusion.scores(by_meaning, by_words)
        ranked = [
            (scores[one.key] * asked.weight(one), one) for one in store.experiences.outlines(scores)
        ]
        ranked.sort(key=lambda scored: (-scored[0], -scored[1].happened_at, scored[1].id))
        ranked = asked.eligible(ranked)
        keys = tuple(one.key for _, one in ranked)
        uses = store.experiences.uses(keys) if asked.trained else {}
        degraded = not by_meaning and any(map(store.episodes.count, asked.filters))
        chance = random.Random(query_id)  # noqa: S311 - nothing secret depends on it
        routing = select(asked.mode, store.choice_values.of(asked.mode), chance)
        shown = self._hits(ranked)
        return _Answer(shown, keys, tuple(uses[key] for key in keys if uses), degraded, routing)

    def _chosen(self, asked: Asked, answer: _Answer) -> _Answer:
        """Return an answer as a trained model weighs it, outside any transaction."""
        if self._trained is None or not answer.uses:
            return answer
        seen = [_seen(hit, use) for hit, use in zip(answer.hits, answer.uses, strict=True)]
        likely = self._trained.weights(_single(seen))
        hits = answer.hits
        if likely is not None:
            changed = zip(hits, factors(likely).tolist(), strict=True)
            hits = [replace(hit, score=hit.score * factor) for hit, factor in changed]
        # Equals stay as they are.
        order = sorted(range(len(hits)), key=lambda at: -hits[at].score)[: asked.limit]
        keys = tuple(answer.keys[at] for at in order)
        return replace(answer, hits=[hits[at] for at in order], keys=keys)

    def _hits(self, ranked: list[tuple[float, Outline]]) -> list[Hit]:
        keys = [one.key for _, one in ranked]
        experiences = self._store.experiences.read(keys)
        others = [key for key in keys if key not in experiences]
        episodes = self._store.episodes.fetch(np.array(others, dtype=np.int64))
        plain = dict(zip(others, episodes, strict=True))
        hits = []
        for score, one in ranked:
            if one.key in plain:
                episode = plain[one.key]
                said, kind, tags = (episode.content, "", ""), "context", tuple(episode.tags)
            else:
                it = experiences[one.key]
                said, kind, tags = (it.context, it.action, it.result), it.memory_type, it.tags
            hits.append(Hit(one.id, score, kind, *said, tags))
        return hits

    def _note(self, asked: Asked, answer: _Answer, query_id: str) -> None:
        """Keep what was shown; an answer does not depend on whether that works."""
        now = self._now()
        rewards = shadow_rewards([hit.score for hit in answer.hits])
        limit = min(asked.limit, _MOST)
        search = RoutedSearch(query_id, answer.routing, limit, rewards, now, answer.keys)
        try:
            self._store.feedback.note(search)
            if answer.keys:
                self._store.note_recall(self._agent, None, now, answer.keys)
        except EngramError as error:
            _LOG.warning("a search could not be noted: %s", type(error).__name__)


def _seen(hit: Hit, use: Use) -> tuple[float, ...]:
    characters = len(hit.context) + len(hit.action)
    return ranking_features(
        use.score,
        use.used_count,
        use.happened_at,
        use.last_at,
        characters,
        has_tags=bool(hit.tags),
    )


def _single(rows: list[tuple[float, ...]]) -> NDArray[np.float32]:
    """Return rows in single precision; what is beyond it becomes its largest."""
    most = float(np.finfo(np.float32).max)
    return np.asarray(np.clip(rows, -most, most), np.float32)
