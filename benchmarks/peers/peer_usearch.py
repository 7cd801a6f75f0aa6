"""usearch: an HNSW graph over float16 vectors; it stores no texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from protocol import Corpus, Search, main
from usearch.index import Index


class Usearch:
    def build(self, store: Path, corpus: Corpus) -> None:
        index = self._index(corpus)
        index.add(np.arange(len(corpus.vectors)), np.ascontiguousarray(corpus.vectors), threads=1)
        index.save(str(store))

    def open(self, store: Path, corpus: Corpus) -> Search:
        index = self._index(corpus)
        index.load(str(store))
        return lambda vector, k: index.search(vector, k, threads=1).keys.tolist()

    @staticmethod
    def _index(corpus: Corpus) -> Index:
        dim = corpus.vectors.shape[1]
        return Index(ndim=dim, metric="cos", dtype="f16", expansion_add=128, expansion_search=128)


if __name__ == "__main__":
    main(Usearch())
