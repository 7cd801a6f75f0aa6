"""The last step of a recall: of the candidates that were ranked, the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram.models import SearchResult
from engram.retrieval.diversity import diversified
from engram.retrieval.reranked import reranked
from engram.storage.fact_records import statement
from engram.storage.headings import heading
from engram.times import to_micros

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.models import FactResult
    from engram.retrieval.ranking import Query, Ranking


def chosen(
    ranking: Ranking, query: Query, said: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return which candidates are the results, best first, and their scores.

    Needs no transaction. A floor of scores applies to what they are in the end, and before what is
    unlike each other is chosen, so that nothing below it takes a place.

    Args:
        ranking: Of the candidates.
        query: What was asked.
        said: What a reranker said of the first ones, float64[m]; None: there was none.

    Returns:
        Their places in the ranking, int64[k] at most, and float64[k].
    """
    blending = query.blending
    places = np.arange(len(ranking.keys))
    if said is not None:
        places, scores = reranked(ranking.scores, said, blending.rerank_weight)
        ranking = ranking.taken(places, scores)
    final = ranking.passed(query.min_score)
    if ranking.vectors is not None:
        # A reranker changed places among these alone.
        first = final[final < len(ranking.vectors)]
        vectors = ranking.vectors[places[first]]
        order = diversified(ranking.scores[first], vectors, blending.diversity)
        final = np.concatenate((first[order], final[len(first) :]))
    final = final[: query.k]
    return places[final], ranking.scores[final]


def text_of(result: SearchResult | FactResult) -> tuple[str, str]:
    """Return what a model reads of a result: what stands before its text, and the text.

    What stands before an episode is made anew of its actors and its time, as results have them:
    what was embedded is the same but for episodes that were written before there were headings.
    """
    if isinstance(result, SearchResult):
        episode = result.episode
        before = heading(episode.actors, to_micros(episode.timestamp, "timestamp"))
        return before or "", episode.content
    fact = result.fact
    return "", statement(fact.subject, fact.predicate, fact.object)
