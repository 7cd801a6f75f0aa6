"""Bringing in memories from the database in which the reference server kept all projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engram.errors import EngramError, NotFound
from engram.experience import ImportedExperience
from engram.experience.tags import read_tags
from engram.server.failures import MIGRATION_FAILED, MIGRATION_SOURCE, Failure
from engram.server.methods import Record, converted
from engram.storage.legacy_memories import read_legacy_memories

if TYPE_CHECKING:
    from engram.experience import ExperienceMemory
    from engram.server.methods import Migrate
    from engram.server.settings import ServerSettings


class Migrating:
    """The methods about that database.

    Args:
        memory: The store that memories come into.
        settings: Where the database is, and which project this is.
    """

    def __init__(self, memory: ExperienceMemory, settings: ServerSettings) -> None:
        self._memory = memory
        self._source = settings.legacy_path
        self._names = {str(settings.root), settings.root.name}
        self._hint = settings.root.name

    def preview(self, asked: Migrate) -> dict[str, object]:
        """Count what `apply` would do."""
        return self._migrated(asked, dry_run=True)

    def apply(self, asked: Migrate) -> dict[str, object]:
        """Bring in the memories of this project, or all; those that are there are skipped.

        Raises:
            Failure: There is no such database, or a memory of it cannot be kept: then none is.
        """
        return self._migrated(asked, dry_run=bool(asked.dry_run))

    def _migrated(self, asked: Migrate, *, dry_run: bool) -> dict[str, object]:
        if not self._source.is_file():
            text = f"migration source not found: {self._source}"
            raise Failure(MIGRATION_SOURCE, text)
        try:
            rows = read_legacy_memories(self._source)
            wanted = [row for row in rows if asked.all or row.get("project") in self._names]
            new = [row for row in wanted if not self._is_there(row["id"])]
            done = 0 if dry_run else self._import(new)
        except EngramError as error:
            raise Failure(MIGRATION_FAILED, f"migration failed: {error}") from None
        without = 0 if asked.all else sum(row.get("project") is None for row in rows)
        return {
            "read": len(rows),
            "matched": len(wanted),
            "migrated": done,
            "skipped_duplicate": len(wanted) - len(new),
            "skipped_null_project": without,
            "skipped_other_project": len(rows) - len(wanted) - without,
            "dry_run": dry_run,
            "all": bool(asked.all),
            "project_hint": self._hint,
        }

    def _import(self, rows: list[dict[str, Any]]) -> int:
        experiences = []
        for number, row in enumerate(rows, 1):
            try:
                experiences.append(imported(converted(_complete(row), Record)))
            except Failure:
                text = f"migration failed: number {number} of the new memories is damaged"
                raise Failure(MIGRATION_FAILED, text) from None
        return self._memory.import_experiences(experiences).imported

    def _is_there(self, memory_id: str) -> bool:
        try:
            self._memory.get(memory_id)
        except NotFound:
            return False
        return True


def imported(record: Record) -> ImportedExperience:
    """Return a record of an import as the engine takes it.

    Raises:
        InvalidArgument, InvalidType: Its tags have none of the forms that tags may have.
    """
    members: dict[str, Any] = {name: getattr(record, name) for name in record.__struct_fields__}
    return ImportedExperience(**members | {"tags": read_tags(record.tags)})


def _complete(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with what databases of old versions, or damaged rows, have no value for."""
    given = {name: value for name, value in row.items() if value is not None}
    created = given.get("created_at", "")
    defaults = {"score": 0.0, "used_count": 0, "created_at": created, "updated_at": created}
    return defaults | given
