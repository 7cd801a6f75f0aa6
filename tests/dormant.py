"""Searches that look at dormant memories, and a stand-in for what reranks them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engram.config import DormantRecall

SHADOW = DormantRecall(mode="shadow")
TEA = "the tea ceremony in Kyoto"
DAY = 86_400.0


class Reranker:
    """Gives every text the same score, or each its own; remembers what it was asked."""

    name = kind = "stand-in"
    reason = "a test needs it"

    def __init__(self, score=5.0, *, output="raw_logit", each=None):
        self.output = output
        self.score = score
        self.each = each or {}
        self.asked = []

    def scores(self, query, texts):
        self.asked.append(list(texts))
        return np.array([self.each.get(text, self.score) for text in texts], dtype=np.float64)

    def calibrated(self, raw):
        return raw if self.output == "normalized_score" else 1 / (1 + np.exp(-raw))


def search(memory, query, settings=SHADOW, *, answered=(), reranker=None):
    """Evaluate as a search does once its answer, the ids in `answered`, is made."""
    with memory._store.reading():
        keys = [memory._store.episodes.key(uid, None) for uid in answered]
    memory._evaluate_dormant(query, keys, lambda _: reranker or Reranker(), settings)


def changed(**settings):
    return replace(SHADOW, **settings)
