"""The service: operations on one store, their results in the contract's words."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Self

from engram._version import __version__
from engram.api import results
from engram.api.frames import MAX_REQUEST_BYTES
from engram.api.operations import CATALOGUE, catalogue
from engram.api.searching import Searching
from engram.ledger import Ledger
from engram.ledger.projects import EMPTY
from engram.paths import canonical
from engram.times import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from engram.api.operations import (
        Arguments,
        DormantFeedback,
        DormantInspect,
        DormantReview,
        EvidenceGet,
        EvidenceList,
        EvidencePut,
        NoArguments,
        Recall,
        SessionCheckpoint,
        SessionResume,
    )
    from engram.config import Loaded, Settings

PROTOCOL: Final = "engram-jsonl"
VERSION: Final = 1
"""Of the framing: a client that knows this number knows how to send and receive lines."""

_MEGABYTE = 1024 * 1024
_SCOPE = "This process and the settings it started with; others may use the same store."


class Service:
    """Carries out requests, one after the other.

    Args:
        loaded: The settings in force.
        key: Passphrase of an encrypted store.
        clock: Where "now" comes from.
    """

    def __init__(
        self, loaded: Loaded, *, key: str | None = None, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._loaded = loaded
        self._started = clock().timestamp()
        self._ledger = Ledger(_file(loaded.settings), key=key, clock=clock)
        self._searching = Searching(loaded.settings, self._ledger, key, clock)
        self._dormant = loaded.settings.dormant_recall
        self._calls: dict[str, Callable[[Any], object]] = {
            "operations": self._operations,
            "status": self._status,
            "config_show": self._config_show,
            "recall": self._recall,
            "search": self._searching.search,
            "search_explain": self._searching.explain,
            "dormant_review": self._dormant_review,
            "dormant_inspect": self._dormant_inspect,
            "dormant_feedback": self._dormant_feedback,
            "session_resume": self._session_resume,
            "session_checkpoint": self._session_checkpoint,
            "evidence_put": self._evidence_put,
            "evidence_get": self._evidence_get,
            "evidence_list": self._evidence_list,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._searching.close()
        self._ledger.close()

    def call(self, operation: str, arguments: Arguments) -> object:
        """Return the result of an operation, made of what JSON has forms for.

        Args:
            operation: One of the catalogue.
            arguments: Of the type that the catalogue names.

        Raises:
            InvalidArgument, InvalidType: A value is refused; the store was not looked at.
            NotFound: What an argument names is not there.
            EngramError: The store or a model cannot be used.
        """
        return self._calls[CATALOGUE[operation].alias_for or operation](arguments)

    def _operations(self, arguments: NoArguments) -> dict[str, object]:
        return {
            "protocol": PROTOCOL,
            "version": VERSION,
            "engram_version": __version__,
            "max_request_bytes": MAX_REQUEST_BYTES,
            "operations": catalogue(),
        }

    def _status(self, arguments: NoArguments) -> dict[str, object]:
        initialized = not self._ledger.uninitialized()
        totals = self._ledger.totals() if initialized else EMPTY
        return {
            "initialized": initialized,
            "memories": {**totals.layers, "total": sum(totals.layers.values())},
            "evidence": totals.evidence,
            "entities": totals.entities,
            "relationships": totals.relationships,
            "db_size_mb": round(totals.db_size / _MEGABYTE, 2),
            "protocol": PROTOCOL,
            "version": VERSION,
            "engram_version": __version__,
            "pid": os.getpid(),
            "started_at": self._started,
            "storage_backend": self._loaded.settings.backend,
            "dormant_mode": self._dormant.mode,
            "automatic_capture": False,
            "connection_scope": _SCOPE,
        }

    def _config_show(self, arguments: NoArguments) -> dict[str, object]:
        return {"version": __version__, **self._loaded.report()}

    def _dormant_review(self, arguments: DormantReview) -> list[dict[str, object]]:
        events = self._ledger.review_dormant(arguments.limit, settings=self._dormant)
        return [asdict(event) for event in events]

    def _dormant_inspect(self, arguments: DormantInspect) -> dict[str, object]:
        return asdict(self._ledger.inspect_dormant(arguments.event_id, settings=self._dormant))

    def _dormant_feedback(self, arguments: DormantFeedback) -> dict[str, object]:
        event, category = arguments.event_id, arguments.category
        self._ledger.judge_dormant(event, category, settings=self._dormant)
        return {"event_id": event, "feedback": category}

    def _recall(self, arguments: Recall) -> dict[str, object]:
        found = self._ledger.context(arguments.project_id, limit=arguments.limit)
        return results.context(found)

    def _session_resume(self, arguments: SessionResume) -> dict[str, object]:
        found = self._ledger.context(
            arguments.project_id, task=arguments.task, limit=arguments.limit
        )
        return results.context(found)

    def _session_checkpoint(self, arguments: SessionCheckpoint) -> dict[str, object]:
        if arguments.action == "clear":
            return self._clear(arguments)
        saved = self._ledger.save_checkpoint(
            arguments.project_id,
            arguments.task,
            arguments.summary,
            decisions=arguments.decisions,
            next_steps=arguments.next_steps,
            blockers=arguments.blockers,
        )
        return {
            "status": "saved",
            "task": saved.task,
            "project_path": saved.project_path,
            "memory_reinforcement": False,
        }

    def _clear(self, arguments: SessionCheckpoint) -> dict[str, object]:
        project = canonical(arguments.project_id)
        deleted = self._ledger.clear_checkpoint(project, arguments.task)
        return {
            "status": "cleared",
            "task": arguments.task.strip(),
            "project_path": project,
            "deleted": deleted,
        }

    def _evidence_put(self, arguments: EvidencePut) -> dict[str, object]:
        return results.receipt(
            self._ledger.put_evidence(
                arguments.project_id,
                session_id=arguments.session_id,
                assumption_id=arguments.assumption_id,
                evidence_id=arguments.evidence_id,
                outcome=arguments.outcome,
                observed_at=arguments.observed_at,
                expires_at=arguments.expires_at,
                observation=arguments.observation,
                provenance=arguments.provenance,
                source_refs=arguments.source_refs,
            )
        )

    def _evidence_get(self, arguments: EvidenceGet) -> dict[str, object]:
        return results.evidence(self._ledger.get_evidence(arguments.project_id, arguments.id))

    def _evidence_list(self, arguments: EvidenceList) -> list[dict[str, object]]:
        found = self._ledger.list_evidence(
            arguments.project_id,
            session_id=arguments.session_id,
            assumption_id=arguments.assumption_id,
            limit=arguments.limit,
        )
        return [results.evidence(view) for view in found]


def _file(settings: Settings) -> str:
    """Return the path of the store; one that no file can have where it is in another database."""
    return settings.db_path if settings.backend == "sqlite" else f"{os.devnull}/{settings.backend}"
