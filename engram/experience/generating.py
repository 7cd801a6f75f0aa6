"""Insights: what a trainer makes of the experiences, renewed by each of its runs."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from engram import arguments
from engram.config.experience import TRAINER_PROGRAM, TRAINER_SECONDS
from engram.errors import EngramError, InvalidArgument, TrainerReplyError
from engram.experience.regular_file import file_content
from engram.experience.results import Generated, TrainingRun
from engram.experience.tags import read_tags
from engram.experience.trainer import Trainer, claimed, program
from engram.experience.waiting import Waiting
from engram.storage import NewEpisode, NewExperience, Origin
from engram.storage.experiences import SUPERSEDED
from engram.storage.lifecycle import Found, status_given
from engram.storage.training import LET_GO, RECOMMENDATIONS_KEPT, RUNS_KEPT, TRAINER, NewRun
from engram.storage.triplets import INSIGHT, wire_time
from engram.training.manifest import MAX_MODEL_BYTES
from engram.training.messages import Artifact, Complete, Insight, Metric, Recommendation

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from engram.storage.training import Kept, Run
    from engram.storage.triplets import Experience
    from engram.training.messages import Message

_LONGEST_RUN: Final = 86_400.0


class _NewInsight(NamedTuple):
    """An insight on its way into the store."""

    uid: str
    episode: NewEpisode
    experience: NewExperience

    def used(self, kept: Kept) -> _NewInsight:
        """Return it with the use of the one whose place it takes."""
        experience = self.experience._replace(
            used_count=kept.used_count, last_used_at=kept.last_used_at
        )
        return self._replace(experience=experience)


class Generating(Waiting):
    """The calls about trainers."""

    # The process that runs; and whether none is to run any more.
    _trainer: Trainer | None = None
    _ended = False

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
        hidden until a run brings it again. What rests on one stays, whatever becomes of it. Left
        as they are: insights that were stored or imported, and those that somebody hid. A run that
        brings none changes none.

        Of a run during which anything was erased only those insights are kept whose sources are
        all there, and nothing of what it said beside.

        With an agent it is told `--agent`: it reads, and its models know, that agent's experiences
        alone. The passphrase of an encrypted store reaches it through a pipe, whose name is in the
        variable `ENGRAM_KEY_FILE`; else its environment is this process's.

        Args:
            models_path: The folder for the models it makes, one for each store and agent.
            trainer: Its file, or its name, see `engram.experience.trainer.program`.
            timeout: Seconds it may take.
            options: What it is told beside the store and the folder.

        Raises:
            TrainerFailed: It is not there, one runs already over this store, whoever started it,
                or it ended with a failure.
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
        with claimed(file) as right:
            started = self._now()
            try:
                with self._store.reading():
                    seen = self._store.last_change()
                return self._keep_run(started, seen, self._said(command, seconds, right))
            except Exception as error:
                self._note_failure(started, error)
                raise

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

    def _said(self, command: list[str], seconds: float, right: int) -> list[Message]:
        trainer = Trainer(command, right, self._store.training.passphrase())
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
        duration = next((one.duration_secs for one in messages if isinstance(one, Complete)), None)
        artifacts = [
            (one.path, one.size_bytes, _sha256(one.path))
            for one in messages
            if isinstance(one, Artifact)
        ]
        with self._store.writing():
            said = messages
            if self._erased_since(seen):
                # What was drawn from texts that are gone may hold their words, and of what it said
                # beside nobody knows from which it was drawn.
                insights, said, artifacts = self._drawn_from_what_is_there(insights), (), []
            if insights:
                self._replace({one.uid: one for one in insights}, now)
            self._store.training.add(
                NewRun(started, now, None, len(messages), len(insights), duration),
                self._agent,
                (
                    (one.target_id, one.action, one.reasoning)
                    for one in said
                    if isinstance(one, Recommendation)
                ),
                ((one.name, one.value) for one in said if isinstance(one, Metric)),
                artifacts,
            )
        # They are there, embedded or not.
        self._embed_all()
        return Generated(len(insights), len(messages))

    def _erased_since(self, seen: int) -> bool:
        return any(op.startswith("forget") for op, _, _ in self._store.changes_after(seen))

    def _drawn_from_what_is_there(self, insights: Sequence[_NewInsight]) -> list[_NewInsight]:
        """Return the insights of which all sources are there, or are such insights themselves."""
        key = self._store.episodes.key
        new, found = {one.uid for one in insights}, list[_NewInsight]()
        there: set[str] = set()
        while True:
            more = [
                one
                for one in insights
                if one.uid not in there
                and one.experience.sources
                and all(
                    uid in there if uid in new else key(uid, None) is not None
                    for uid in one.experience.sources
                )
            ]
            if not more:
                return found
            found += more
            there.update(one.uid for one in more)

    def _replace(self, insights: dict[str, _NewInsight], now: int) -> None:
        """Have the trainer's insights be these, in a write transaction.

        Raises:
            TrainerReplyError: One has the id of something else.
        """
        known = self._store.training.insights(self._agent)
        there = self._store.experiences.read(one.key for one in known.values())
        self._let_go({uid: one for uid, one in known.items() if uid not in insights}, now)
        said: list[_NewInsight] = []
        renewed: dict[str, Kept] = {}
        for uid, one in insights.items():
            kept = known.get(uid)
            if kept is None:
                if self._is_free(uid):
                    said.append(one)
            elif kept.standing != "hidden":
                if kept.standing == "let go":
                    self._show(kept.key, uid, now, status=None, reason="a run brings it again")
                if not _says(there[kept.key], one):
                    renewed[uid] = kept
                    said.append(one.used(kept))
        self._write_insights(said, renewed, now)

    def _is_free(self, uid: str) -> bool:
        """Return whether no memory has an id; False says that an insight has it, which stays.

        Exported insights come back with their ids, and a trainer gives the same ones again.

        Raises:
            TrainerReplyError: Another memory has it.
        """
        if self._store.episodes.key(uid, None) is None:
            return True
        key = self._store.episodes.key(uid, self._agent)
        other = None if key is None else self._store.experiences.read([key]).get(key)
        if other is None or other.memory_type != INSIGHT:
            message = "an insight has the id of another memory"
            raise TrainerReplyError(message)
        return False

    def _write_insights(
        self, insights: Sequence[_NewInsight], renewed: dict[str, Kept], now: int
    ) -> None:
        """Add insights; those that are there already keep what is known of them."""
        if not insights:
            return
        training = self._store.training
        learned = {uid: training.take_learned(one.key) for uid, one in renewed.items()}
        retired = {one.key: uid for uid, one in renewed.items()}
        self._store.retire_episodes(retired, now, replaced=True)
        self._store.add_episodes(
            [one.episode for one in insights],
            None,
            None,
            model=None,
            agent=self._agent,
            now=now,
            experiences=[one.experience for one in insights],
        )
        for uid, rows in learned.items():
            key = self._store.episodes.key(uid, None)
            assert key is not None  # noqa: S101 - it was just added
            training.give_learned(key, rows)

    def _let_go(self, insights: dict[str, Kept], now: int) -> None:
        """Hide insights that were judged and erase the others; what others hid stays."""
        mine = {uid: one for uid, one in insights.items() if one.standing != "hidden"}
        judged = self._store.training.judged([one.key for one in mine.values()])
        for uid, one in mine.items():
            if one.key in judged and one.standing == "shown":
                self._show(one.key, uid, now, status=SUPERSEDED, reason=LET_GO)
        gone = {one.key: uid for uid, one in mine.items() if one.key not in judged}
        if gone:
            self._store.retire_episodes(gone, now, replaced=False)

    def _show(self, key: int, uid: str, now: int, *, status: str | None, reason: str) -> None:
        self._store.lifecycle.set(
            Found("episode", key),
            uid,
            now,
            action=status_given(status),
            reason=reason,
            columns={"status": status},
        )

    def _note_failure(self, started: int, error: Exception) -> None:
        """Keep that a run failed; why it did is told to who asked for it."""
        code = error.code if isinstance(error, EngramError) else type(error).__name__
        with suppress(EngramError), self._store.writing():
            self._store.training.add(NewRun(started, self._now(), failure=code), self._agent)


def _new_insight(insight: Insight, now: int) -> _NewInsight:
    """Return an insight as it is to be kept."""
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
        summary_of=experience.sources,
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
    """Return the digest of a file, None where it is none, too large, or cannot be read."""
    try:
        return hashlib.sha256(file_content(Path(path), MAX_MODEL_BYTES)).digest()
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
