"""sqlite-vec: an exact scan inside SQLite."""

from __future__ import annotations

from pathlib import Path

import apsw
import sqlite_vec
from protocol import Corpus, Search, main

BATCH = 5000


class SqliteVec:
    def build(self, store: Path, corpus: Corpus) -> None:
        connection = self._connection(store)
        dim = corpus.vectors.shape[1]
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "normal")
        connection.execute(
            f"CREATE VIRTUAL TABLE v USING vec0(e float[{dim}] distance_metric=cosine, +text text)"
        )
        for at in range(0, len(corpus.texts), BATCH):
            rows = zip(corpus.vectors[at : at + BATCH], corpus.texts[at : at + BATCH], strict=True)
            with connection:
                connection.executemany(
                    "INSERT INTO v (rowid, e, text) VALUES (?, ?, ?)",
                    ((at + i + 1, vector.tobytes(), text) for i, (vector, text) in enumerate(rows)),
                )
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.close()

    def open(self, store: Path, corpus: Corpus) -> Search:
        connection = self._connection(store)
        ask = "SELECT rowid, text FROM v WHERE e MATCH ? AND k = ? ORDER BY distance"
        return lambda vector, k: [
            row[0] - 1 for row in connection.execute(ask, (vector.tobytes(), k))
        ]

    @staticmethod
    def _connection(store: Path) -> apsw.Connection:
        connection = apsw.Connection(str(store))
        connection.enable_load_extension(True)  # noqa: FBT003
        connection.load_extension(sqlite_vec.loadable_path())
        return connection


if __name__ == "__main__":
    main(SqliteVec())
