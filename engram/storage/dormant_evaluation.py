"""Which memories lie dormant, and what an evaluation of them leaves behind."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import apsw
import numpy as np

from engram.storage import uids
from engram.storage.dormancy import Dormancy, micros
from engram.storage.importance import IMPORTANCE, JOIN, from_stored, share
from engram.storage.standing import INELIGIBLE
from engram.times import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from engram.config import DormantRecall
    from engram.models import StoredModel
    from engram.storage.filters import EpisodeFilter

ALGORITHM: Final = "current-db-relevance-v2"
"""What the events of an evaluation say of how they came about."""

_FULLY_DORMANT: Final = 4
"""Times the least rest after which the bonus is the whole one."""

_ACTIVE_AT = (
    "max(e.recorded_at, coalesce(s.last_accessed_at, e.recorded_at), coalesce("
    "(SELECT max(r.at) FROM access_log AS a CROSS JOIN recall_log AS r ON r.id = a.recall"
    " WHERE a.episode = e.id), e.recorded_at))"
)
_STRENGTH = "LEFT JOIN strength AS s ON s.episode = e.id"
_DORMANT = f"e.recorded_at <= ? AND {_ACTIVE_AT} <= ?"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dormant memory that passed every gate of an evaluation but the last.

    Attributes:
        relevance: Cosine of it and the query.
        overlap_count: Terms of the query that are words of it.
        rerank_score: What the reranker thought of it.
    """

    relevance: float
    overlap_count: int
    rerank_score: float


class _Choice(NamedTuple):
    episode: int
    uid: str
    bonus: float
    dormant_days: float


class DormantEvaluation(Dormancy):
    """The part of it that searches need; every method runs in the caller's transaction."""

    def dormant(self, episodes: NDArray[np.int64], since: int) -> NDArray[np.int64]:
        """Return those of some episodes that were made and last recalled by a time, eligible ones.

        Args:
            episodes: int64[n], keys.
            since: In microseconds, inclusive.

        Returns:
            Keys, int64[m], in their order.
        """
        if not len(episodes):
            return episodes
        rows = self._connection.execute(
            "SELECT e.id FROM carray(?) AS k CROSS JOIN episode AS e ON e.id = k.value"  # noqa: S608
            f" {_STRENGTH} WHERE {_DORMANT} AND NOT {INELIGIBLE.format('e')}",
            (apsw.carray(episodes), since, since),
        ).fetchall()
        return np.array(rows, dtype=np.int64).reshape(-1)

    def recorded_by(self, since: int, most: int) -> NDArray[np.int64]:
        """Return the episodes that were made by a time, int64[n], ascending; some `most` of them.

        Args:
            since: In microseconds, inclusive.
            most: How many at most.
        """
        rows = self._connection.execute(
            "SELECT id FROM episode WHERE recorded_at <= ? LIMIT ?", (since, most)
        ).fetchall()
        return np.sort(np.array(rows, dtype=np.int64).reshape(-1))

    def count(self, allowed: EpisodeFilter, model: StoredModel, since: int, most: int) -> int:
        """Return how many allowed episodes with vectors are dormant, counting up to a number.

        Args:
            allowed: Which episodes count.
            model: Whose vectors.
            since: As for `dormant`.
            most: Where to stop.
        """
        conditions, bindings = allowed.conditions()
        found: int = self._connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM episode AS e {_STRENGTH}"  # noqa: S608
            f" WHERE {_DORMANT} AND {' AND '.join(conditions)} AND EXISTS"
            " (SELECT 1 FROM embedding AS v WHERE v.episode = e.id AND v.model = ?) LIMIT ?)",
            (since, since, *bindings, model.id, most),
        ).get
        return found

    def record(
        self,
        candidate_count: int,
        query_term_count: int,
        candidates: Mapping[int, Candidate],
        settings: DormantRecall,
        now: int,
    ) -> None:
        """Choose at most one candidate, let it rest, and note the event of the evaluation.

        Whatever changed since the candidates were found counts: those that are gone, ineligible,
        in use again or chosen by somebody else are left out.

        Args:
            candidate_count: Dormant memories that were looked at.
            query_term_count: Terms of the query.
            candidates: By key.
            settings: How to choose, and what to keep.
            now: The time, in microseconds.
        """
        chosen = min(
            self._rested(list(candidates), settings, now),
            key=lambda one: (
                -(candidates[one.episode].relevance + one.bonus),
                -candidates[one.episode].relevance,
                one.uid,
            ),
            default=None,
        )
        self._note(candidate_count, query_term_count, candidates, chosen, now)
        if chosen is not None:
            rest = now + micros(settings.cooldown_days)
            self.rest(chosen.episode, rest, retrieved_at=now)
        self.prune(settings, now)

    def _rested(self, episodes: Sequence[int], settings: DormantRecall, now: int) -> list[_Choice]:
        """Return the episodes that may be shown now."""
        found = []
        least = settings.dormancy_days
        for key in episodes:
            row = self._connection.execute(
                f"SELECT e.uid, {IMPORTANCE},"  # noqa: S608
                f" max({_ACTIVE_AT}, coalesce(d.used_at, e.recorded_at))"
                f" FROM episode AS e {_STRENGTH} LEFT JOIN dormant_state AS d ON d.episode = e.id"
                f" {JOIN} WHERE e.id = ? AND NOT {INELIGIBLE.format('e')}"
                " AND coalesce(d.cooldown_until <= ?, TRUE)",
                (key, now),
            ).fetchone()
            if row is None or row[2] > now - micros(least):
                continue
            uid, importance, active_at = row
            days = (now - active_at) / DAY
            weight = share(from_stored(importance))
            bonus = settings.max_bonus * weight * min(1.0, days / (_FULLY_DORMANT * least))
            found.append(_Choice(key, uids.from_stored(uid), bonus, days))
        return found

    def _note(
        self,
        candidate_count: int,
        query_term_count: int,
        candidates: Mapping[int, Candidate],
        chosen: _Choice | None,
        now: int,
    ) -> None:
        """Insert the event of an evaluation."""
        event: dict[str, object] = {
            "id": str(uuid.uuid4()),
            "created_at": now,
            "outcome": "none" if chosen is None else "candidate",
            "candidate_count": candidate_count,
            "algorithm": ALGORITHM,
        }
        if chosen is not None:
            one = candidates[chosen.episode]
            event |= {
                "episode": chosen.episode,
                "relevance": one.relevance,
                "bonus": chosen.bonus,
                "dormant_days": chosen.dormant_days,
                "overlap_count": one.overlap_count,
                "query_term_count": query_term_count,
                "rerank_score": one.rerank_score,
            }
        columns = ", ".join(event)
        values = ", ".join(f":{name}" for name in event)
        self._connection.execute(
            f"INSERT INTO dormant_event ({columns}) VALUES ({values})",  # noqa: S608
            event,
        )
