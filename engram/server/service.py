"""The service: methods on one store, their results in the protocol's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from engram.config.experience import LOG_LIMIT
from engram.errors import EngramError, InvalidArgument, InvalidType, NotFound
from engram.experience.tags import read_tags
from engram.experience.waiting import TRIES
from engram.presence import Presence
from engram.retrieval.fusion import Fusion
from engram.server import replies
from engram.server.failures import (
    CONFIG_READ_ONLY,
    DISPATCH,
    IMPORT_FAILED,
    IMPORT_VERSION,
    NOT_FOUND,
    Failure,
)
from engram.server.methods import One, Records, checked, converted, is_long, refused
from engram.server.migrating import Migrating, imported
from engram.server.opening import embedder_of, opened
from engram.server.refusals import failure_of
from engram.server.status import configuration, hints
from engram.storage.triplets import wire_time
from engram.times import to_micros, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from engram.server.methods import (
        Apply,
        Candidates,
        Config,
        Import,
        Insights,
        Judge,
        Log,
        NoParams,
        Params,
        Search,
        Store,
        TrainList,
        Undo,
    )
    from engram.server.settings import ServerSettings

FIRST_RECOMMENDATIONS: Final = 20
"""Those of the last run of the trainer that the status has."""

_LARGEST: Final = 2**63 - 1
_SLICE: Final = 64


class Service:
    """Carries out requests, for many threads at once.

    Args:
        settings: The settings in force.
        clock: Where "now" comes from.
        trial: Whether the embedding model is tried now, or loaded when it is first needed.

    Raises:
        Failure: The store cannot be opened as the settings say.
    """

    def __init__(
        self,
        settings: ServerSettings,
        *,
        clock: Callable[[], datetime] = utc_now,
        trial: bool = True,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._memory = opened(settings, clock, trial=trial)
        self._file = Presence(settings.store_path)
        self._migrating = Migrating(self._memory, settings)
        search = settings.search
        self._fusion = Fusion(
            rrf_k=search.rrf_k,
            vector_weight=search.vector_weight,
            sparse_weight=search.sparse_weight,
            other_project_weight=search.other_project_weight,
        )
        self._calls: dict[str, Callable[[Any], object]] = {
            "memory_store": self._store,
            "memory_search": self._search,
            "memory_judge": self._judge,
            "memory_delete": self._delete,
            "memory_status": self._status,
            "memory_config": self._config,
            "memory_export": self._export,
            "memory_import": self._import,
            "memory_consolidate_preview": self._preview,
            "memory_consolidate": self._analyse,
            "memory_consolidate_apply": self._apply,
            "memory_consolidate_log": self._log,
            "memory_consolidate_undo": self._undo,
            "memory_train_generate": self._generate,
            "memory_train_list": self._insight_list,
            "memory_train_delete": self._insight_delete,
            "memory_insights": self._insights,
            "memory_reembed": self._reembed,
            "memory_migrate_preview": self._migrating.preview,
            "memory_migrate_apply": self._migrating.apply,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, params: object) -> object:
        """Return the result of a method, made of what JSON has forms for.

        Args:
            method: One of the catalogue.
            params: As a line of JSON had it.

        Raises:
            Failure: There is none; its text names a parameter and, of what the client sent, quotes
                nothing but the id that was not found.
        """
        asked = checked(method, params)
        try:
            with self._file.required():
                return self._calls[method](asked)
        except NotFound:
            raise Failure(NOT_FOUND, f"not found: {_named(asked)}") from None
        except EngramError as error:
            raise failure_of(error) from None

    def is_long(self, method: str, params: object) -> bool:
        """Return whether a request may take long."""
        return is_long(method, params, asks=self._settings.llm.provider != "none")

    def background(self) -> None:
        """Do one bounded round of upkeep: embed waiting texts, let go of old feedback.

        Raises:
            Closed: The store's file is not there any more.
            EngramError: Texts still cannot be embedded, or the store cannot be written.
        """
        with self._file.required():
            self._memory.prune_feedback()
            self._memory.embed_waiting(_SLICE)

    def close(self) -> None:
        """Let go of the store; closing twice is harmless."""
        self._memory.close()

    def _store(self, asked: Store) -> dict[str, object]:
        return replies.stored(
            self._memory.store(
                asked.context,
                asked.action,
                asked.result,
                memory_type="decision" if asked.memory_type is None else asked.memory_type,
                tags=read_tags(asked.tags),
                project=asked.project,
                threshold=self._settings.deduplication.threshold,
            )
        )

    def _search(self, asked: Search) -> dict[str, object]:
        named = asked.memory_type
        return replies.found(
            self._memory.search(
                asked.query,
                limit=_bounded(asked.limit),
                mode=asked.mode,
                project=asked.project,
                tags=asked.tags,
                memory_types=[named] if isinstance(named, str) else named,
                fusion=self._fusion,
            )
        )

    def _judge(self, asked: Judge) -> dict[str, object]:
        judged = self._memory.judge(asked.memory_id, score=asked.score, query=asked.query)
        return {"score": judged.score, "reason": judged.reason, "degraded": judged.degraded}

    def _delete(self, asked: One) -> dict[str, object]:
        self._memory.delete(asked.id)
        return {"deleted": asked.id}

    def _status(self, asked: NoParams) -> dict[str, object]:
        status = self._memory.status()
        said: dict[str, object] = replies.plain(status)
        return said | {
            "hints": hints(status, self._settings),
            "training": replies.training(
                self._memory.training_runs(1, recommendations=FIRST_RECOMMENDATIONS)
            ),
        }

    def _config(self, asked: Config) -> dict[str, object]:
        if asked.action == "set":
            raise Failure(CONFIG_READ_ONLY, "config is read-only")
        if asked.action not in (None, "get"):
            text = "invalid config action: it is get or set"
            raise refused(text)
        try:
            stored = self._memory.model()
        except EngramError:  # the settings are known whatever became of the store
            return configuration(self._settings, None, known=False)
        return configuration(self._settings, stored)

    def _export(self, asked: NoParams) -> dict[str, object]:
        records = [replies.record(one) for one in self._memory.export()]
        return {
            "version": replies.EXPORT_VERSION,
            "memories": records,
            "exported_at": wire_time(to_micros(self._clock())),
            "count": len(records),
        }

    def _import(self, asked: Import) -> dict[str, object]:
        if asked.version != replies.EXPORT_VERSION:
            text = f"expected {replies.EXPORT_VERSION}, got {asked.version}"
            raise Failure(IMPORT_VERSION, f"import version mismatch: {text}")
        records = converted({"memories": asked.memories}, Records).memories
        experiences = [imported(record) for record in records]
        try:
            done = self._memory.import_experiences(experiences)
        except (InvalidArgument, InvalidType) as error:
            raise Failure(IMPORT_FAILED, f"import failed: {error}") from None
        return {"imported": done.imported, "skipped": done.skipped}

    def _preview(self, asked: Candidates) -> dict[str, object]:
        return replies.preview(self._memory.preview(**self._bounds(asked)))

    def _analyse(self, asked: Candidates) -> dict[str, object]:
        found: dict[str, object] = replies.plain(self._memory.analyse(**self._bounds(asked)))
        return found

    def _apply(self, asked: Apply) -> dict[str, object]:
        done: dict[str, object] = replies.plain(
            self._memory.consolidate(
                **self._bounds(asked),
                min_confidence=asked.min_confidence or 0.0,
                dry_run=bool(asked.dry_run),
            )
        )
        return done

    def _bounds(self, asked: Candidates) -> dict[str, Any]:
        configured = self._settings.consolidation
        return {
            "stale_days": configured.stale_days if asked.stale_days is None else asked.stale_days,
            "min_score": configured.min_score if asked.min_score is None else asked.min_score,
            "similarity": configured.similarity,
        }

    def _log(self, asked: Log) -> dict[str, object]:
        limit = _bounded(asked.limit)
        steps = replies.plain(self._memory.consolidation_log(LOG_LIMIT if limit is None else limit))
        return {"log": steps, "count": len(steps)}

    def _undo(self, asked: Undo) -> dict[str, object]:
        return {"run_id": asked.run_id, "undone": self._memory.undo(asked.run_id)}

    def _generate(self, asked: Params) -> dict[str, object]:
        done = self._memory.generate(
            self._settings.models_path,
            trainer=self._settings.trainer_binary,
            timeout=self._settings.trainer.trainer_timeout_secs,
        )
        return {"generated": done.generated, "messages_parsed": done.messages_parsed}

    def _insight_list(self, asked: TrainList | Insights) -> dict[str, object]:
        said = replies.insights(self._memory.insights())
        if asked.recommendations:
            limit = _bounded(asked.limit)
            most = _LARGEST if limit is None else limit
            said |= replies.recommendations(self._memory.training_runs(1, recommendations=most))
        return said

    def _insight_delete(self, asked: One) -> dict[str, object]:
        self._memory.delete_insight(asked.id)
        return {"deleted": asked.id}

    def _insights(self, asked: Insights) -> object:
        action = "list" if asked.action is None else asked.action
        if action == "list":
            return self._insight_list(asked)
        if action == "generate":
            return self._generate(asked)
        if action != "delete":
            text = "invalid insights action: it is list, delete or generate"
            raise refused(text)
        if asked.id is None:
            text = "missing field `id`"
            raise refused(text)
        return self._insight_delete(One(id=asked.id))

    def _reembed(self, asked: NoParams) -> dict[str, object]:
        """Embed what waits: what is embedded already would get the same vectors again."""
        self._embed_all()
        done = self._memory.embedded()
        model = self._memory.model()
        return {
            "total": done.total,
            "succeeded": done.total - done.waiting,
            "failed": done.waiting,
            "model": None if model is None else model.name or model.fingerprint,
        }

    def _embed_all(self) -> None:
        """Embed what waits, but for texts that the embedder refuses.

        Raises:
            EngramError: It cannot be used, or the store cannot be written.
        """
        untried: int | None = None
        while untried is None or untried > 0:
            try:
                if not self._memory.embed_waiting(_SLICE):
                    return
            except Exception as error:
                # An embedder raises anything, and arguments that are refused are its own here.
                if isinstance(error, EngramError) and failure_of(error).code != DISPATCH:
                    raise
                # Either it embeds nothing any more, or just not the texts that it was given.
                embedder_of(self._settings.embedding, self._memory.model())
                untried = self._memory.status().waiting if untried is None else untried
                untried -= TRIES


def _bounded(limit: int | None) -> int | None:
    """Return how many are asked for; more than any store has are all."""
    return None if limit is None else min(limit, _LARGEST)


def _named(asked: Params) -> str:
    """Return what was not there, by the id that the client gave."""
    for member in ("id", "memory_id"):
        if (given := getattr(asked, member, None)) is not None:
            return f"memory {given}"
    return f"run {getattr(asked, 'run_id', '')}"
