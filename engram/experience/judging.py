"""Judging: how useful memories were, which is what the router learns from."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from engram import arguments
from engram.cognition.router import LEVELS, rewarded
from engram.cognition.usefulness import usefulness
from engram.engine.session import Session
from engram.errors import InvalidArgument, NotFound
from engram.experience.keeping import MAX_ID_BYTES
from engram.llm import MemoryJudge
from engram.times import DAY

__all__ = ["Judgement", "Judging"]

_LOG = logging.getLogger("engram.experience")


@dataclass(frozen=True, slots=True)
class Judgement:
    """How useful a memory was found.

    Attributes:
        score: 0, of no use, to 1.
        reason: Why.
        degraded: The language model could not say, so words, age and use did.
    """

    score: float
    reason: str
    degraded: bool


class Judging(Session):
    """The calls that judge."""

    def judge(
        self, memory_id: str, *, score: float | None = None, query: str | None = None
    ) -> Judgement:
        """Say how useful a memory was, or have it estimated, and let the router learn from that.

        Without a score the language model given at opening says it. Without that, or where it
        fails, the score is made of the query's words that the memory has, its age and its use.
        What was judged before is replaced. The newest search that showed the memory, and was not
        yet rewarded for it, is rewarded with the score: what it chose counts for more or less from
        now on.

        Args:
            memory_id: The id of a memory, an experience or any other episode.
            score: How useful it was, 0 to 1; None asks for an estimate.
            query: What it was to help with; only an estimate looks at it.

        Raises:
            NotFound: No memory has this id, or it is not this agent's.
            InvalidArgument, InvalidType: An argument is refused.
            Busy, StoreFull, Closed: The store cannot be written; nothing is.
        """
        uid = arguments.text(memory_id, "memory_id")
        if not 1 <= len(uid.encode()) <= MAX_ID_BYTES:
            message = f"memory_id must have 1 to {MAX_ID_BYTES} bytes"
            raise InvalidArgument(message)
        given = None if score is None else arguments.number(score, "score", 0.0, 1.0)
        asked = "" if query is None else arguments.query(query, "query")
        if given is None:
            judgement = self._estimate(uid, asked)
        else:
            judgement = Judgement(given, "explicit score", degraded=False)
        self._learn(uid, judgement.score)
        return judgement

    def _key(self, uid: str) -> int:
        """Return the key of an episode, in a transaction."""
        key = self._store.episodes.visible(uid, self._agent)
        if key is None:
            message = "there is no such memory"
            raise NotFound(message, "it may be erased, or another agent's")
        return key

    def _estimate(self, uid: str, query: str) -> Judgement:
        with self._store.reading():
            key = self._key(uid)
            [episode] = self._store.episodes.fetch(np.array([key], dtype=np.int64))
            use = self._store.experiences.uses([key])[key]
        degraded = False
        if isinstance(self._llm, MemoryJudge):
            try:
                score, reason = self._llm.judge_memory(query, episode.content)
                if 0.0 <= score <= 1.0:
                    return Judgement(float(score), str(reason), degraded=False)
            except Exception as error:  # noqa: BLE001 - whatever an adapter may raise
                _LOG.warning("a memory was judged without the model: %s", type(error).__name__)
            degraded = True
        days = (self._now() - use.changed_at) / DAY
        return Judgement(*usefulness(query, episode.content, days, use.used_count), degraded)

    def _learn(self, uid: str, score: float) -> None:
        """Keep a score, and reward what showed the memory, all at once."""
        store, now = self._store, self._now()
        with store.writing():
            key = self._key(uid)
            noted = store.feedback.write()
            store.judgements.set(key, score, now)
            store.feedback.judge(key, now)
            routing = store.feedback.take_unrewarded(key)
            if routing is not None:
                mode, *choices = routing
                values = store.choice_values.of(mode)
                for level, choice in zip(LEVELS, choices, strict=True):
                    value, updates = values.get((level, choice), (0.0, 0))
                    after = rewarded(value, score)
                    store.choice_values.put(level, mode, choice, after, updates + 1, now=now)
        store.feedback.written(noted)
