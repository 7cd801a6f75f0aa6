"""Bringing in memories from the database in which the reference server kept all projects."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from engram.errors import EngramError, InvalidArgument, InvalidType
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
        """Bring in the memories of this project, or all.

        Those that are there are skipped, and so are damaged ones.

        Raises:
            Failure: There is no such database, or it or the store cannot be read or written.
        """
        return self._migrated(asked, dry_run=bool(asked.dry_run))

    def _migrated(self, asked: Migrate, *, dry_run: bool) -> dict[str, object]:
        if not self._source.is_file():
            text = f"migration source not found: {self._source}"
            raise Failure(MIGRATION_SOURCE, text)
        try:
            found = read_legacy_memories(self._source, None if asked.all else self._names)
            records = [one for one in map(_record, found.rows) if one is not None]
            done = self._memory.import_experiences(records, skip_refused=True, dry_run=dry_run)
        except EngramError as error:
            raise Failure(MIGRATION_FAILED, f"migration failed: {error}") from None
        matched = len(found.rows) + found.damaged
        without = 0 if asked.all else found.without_project
        return {
            "read": found.read,
            "matched": matched,
            "migrated": 0 if dry_run else done.imported,
            "skipped_duplicate": done.skipped,
            "skipped_damaged": matched - done.imported - done.skipped,
            "skipped_null_project": without,
            "skipped_other_project": found.read - matched - without,
            "dry_run": dry_run,
            "all": bool(asked.all),
            "project_hint": self._hint,
        }


def imported(record: Record) -> ImportedExperience:
    """Return a record of an import as the engine takes it.

    Raises:
        InvalidArgument, InvalidType: Its tags have none of the forms that tags may have.
    """
    members: dict[str, Any] = {name: getattr(record, name) for name in record.__struct_fields__}
    return ImportedExperience(**members | {"tags": read_tags(record.tags)})


def _record(row: dict[str, Any]) -> ImportedExperience | None:
    """Return a row as the engine takes it, None where it is damaged.

    Databases of old versions lack columns, and a score may be no finite number.
    """
    given = {name: value for name, value in row.items() if value is not None}
    created = given.get("created_at", "")
    complete = {"score": 0.0, "used_count": 0, "created_at": created, "updated_at": created} | given
    if complete["score"] in (math.inf, -math.inf):
        complete["score"] = 0.0
    try:
        return imported(converted(complete, Record))
    except (Failure, InvalidArgument, InvalidType):
        return None
