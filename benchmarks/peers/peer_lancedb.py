"""LanceDB: columns on disk, with an IVF-HNSW index over scalar-quantised vectors."""

from __future__ import annotations

from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
from protocol import Corpus, Search, main

BATCH = 50_000
FEWEST = 1000
"""Below so many rows the index is not worth building; LanceDB scans."""


class Lance:
    def build(self, store: Path, corpus: Corpus) -> None:
        database, table, count = lancedb.connect(str(store)), None, len(corpus.texts)
        for at in range(0, count, BATCH):
            vectors = np.ascontiguousarray(corpus.vectors[at : at + BATCH])
            rows = pa.table(
                {
                    "id": pa.array(range(at, at + len(vectors))),
                    "text": pa.array(corpus.texts[at : at + BATCH]),
                    "vector": pa.FixedSizeListArray.from_arrays(
                        pa.array(vectors.ravel()), vectors.shape[1]
                    ),
                }
            )
            if table is None:
                table = database.create_table("episodes", rows)
            else:
                table.add(rows)
        if table is not None and count > FEWEST:
            table.create_index(
                metric="cosine", index_type="IVF_HNSW_SQ", num_partitions=max(1, count // 100_000)
            )

    def open(self, store: Path, corpus: Corpus) -> Search:
        table = lancedb.connect(str(store)).open_table("episodes")

        def search(vector: np.ndarray, k: int) -> list[int]:
            query = table.search(vector).distance_type("cosine").limit(k).select(["id", "text"])
            if len(corpus.texts) > FEWEST:
                query = query.ef(128).nprobes(8)
            return query.to_arrow()["id"].to_pylist()

        return search


if __name__ == "__main__":
    main(Lance())
