"""Chroma: an HNSW graph in memory and on disk, with documents in SQLite."""

from __future__ import annotations

from pathlib import Path

import chromadb
import numpy as np
from chromadb.config import Settings
from protocol import Corpus, Search, main

BATCH = 5000


class Chroma:
    def build(self, store: Path, corpus: Corpus) -> None:
        space = {
            "hnsw:space": "cosine",
            "hnsw:construction_ef": 100,
            "hnsw:search_ef": 100,
            "hnsw:M": 16,
        }
        collection = self._client(store).create_collection("episodes", metadata=space)
        for at in range(0, len(corpus.texts), BATCH):
            vectors = np.ascontiguousarray(corpus.vectors[at : at + BATCH])
            collection.add(
                ids=[str(i) for i in range(at, at + len(vectors))],
                embeddings=vectors,
                documents=corpus.texts[at : at + BATCH],
            )

    def open(self, store: Path, corpus: Corpus) -> Search:
        collection = self._client(store).get_collection("episodes")

        def search(vector: np.ndarray, k: int) -> list[int]:
            found = collection.query(
                query_embeddings=[vector], n_results=k, include=["documents", "distances"]
            )
            return [int(name) for name in found["ids"][0]]

        return search

    @staticmethod
    def _client(store: Path) -> chromadb.ClientAPI:
        return chromadb.PersistentClient(str(store), Settings(anonymized_telemetry=False))


if __name__ == "__main__":
    main(Chroma())
