"""A client for Python programs that use a running server.

    with SocketClient("/home/ana/atlas/.engram/engram.sock") as client:
        client.memory_search("auth middleware")["memories"]

It imports nothing of the engine: the server may be that of another installation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engram.server.connecting import PATIENCE, Connecting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engram.server import wire

__all__ = ["PATIENCE", "SocketClient"]


class SocketClient(Connecting):
    """Asks a server; connects when it is needed, and anew after a connection was lost.

    The methods are those of the protocol, by its names; `call` takes any. None leaves a parameter
    to the server. What can go wrong is what `call` says. Safe to share between threads: each
    request that is under way has a connection of its own. Nothing is ever sent twice.

    Args:
        path: The server's socket.
        timeout: Seconds that a request may take, at most a day. None is `PATIENCE`, which is more
            than the server gives a request unless its settings say so; and no limit but the
            server's for methods whose work grows with the store, or waits for a language model or
            the trainer.

    Raises:
        InvalidArgument, InvalidType: `timeout` is no such number.
    """

    def memory_store(
        self,
        context: str,
        action: str,
        result: str,
        *,
        memory_type: str | None = None,
        tags: Sequence[str] | None = None,
        project: str | None = None,
    ) -> wire.Stored:
        """Keep a memory, unless one that says the same is there."""
        stored: wire.Stored = self.call(
            "memory_store",
            context=context,
            action=action,
            result=result,
            memory_type=memory_type,
            tags=_listed(tags),
            project=project,
        )
        return stored

    def memory_search(
        self,
        query: str,
        *,
        limit: int | None = None,
        mode: str | None = None,
        project: str | None = None,
        tags: Sequence[str] | None = None,
        memory_type: str | Sequence[str] | None = None,
    ) -> wire.Found:
        """Find memories by meaning and by words."""
        found: wire.Found = self.call(
            "memory_search",
            query=query,
            limit=limit,
            mode=mode,
            project=project,
            tags=_listed(tags),
            memory_type=memory_type if isinstance(memory_type, str) else _listed(memory_type),
        )
        return found

    def memory_judge(
        self, memory_id: str, *, score: float | None = None, query: str | None = None
    ) -> wire.Judgement:
        """Say how useful a memory was; without a score it is judged."""
        params = {"memory_id": memory_id, "score": score, "query": query}
        # Without a score a language model may be asked.
        judged: wire.Judgement = self.request("memory_judge", params, long=score is None)
        return judged

    def memory_delete(self, memory_id: str) -> wire.Deleted:
        """Erase a memory."""
        deleted: wire.Deleted = self.call("memory_delete", id=memory_id)
        return deleted

    def memory_status(self) -> wire.Status:
        """Return how much there is, and what should be done."""
        status: wire.Status = self.call("memory_status")
        return status

    def memory_config(self) -> dict[str, Any]:
        """Return the settings in force, by section, without keys."""
        config: dict[str, Any] = self.call("memory_config", action="get")
        return config

    def memory_export(self) -> wire.Export:
        """Return every memory."""
        export: wire.Export = self._long("memory_export")
        return export

    def memory_import(self, export: Mapping[str, Any]) -> wire.Imported:
        """Bring in what `memory_export` returned, all or none; what is there already is skipped."""
        imported: wire.Imported = self.request("memory_import", export, long=True)
        return imported

    def memory_consolidate_preview(
        self, *, stale_days: int | None = None, min_score: float | None = None
    ) -> wire.Preview:
        """Find duplicates, and what is stale or broken."""
        preview: wire.Preview = self._long(
            "memory_consolidate_preview", stale_days=stale_days, min_score=min_score
        )
        return preview

    def memory_consolidate(
        self, *, stale_days: int | None = None, min_score: float | None = None
    ) -> wire.Analysis:
        """Return what should become of them; nothing is changed."""
        analysis: wire.Analysis = self._long(
            "memory_consolidate", stale_days=stale_days, min_score=min_score
        )
        return analysis

    def memory_consolidate_apply(
        self,
        *,
        stale_days: int | None = None,
        min_score: float | None = None,
        min_confidence: float | None = None,
        dry_run: bool | None = None,
    ) -> wire.Applied:
        """Analyse anew, and do what comes of it."""
        applied: wire.Applied = self._long(
            "memory_consolidate_apply",
            stale_days=stale_days,
            min_score=min_score,
            min_confidence=min_confidence,
            dry_run=dry_run,
        )
        return applied

    def memory_consolidate_log(self, limit: int | None = None) -> wire.Log:
        """Return what consolidations did, newest first."""
        log: wire.Log = self.call("memory_consolidate_log", limit=limit)
        return log

    def memory_consolidate_undo(self, run_id: str) -> wire.Undone:
        """Take back what a consolidation did."""
        undone: wire.Undone = self._long("memory_consolidate_undo", run_id=run_id)
        return undone

    def memory_train_generate(self) -> wire.Generated:
        """Run the trainer and keep what it learned."""
        generated: wire.Generated = self._long("memory_train_generate")
        return generated

    def memory_train_list(self) -> wire.Insights:
        """Return the insights of the trainer."""
        insights: wire.Insights = self.call("memory_train_list")
        return insights

    def memory_train_delete(self, memory_id: str) -> wire.Deleted:
        """Erase an insight."""
        deleted: wire.Deleted = self.call("memory_train_delete", id=memory_id)
        return deleted

    def memory_insights(self, action: str | None = None, memory_id: str | None = None) -> Any:
        """List, delete or generate insights, as the three methods for each do."""
        return self._long("memory_insights", action=action, id=memory_id)

    def memory_reembed(self) -> wire.Reembedded:
        """Embed the texts that still wait for it."""
        done: wire.Reembedded = self._long("memory_reembed")
        return done

    def memory_migrate_preview(self, *, every_project: bool = False) -> wire.Migrated:
        """Count what `memory_migrate_apply` would bring in."""
        migrated: wire.Migrated = self._long("memory_migrate_preview", all=every_project)
        return migrated

    def memory_migrate_apply(
        self, *, every_project: bool = False, dry_run: bool = False
    ) -> wire.Migrated:
        """Bring in memories from the reference server's database."""
        migrated: wire.Migrated = self._long(
            "memory_migrate_apply", all=every_project, dry_run=dry_run
        )
        return migrated

    def _long(self, method: str, **params: object) -> Any:
        return self.request(method, params, long=True)


def _listed(tags: Sequence[str] | None) -> list[str] | None:
    return None if tags is None else list(tags)
