"""Consolidating experiences: finding duplicates, stale ones and garbage, and tidying them away."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from engram import arguments
from engram.cognition.consolidation import (
    Advised,
    Findings,
    Limits,
    advise,
    exact_groups,
    is_stale,
    similar_groups,
    survival,
)
from engram.cognition.likeness import Vocabulary
from engram.cognition.recommendations import Applied
from engram.cognition.similar import similar
from engram.config.experience import LOG_LIMIT, MIN_SCORE, SIMILARITY, STALE_DAYS
from engram.engine.session import Session
from engram.errors import NotFound
from engram.llm import DuplicateJudge
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.cognition.consolidation import Advice
    from engram.cognition.likeness import Words
    from engram.cognition.recommendations import Analysis, Preview
    from engram.cognition.similar import PartVectors
    from engram.models import StoredModel
    from engram.storage import Store
    from engram.storage.consolidations import Candidate, ConsolidationStep

MOST_DAYS: Final = 3650

_PAGE: Final = 1000
"""Experiences read in one transaction."""

_PARTS: Final = 3
_LONGEST_NAME: Final = 200


class Consolidating(Session):
    """The calls that find what is superfluous among experiences, and hide it.

    Only what this agent sees. Duplicates are of one agent, project and type. Insights, and what is
    hidden or quarantined, are left alone. Every change can be taken back.
    """

    def preview(
        self,
        *,
        stale_days: int = STALE_DAYS,
        min_score: float = MIN_SCORE,
        similarity: float = SIMILARITY,
    ) -> Preview:
        """Say what there is to consolidate; nothing is changed and no language model asked.

        Args:
            stale_days: Stale is what is older, in days, 0 to 3650,
            min_score: and was found less useful, 0 to 1, and was never used.
            similarity: The cosine that each part of two duplicates must reach, 0 to 1.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            Busy, Closed: The store cannot be read.
        """
        limits, cosine = self._limits(stale_days, min_score, similarity)
        return self._find(limits, cosine).preview()

    def analyse(
        self,
        *,
        stale_days: int = STALE_DAYS,
        min_score: float = MIN_SCORE,
        similarity: float = SIMILARITY,
    ) -> Analysis:
        """Say what should be done about it; nothing is changed.

        A language model that can tell duplicates is asked about each, outside any transaction and
        about 200 at most; without one all are to be merged.

        Args:
            stale_days: As for `preview`.
            min_score: As for `preview`.
            similarity: As for `preview`.

        Raises:
            InvalidArgument, InvalidType, Busy, Closed: As for `preview`. What goes wrong with a
                language model is among the errors of the result.
        """
        limits, cosine = self._limits(stale_days, min_score, similarity)
        return self._advised(limits, cosine).shown()

    def consolidate(
        self,
        *,
        stale_days: int = STALE_DAYS,
        min_score: float = MIN_SCORE,
        min_confidence: float = 0.0,
        similarity: float = SIMILARITY,
        dry_run: bool = False,
        performed_by: str = "server",
    ) -> Applied:
        """Do what `analyse` says, all of it in one transaction.

        What was merged, archived or deleted is found no more and stays in the file, so that `undo`
        can bring it back. A survivor gets the tags of what it absorbs. What changed since it was
        analysed is left alone and named among the errors.

        Args:
            stale_days: As for `preview`.
            min_score: As for `preview`.
            min_confidence: Leave out what is less sure, 0 to 1.
            similarity: As for `preview`.
            dry_run: Only say how much would be done.
            performed_by: Who asks for it, for the log.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            Busy, StoreFull, Closed: The store cannot be written; nothing is changed.
        """
        limits, cosine = self._limits(stale_days, min_score, similarity)
        least = arguments.number(min_confidence, "min_confidence", 0.0, 1.0)
        rehearse = arguments.flag(dry_run, "dry_run")
        who = arguments.label(performed_by, "performed_by", _LONGEST_NAME)
        advised = self._advised(limits, cosine)
        chosen = [one for one in advised.advice if one.confidence >= least]
        kept = [one for one in chosen if one.action == "keep"]
        changes = [one for one in chosen if one.action != "keep"]
        done, run_id = changes, None
        if changes and not rehearse:
            done, run_id = self._apply(changes, who)
            carried_out = {one.memory.key for one in done}
            advised.errors += [
                f"apply {one.memory.id}: it changed meanwhile"
                for one in changes
                if one.memory.key not in carried_out
            ]
        counts = Counter(one.action for one in done)
        return Applied(
            merged=counts["merge"],
            deleted=counts["delete"],
            archived=counts["archive"],
            kept=len(kept),
            errors=tuple(advised.errors),
            run_id=run_id,
        )

    def consolidation_log(self, limit: int = LOG_LIMIT) -> list[ConsolidationStep]:
        """Return what was done to experiences, newest first, and whether it was taken back.

        Erasing a memory erases what was done to it from here too.

        Args:
            limit: How many steps at most.

        Raises:
            InvalidArgument, InvalidType: `limit` is refused.
            Busy, Closed: The store cannot be read.
        """
        most = arguments.integer(limit, "limit", 0, 2**63 - 1)
        with self._store.reading():
            found = self._store.consolidations.steps(self._agent, limit=most)
        return [done.step for done in found]

    def undo(self, run_id: str) -> int:
        """Take back what a run did, newest first; return how many steps that were.

        A step stays where somebody changed the standing of its memory since, and where it was
        taken back before: of a run that is undone, nothing is left to do. Tags that a survivor got
        since the run stay.

        Args:
            run_id: `Applied.run_id`, or that of a step of the log.

        Raises:
            NotFound: There is no such run, or nothing of it is this agent's.
            InvalidType: `run_id` is no `str`.
            Busy, StoreFull, Closed: The store cannot be written; nothing is changed.
        """
        uid = arguments.text(run_id, "run_id")
        now = self._now()
        with self._store.writing():
            mine = self._store.consolidations.steps(self._agent, run_id=uid)
            if not mine:
                message = "there is no such run of consolidation"
                raise NotFound(message, "its memories may be erased, or another agent's")
            return self._store.consolidations.undo(
                [done for done in mine if not done.step.undone], now
            )

    def _limits(self, stale_days: int, min_score: float, similarity: float) -> tuple[Limits, float]:
        days = arguments.integer(stale_days, "stale_days", 0, MOST_DAYS)
        score = arguments.number(min_score, "min_score", 0.0, 1.0)
        cosine = arguments.number(similarity, "similarity", 0.0, 1.0)
        return Limits.of_days(days, score, self._now()), cosine

    def _find(self, limits: Limits, cosine: float) -> Findings:
        vocabulary = Vocabulary()
        everything: list[tuple[Candidate, Words]] = []
        while True:
            after = everything[-1][0].key if everything else 0
            with self._store.reading():
                page = self._store.consolidations.candidates(self._agent, after, _PAGE)
            everything += [(one, vocabulary.read(parts)) for one, parts in page]
            if len(page) < _PAGE:
                break
        candidates = [one for one, _ in everything]
        exact = exact_groups(candidates)
        taken = {one.key for group in exact for one in group.members}
        rest = [pair for pair in everything if pair[0].key not in taken]
        rest.sort(key=lambda pair: survival(pair[0]))
        alike = similar(rest, vocabulary, _Vectors(self._store), cosine)
        return Findings(
            [*exact, *similar_groups(alike)],
            [one for one in candidates if is_stale(one, limits)],
            [one for one in candidates if one.orphaned],
        )

    def _advised(self, limits: Limits, cosine: float) -> Advised:
        asks = isinstance(self._llm, DuplicateJudge)
        return advise(self._find(limits, cosine), self._are_the_same if asks else None)

    def _are_the_same(self, survivor: Candidate, member: Candidate) -> bool:
        assert isinstance(self._llm, DuplicateJudge)  # noqa: S101 - the caller saw that it is
        keys = [survivor.key, member.key]
        with self._store.reading():
            found = self._store.experiences.read(keys)
        if len(found) < len(keys):
            message = "there is no such experience any more"
            raise NotFound(message)
        same, _ = self._llm.are_duplicates(*(found[key] for key in keys))
        return same

    def _apply(
        self, changes: Sequence[Advice], performed_by: str
    ) -> tuple[list[Advice], str | None]:
        """Do what was advised as far as it still holds; return that, and the run's id."""
        keys = {one.key for advice in changes for one in (advice.memory, advice.survivor) if one}
        with self._store.writing():
            steps = self._store.consolidations
            now = steps.current(keys)
            good = [one for one in changes if one.holds(now)]
            if not good:
                return [], None
            run = steps.begin(performed_by, self._now())
            for survivor, group in groupby(good, key=lambda one: one.survivor):
                if survivor is not None:
                    steps.merge(run, survivor, [(one.memory, one.reasoning) for one in group])
                    continue
                for one in group:
                    hide = steps.archive if one.action == "archive" else steps.delete
                    hide(run, one.memory, one.reasoning)
        return good, run.id


class _Vectors:
    """The vectors of experiences' parts, all of the model that was current at first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._model: StoredModel | None = None

    def __call__(self, episodes: Sequence[int]) -> dict[int, PartVectors]:
        """Return the vectors of some experiences, by key, of those that have any."""
        keys = np.array(sorted(episodes), dtype=np.int64)
        with self._store.reading():
            model = self._model = self._model or self._store.model()
            if model is None:
                return {}
            owners, fields, vectors = self._store.embeddings.fields(keys, model)
        order = np.lexsort((fields, owners))
        order = order[fields[order] >= 0]
        pairs = np.stack((owners[order], fields[order]))
        firsts = np.flatnonzero(np.any(np.diff(pairs, axis=1, prepend=-1), axis=0))
        # Of a part in several chunks, what they say together.
        sums = np.add.reduceat(vectors[order], firsts, axis=0)
        found, rows = np.unique(pairs[0, firsts], return_inverse=True)
        parts = np.zeros((len(found), _PARTS, model.dim), dtype=np.float32)
        parts[rows, pairs[1, firsts]] = normalise(sums)
        return dict(zip(found.tolist(), parts, strict=True))
