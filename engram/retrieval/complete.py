"""The complete blend: both signals of every candidate, and what conversations add to the words.

A score is

    meaning * cos / max cos + words * ((1 - conversation) * w + conversation * v / max v)

times `assistant` for an assistant's turn, times 1 + named * the part of a name, times
1 + dates * nearness, all divided by the largest.
`w` is what the candidate's own words score over the largest such score, and for a turn that answers
a question `answers` times the question's as well. A word of the query that a text lacks counts as
often as another one is near to it, `near_words` times; see `engram.retrieval.near_words`. `v` is
what the words of the whole conversation score: of each of the query's words, how often all
candidates of the conversation together have it. What is in no conversation keeps `w` for its whole
share of the words.

Sums over words are made word by word, for all candidates alike: what a matrix product rounds
depends on the place of a row, and equal candidates would differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engram.index import K1

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index import WordWeights
    from engram.retrieval.blending import Blending
    from engram.storage import TurnColumns


class Signals(NamedTuple):
    """What is known of candidates, everything but `words` in step with them.

    Attributes:
        similarities: float64[n], the cosine of each, at least 0.
        words: What the words of n + m episodes weigh: the candidates, then questions that some of
            them answer.
        near: float64[n + m, t], 0 to 1: how near to each word of the query they have another one;
            None where no word is near, or that does not count.
        questions: int64[n], the row of `words` that has the question each answers, -1: none.
        turns: What conversations say of them.
        named: float64[n], 0 to 1: how much of the name of one who took part the query has; None
            where that does not count.
        nearness: float64[n], 0 to 1: how near in time to what the query says; None where it says
            nothing of time.
    """

    similarities: NDArray[np.float64]
    words: WordWeights
    near: NDArray[np.float64] | None
    questions: NDArray[np.int64]
    turns: TurnColumns
    named: NDArray[np.float64] | None
    nearness: NDArray[np.float64] | None


def complete(signals: Signals, blending: Blending, text_share: float) -> NDArray[np.float64]:
    """Return the score of each candidate, float64[n], the largest 1 unless all are 0.

    What does not come from the words fades with their share below a half: of none of it is anything
    left where meaning alone counts.

    Args:
        signals: What is known of them.
        blending: What of it counts how much.
        text_share: The share of the words, 0 to 1.
    """
    scores = (1.0 - text_share) * scaled(signals.similarities)
    scores += text_share * _by_words(signals, blending)
    strength = min(1.0, 2.0 * text_share)
    scores[signals.turns.assistant] *= 1.0 - strength * (1.0 - blending.assistant)
    if signals.named is not None:
        scores *= 1.0 + strength * blending.named * signals.named
    if signals.nearness is not None:
        scores *= 1.0 + strength * blending.dates * signals.nearness
    return scaled(scores)


def scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values of at least 0 divided by the largest of them; zeros stay."""
    largest = values.max(initial=0.0)
    return values / largest if largest > 0.0 else values


def _by_words(signals: Signals, blending: Blending) -> NDArray[np.float64]:
    """Return what the words of each candidate and around it count, float64[n]."""
    count, words = len(signals.similarities), signals.words
    if signals.near is not None:
        f = words.frequencies
        words = words._replace(frequencies=np.where(f > 0, f, blending.near_words * signals.near))
    each = scaled(words.scores())
    own = each[:count].copy()
    answering = np.flatnonzero(signals.questions >= 0)
    own[answering] += blending.answers * each[signals.questions[answering]]
    members = np.flatnonzero(signals.turns.conversation)
    if blending.conversation and len(members):
        of = signals.turns.conversation[members]
        whole = scaled(_conversations(words, members, of))
        own[members] += blending.conversation * (whole - own[members])
    return own


def _conversations(
    words: WordWeights, members: NDArray[np.int64], conversations: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return for each member what the words of its conversation's members score, float64[m].

    By BM25 with b = 0: dividing by the length of a conversation, in all its turns or in the
    candidates among them, moved no measure beyond noise.
    """
    order = np.argsort(conversations, kind="stable")
    begins = np.flatnonzero(np.diff(conversations[order], prepend=0))
    found = np.add.reduceat(words.frequencies[members[order]].astype(np.float64), begins, axis=0)
    scores = np.zeros(len(begins))
    for rarity, f in zip(words.rarity, found.T, strict=True):
        scores += rarity * (f * (K1 + 1.0) / (f + K1))
    each = np.empty(len(members))
    each[order] = np.repeat(scores, np.diff(begins, append=len(members)))
    return each
