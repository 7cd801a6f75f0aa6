"""engram itself, measured like its peers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from protocol import Corpus, Search, main

from engram import Engram, ObserveInput
from engram.bench.precomputed import PrecomputedEmbedder

BATCH = 500


def embedder(corpus: Corpus) -> PrecomputedEmbedder:
    kind = ("decisions", "eight", "fifteen")
    questions = [question for name in kind for question in corpus.questions[name]]
    return PrecomputedEmbedder("peers", None, corpus.asked.shape[1], questions, corpus.asked)


class Ours:
    """Vector search through `recall`, which fetches whole episodes and notes what was recalled."""

    def build(self, store: Path, corpus: Corpus) -> None:
        vectors = embedder(corpus)
        with Engram(store, embedder=vectors) as memory:
            for at in range(0, len(corpus.texts), BATCH):
                vectors.hand_out(np.asarray(corpus.vectors[at : at + BATCH]))
                memory.observe_many(
                    [
                        ObserveInput(text, metadata={"at": at + offset})
                        for offset, text in enumerate(corpus.texts[at : at + BATCH])
                    ]
                )
            memory.maintain()

    def open(self, store: Path, corpus: Corpus) -> Search:
        memory = Engram(store, embedder=embedder(corpus))
        asked = {vector.tobytes(): text for text, vector in memory_questions(corpus)}

        def search(vector: np.ndarray, k: int) -> list[int]:
            hits = memory.recall(asked[vector.tobytes()], k, mode="cosine")
            return [hit.episode.metadata["at"] for hit in hits]

        return search


def memory_questions(corpus: Corpus) -> list[tuple[str, np.ndarray]]:
    kinds = ("decisions", "eight", "fifteen")
    texts = [text for kind in kinds for text in corpus.questions[kind]]
    return list(zip(texts, corpus.asked, strict=True))


if __name__ == "__main__":
    main(Ours())
