"""What can be wrong with one row of a file, as SQL."""

from __future__ import annotations

ROW = {
    "undecodable content": "UPDATE episode SET content = CAST(x'ff41' AS TEXT) WHERE id = 2",
    "undecodable layer": "UPDATE episode SET layer = CAST(x'ff41' AS TEXT) WHERE id = 2",
    "undecodable type": "UPDATE episode SET memory_type = CAST(x'ff41' AS TEXT) WHERE id = 2",
    "undecodable id": "UPDATE episode SET uid = CAST(x'ff41' AS TEXT) WHERE id = 2",
    "a number as id": "UPDATE episode SET uid = 7 WHERE id = 2",
    "unknown provenance": "UPDATE episode SET provenance = 'zzz' WHERE id = 2",
    "undecodable provenance": "UPDATE episode SET provenance = CAST(x'ff' AS TEXT) WHERE id = 2",
    "metadata cut off": "UPDATE episode SET metadata = '{' WHERE id = 2",
    "metadata of another kind": "UPDATE episode SET metadata = '[]' WHERE id = 2",
    "metadata without text": "UPDATE episode SET metadata = '' WHERE id = 2",
}
"""Damage to the second episode."""


def damage(memory, sql: str) -> None:
    """Do it as the wear of a disk would, past the rules of the schema."""
    connection = memory._store._connection
    connection.execute("PRAGMA ignore_check_constraints = 1")
    connection.execute(sql)
    connection.execute("PRAGMA ignore_check_constraints = 0")
