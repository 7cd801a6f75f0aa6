"""Embedding models: whose vectors the store holds, and whose it is about to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from engram.models import StoredModel

if TYPE_CHECKING:
    from engram.storage.connection import Connection

    Role = Literal["current", "next"]


class EmbeddingModels:
    """The models of a store; every method runs in the caller's transaction.

    The current model is the one that is searched and written. While the store is embedded anew,
    the next one's vectors lie beside the current one's and nobody looks at them. A model without a
    role was current once, or was given up.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def current(self) -> StoredModel | None:
        """Return the model that is searched, None before the first write."""
        return self._in_role("current")

    def next(self) -> StoredModel | None:
        """Return the model that is being written beside it, None when there is none."""
        return self._in_role("next")

    def _in_role(self, role: Role) -> StoredModel | None:
        row = self._connection.execute(
            "SELECT id, fingerprint, name, dim FROM model WHERE role = ?", (role,)
        ).fetchone()
        return StoredModel(*row) if row else None

    def take(self, role: Role, fingerprint: str, name: str | None, dim: int) -> StoredModel:
        """Give a model, known or new, a role; the one that had it loses it."""
        execute = self._connection.execute
        execute(
            "UPDATE model SET role = NULL WHERE role = ? OR fingerprint = ?", (role, fingerprint)
        )
        execute(
            "INSERT INTO model (fingerprint, name, dim, role) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (fingerprint) DO UPDATE SET name = excluded.name, role = excluded.role",
            (fingerprint, name, dim, role),
        )
        key: int = execute("SELECT id FROM model WHERE role = ?", (role,)).get
        return StoredModel(key, fingerprint, name, dim)

    def give_up(self) -> None:
        """Let the next model lose its role."""
        self._connection.execute("UPDATE model SET role = NULL WHERE role = 'next'")
