"""hnswlib: an HNSW graph over float32 vectors; it stores no texts."""

from __future__ import annotations

from pathlib import Path

import hnswlib
import numpy as np
from protocol import Corpus, Search, main


class Hnswlib:
    def build(self, store: Path, corpus: Corpus) -> None:
        index = hnswlib.Index("ip", corpus.vectors.shape[1])
        index.init_index(len(corpus.vectors), ef_construction=100, M=16, random_seed=0)
        index.add_items(np.ascontiguousarray(corpus.vectors), num_threads=1)
        index.save_index(str(store))

    def open(self, store: Path, corpus: Corpus) -> Search:
        index = hnswlib.Index("ip", corpus.vectors.shape[1])
        index.load_index(str(store))
        index.set_ef(128)
        return lambda vector, k: index.knn_query(vector, k, num_threads=1)[0][0].tolist()


if __name__ == "__main__":
    main(Hnswlib())
