"""Insights: what a trainer makes of the experiences, renewed by each of its runs."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from engram import arguments
from engram.config.experience import TRAINER_PROGRAM, TRAINER_SECONDS
from engram.errors import EngramError, InvalidArgument, TrainerFailed, TrainerReplyError
from engram.experience.results import Generated, TrainingRun
from engram.experience.tags import read_tags
from engram.experience.trainer import Trainer, program
from engram.experience.waiting import Waiting
from engram.storage import NewEpisode, NewExperience, Origin
from engram.storage.experiences import INSIGHT, INSIGHT_TYPES, SUPERSEDED, wire_time
from engram.storage.lifecycle import Found
from engram.storage.training import RECOMMENDATIONS_KEPT, RUNS_KEPT, TRAINER, NewRun
from engram.training.messages import Artifact, Complete, Insight, Metric, Recommendation

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from engram.models import Experience
    from engram.storage.training import Kept, Learned, Run
    from engram.training.messages import Message

_LONGEST_ID: Final = 200
_LONGEST_RUN: Final = 86_400.0


class _NewInsight(NamedTuple):
    """An insight on its way into the store."""

    uid: str
    episode: NewEpisode
    experience: NewExperience


class Generating(Waiting):
    """The calls about trainers."""

    def generate(
        self,
        models_path: str | os.PathLike[str],
        *,
        trainer: str = TRAINER_PROGRAM,
        timeout: float = TRAINER_SECONDS,
        options: Sequence[str] = (),
    ) -> Generated:
        """Run a trainer over the store and keep what it says.

        Its insights take the place of those of earlier runs: one that was there keeps its id, its
        score and what is known of its use; one that is gone is erased, or, if it was judged,
        hidden until a run brings it again. Insights that were stored or imported stay. A run that
        brings none changes none.

        With an agent it is told `--agent`: it reads, and its models know, that agent's experiences
        alone. The passphrase of an encrypted store reaches it through a pipe, whose name is in the
        variable `ENGRAM_KEY_FILE`; else its environment is this process's.

        Args:
            models_path: The folder for the models it makes, one for each store and agent.
            trainer: Its file, or its name, see `engram.experience.trainer.program`.
            timeout: Seconds it may take.
            options: What it is told beside the store and the folder.

        Raises:
            TrainerFailed: It is not there, runs already, or ended with a failure.
            TimedOut: It took too long and was killed.
            TrainerReplyError: It printed something else than its messages; nothing was kept.
            InvalidArgument, InvalidType: An argument is refused, or the store is in memory.
            Busy, StoreFull, Closed: The store cannot be written.
        """
        seconds = arguments.number(timeout, "timeout", 0.001, _LONGEST_RUN)
        file = self._store.path
        if file is None:
            message = "a store in memory cannot be read by a trainer"
            raise InvalidArgument(message, "use a file")
        command = [
            program(arguments.text(trainer, "trainer")),
            *("--database", str(file), "--models-path", str(Path(models_path).absolute())),
            *(() if self._agent is None else (f"--agent={self._agent}",)),
            *options,
        ]
        if not self._store.training.running.acquire(blocking=False):
            message = "it runs already"
            raise TrainerFailed(message, "wait until it is done")
        started = self._now()
        try:
            with self._store.reading():
                seen = self._store.last_change()
            return self._keep_run(started, seen, self._said(command, seconds))
        except EngramError as error:
            self._note_failure(started, error)
            raise
        finally:
            self._store.training.running.release()

    def training_runs(
        self, limit: int = RUNS_KEPT, *, recommendations: int = RECOMMENDATIONS_KEPT
    ) -> list[TrainingRun]:
        """Return the newest runs of the trainer, the newest first; the last 20 are kept.

        With an agent those that were about its experiences, and each agent's last 20 are kept.

        Args:
            limit: How many at most.
            recommendations: How many of each run's recommendations at most.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
        """
        most = arguments.integer(limit, "limit", 0, RUNS_KEPT)
        first = arguments.integer(recommendations, "recommendations", 0, 2**63 - 1)
        with self._store.reading():
            return [_run(one) for one in self._store.training.runs(self._agent, most, first)]

    def close(self) -> None:
        """Close the store, and end the trainer that runs; closing twice is harmless."""
        self._ended = True
        trainer = self._trainer
        if trainer is not None:
            trainer.kill()
        super().close()

    def _said(self, command: list[str], seconds: float) -> list[Message]:
        trainer = Trainer(command, self._store.training.passphrase())
        # For who closes the store meanwhile.
        self._trainer = trainer
        try:
            if self._ended:
                trainer.kill()
            return trainer.messages(seconds)
        finally:
            self._trainer = None

    def _keep_run(self, started: int, seen: int, messages: Sequence[Message]) -> Generated:
        now = self._now()
        insights = [_new_insight(one, now) for one in messages if isinstance(one, Insight)]
        if len({one.uid for one in insights}) < len(insights):
            message = "two insights have one id"
            raise TrainerReplyError(message)
        duration = next((one.duration_secs for one in messages if isinstance(one, Complete)), None)
        run = NewRun(
            started,
            now,
            messages=len(messages),
            insights=len(insights),
            duration_secs=duration,
        )
        artifacts = [
            (one.path, one.size_bytes, _sha256(one.path))
            for one in messages
            if isinstance(one, Artifact)
        ]
        with self._store.writing():
            if self._erased_since(seen):
                # What was drawn from texts that are gone may hold their words.
                insights = [one for one in insights if self._rests_on_what_is_there(one)]
            if insights:
                self._replace({one.uid: one for one in insights}, now)
            self._store.training.add(
                run,
                self._agent,
                (
                    (one.target_id, one.action, one.reasoning)
                    for one in messages
                    if isinstance(one, Recommendation)
                ),
                ((one.name, one.value) for one in messages if isinstance(one, Metric)),
                artifacts,
            )
        # They are there, embedded or not.
        with suppress(Exception):
            while self.embed_waiting():
                pass
        return Generated(len(insights), len(messages))

    def _erased_since(self, seen: int) -> bool:
        return any(op == "forget" for op, _, _ in self._store.changes_after(seen))

    def _rests_on_what_is_there(self, insight: _NewInsight) -> bool:
        key = self._store.episodes.key
        return all(key(uid, None) is not None for uid in insight.episode.summary_of)

    def _replace(self, insights: dict[str, _NewInsight], now: int) -> None:
        """Have the trainer's insights be these, in a write transaction.

        Raises:
            TrainerReplyError: One has the id of something else.
        """
        known = self._store.training.insights(self._agent)
        there = self._store.experiences.read(one.key for one in known.values())
        self._let_go({uid: one for uid, one in known.items() if uid not in insights}, now)
        learned: dict[str, Learned] = {}
        fresh = []
        for uid, one in insights.items():
            kept = known.get(uid)
            if kept is None and self._store.episodes.key(uid, None) is not None:
                message = "an insight has the id of another memory"
                raise TrainerReplyError(message)
            if kept is None or not _says(there[kept.key], one):
                fresh.append(one)
                if kept is not None:
                    learned[uid] = self._store.training.take_learned(kept.key)
                    self._store.remove_episodes([kept.key], now)
            elif kept.hidden:
                self._show(kept.key, uid, now, status=None)
        if not fresh:
            return
        self._store.add_episodes(
            [one.episode for one in fresh],
            None,
            None,
            model=None,
            agent=self._agent,
            now=now,
            experiences=[one.experience for one in fresh],
        )
        for uid, rows in learned.items():
            found = self._store.episodes.key(uid, None)
            assert found is not None  # noqa: S101 - it was just added
            self._store.training.give_learned(found, rows)

    def _let_go(self, insights: dict[str, Kept], now: int) -> None:
        """Hide insights that were judged and erase the others."""
        judged = self._store.training.judged([one.key for one in insights.values()])
        for uid, one in insights.items():
            if one.key in judged and not one.hidden:
                self._show(one.key, uid, now, status=SUPERSEDED)
        gone = [one.key for one in insights.values() if one.key not in judged]
        if gone:
            self._store.remove_episodes(gone, now)

    def _show(self, key: int, uid: str, now: int, *, status: str | None) -> None:
        self._store.lifecycle.set(
            Found("episode", key),
            uid,
            now,
            action=f"status: {status or 'active'}",
            reason=None,
            columns={"status": status},
        )

    def _note_failure(self, started: int, error: EngramError) -> None:
        """Keep that a run failed; why it did is told to who asked for it."""
        with suppress(EngramError), self._store.writing():
            self._store.training.add(NewRun(started, self._now(), failure=error.code), self._agent)

    # The process that runs; and whether none is to run any more.
    _trainer: Trainer | None = None
    _ended = False


def _new_insight(insight: Insight, now: int) -> _NewInsight:
    """Return an insight as it is to be kept.

    Raises:
        TrainerReplyError: It has no id, or is of no known type.
    """
    if insight.insight_type not in INSIGHT_TYPES:
        message = f"insight_type must be one of {', '.join(INSIGHT_TYPES)}"
        raise TrainerReplyError(message)
    if not 1 <= len(insight.id.encode()) <= _LONGEST_ID:
        message = f"the id of an insight must have 1 to {_LONGEST_ID} bytes"
        raise TrainerReplyError(message)
    experience = NewExperience(
        INSIGHT,
        insight.context,
        insight.action,
        insight.result,
        now,
        source_ids=insight.source_ids,
        insight_type=insight.insight_type,
    )
    episode = NewEpisode(
        experience.content,
        now,
        tags=read_tags(insight.tags),
        provenance="tool",
        summary_of=tuple(filter(None, (insight.source_ids or "").split(","))),
        origin=Origin(source_type=TRAINER),
        uid=insight.id,
    )
    return _NewInsight(insight.id, episode, experience)


def _says(there: Experience, new: _NewInsight) -> bool:
    """Return whether an insight is as it would be written now."""
    return (
        *(there.context, there.action, there.result),
        *(there.insight_type, there.source_ids, there.tags),
    ) == (
        *new.experience.parts,
        new.experience.insight_type,
        new.experience.source_ids,
        new.episode.tags,
    )


def _sha256(path: str) -> bytes | None:
    """Return the digest of a file, None where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except (OSError, ValueError):
        return None


def _run(run: Run) -> TrainingRun:
    return TrainingRun(
        id=run.uid,
        started_at=wire_time(run.run.started_at),
        finished_at=wire_time(run.run.finished_at),
        failure=run.run.failure,
        messages=run.run.messages,
        insights=run.run.insights,
        duration_secs=run.run.duration_secs,
        recommendation_count=run.recommendation_count,
        recommendations=run.recommendations,
        metrics=run.metrics,
        artifacts=[
            (path, size, None if digest is None else digest.hex())
            for path, size, digest in run.artifacts
        ],
    )
