"""Judgements: how useful episodes were found."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.storage.connection import Connection


class Judgements:
    """The judgements of a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def set(self, episode: int, score: float, at: int | None) -> None:
        """Judge an episode, in place of any judgement before.

        Args:
            episode: Its key.
            score: How useful it was found.
            at: When, in microseconds; None: an import said so.
        """
        self._connection.execute(
            "INSERT INTO judgement (episode, score, judged_at) VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET score = excluded.score, judged_at = excluded.judged_at",
            (episode, score, at),
        )
