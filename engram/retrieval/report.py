"""The explanation of a search: what was observed of every candidate, and why each one ended so."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engram.embedding import Reranker
    from engram.retrieval.search import Candidate, Search

SCHEMA_VERSION: Final = 1

_REASONS: Final = {
    "returned": "it is among the results",
    "unavailable": "it was erased during the search",
    "forgotten": "it was forgotten during the search",
    "inactive": "its status, an invalidation or its quarantine keeps it from being returned",
    "outside_rerank_candidates": "others came before it in the order before the reranker",
    "below_confidence": "the reranker is less sure of it than was asked for",
    "not_scored": "the reranker did not read it",
    "outside_top_k": "others answer better",
}
_SEMANTICS: Final = {
    "description": (
        "dense is the cosine of unit vectors, bm25 and graph grow with relevance, rrf is fused from"
        " ranks, boosted is rrf times what is known of the memory, cross_encoder is the reranker's"
        " own output for the text or its best passage, final is between 0 and 1"
    ),
    "eligibility": "eligible is about lifecycle alone; confidence is a gate of its own",
    "final_order": "final_ids is the order; a promoted memory may stand before better scores",
    "noise": "scores tell how well a text fits the query, not whether what it says is true",
    "missing_score": "a score that is absent was not observed, which is not the same as 0",
}
_SCOPE: Final = "the candidates of this one search, a bounded number; no other memory was looked at"


def explanation(
    search: Search, reranker: Reranker | None, model: str | None, seconds: float
) -> dict[str, object]:
    """Return the report of a search that is concluded.

    Args:
        search: The search.
        reranker: What reread its candidates; None where there was nothing to read.
        model: The name of the model whose vectors were compared; None without any.
        seconds: How long it took.

    Returns:
        A JSON object; the text of a memory is in it only where it might have been returned.
    """
    # What was forgotten before the search is nobody's business.
    shown = [
        (key, one)
        for key, one in search.candidates.items()
        if not (one.withheld and (one.memory is None or one.memory.standing == "forgotten"))
    ]
    rows = [_row(search, one) for _, one in shown]
    return {
        "schema_version": SCHEMA_VERSION,
        "query": {
            "original": search.question.original,
            "dense_query": search.question.text,
            "bm25_query": search.bm25_query,
            "intent": search.question.intent,
            "expanded_terms": list(search.expansions),
            "phrase_terms": list(search.question.phrases),
        },
        "settings": _settings(search, reranker, model),
        "cache": {
            "bypassed": True,
            "read": False,
            "written": False,
            "reason": "an explanation is of this very search: no kept answer is read, none is kept",
        },
        "side_effects": {"record_search": False, "dormant_evaluation": False},
        "score_semantics": {
            **_SEMANTICS,
            "model_output": "raw_logit"
            if reranker is not None and reranker.output == "raw_logit"
            else "normalized_score",
            "rank_base": 1,
        },
        "counts": _counts(search, rows),
        "candidates": rows,
        "final_ids": [one.memory.id for one in search.final if one.memory is not None],
        "latency_ms": round(seconds * 1000.0, 3),
        "scope": _SCOPE,
    }


def _settings(search: Search, reranker: Reranker | None, model: str | None) -> dict[str, object]:
    settings = search.settings
    return {
        "top_k": search.k,
        "mode": "full_context",
        "rerank": True,
        "embedding_model": model,
        "cross_encoder_model": None if reranker is None else reranker.name,
        "reranker": None
        if reranker is None
        else {"kind": reranker.kind, "reason": reranker.reason},
        "rrf_k": settings.rrf_k,
        "min_confidence": settings.min_confidence,
        "rerank_candidates": settings.rerank_candidates,
        "dense_multiplier": settings.dense_multiplier,
        "bm25_multiplier": settings.bm25_multiplier,
        "enable_query_expansion": settings.enable_query_expansion,
        "exact_match_boost": settings.exact_match_boost,
        "rerank_fusion_alpha": settings.rerank_fusion_alpha,
        "preserve_prior_candidate": settings.preserve_prior_candidate,
        "rerank_passage_fallback": settings.rerank_passage_fallback,
        "rerank_passage_floor": settings.rerank_passage_floor,
        "reference_date": None,
        "intent_weights": dict(search.question.weights),
        "forgetting_half_life_days": search.half_life,
        "deep_reranker_applied": False,
    }


def _counts(search: Search, rows: list[dict[str, object]]) -> dict[str, object]:
    candidates = search.candidates.values()
    return {
        **search.channels,
        "considered": len(rows),
        "rrf": sum("rrf" in one.scores for one in candidates),
        "candidate_budget": search.budget,
        "boosted": sum("boosted" in one.scores for one in candidates),
        "reranked": sum("cross_encoder" in one.scores for one in candidates),
        "confidence_eligible": sum(one.passed is True for one in candidates),
        "returned": len(search.final),
        "damaged_vectors": search.damaged,
        "outcomes": dict(Counter(str(row["outcome"]) for row in rows)),
    }


def _outcome(search: Search, candidate: Candidate) -> str:
    if candidate.memory is None:
        return "unavailable"
    if candidate.memory.standing != "eligible":
        return candidate.memory.standing
    if "final" in candidate.ranks:
        return "returned"
    if candidate.passed is False:
        return "below_confidence"
    if candidate.passed:
        return "outside_top_k"
    return "not_scored" if "prior" in candidate.ranks else "outside_rerank_candidates"


def _row(search: Search, candidate: Candidate) -> dict[str, object]:
    outcome = _outcome(search, candidate)
    reranked = "cross_encoder" in candidate.scores
    threshold = search.settings.min_confidence
    applied = reranked and threshold > 0
    row: dict[str, object] = {
        "memory_id": candidate.id,
        "eligible": candidate.eligible,
        "scores": dict(candidate.scores),
        "ranks": dict(candidate.ranks),
    }
    if reranked and search.settings.rerank_passage_fallback:
        row["passage"] = _passage(candidate)
    if candidate.eligible and candidate.memory is not None:
        row |= {"content": candidate.memory.content, "memory_type": candidate.memory.memory_type}
    row["confidence"] = {
        "applied": applied,
        "threshold": threshold,
        "passed": candidate.passed if applied else None,
    }
    if candidate.passed:
        row["prior_coverage"] = {"promoted": candidate.promoted}
    return row | {"outcome": outcome, "reason": _REASONS[outcome]}


def _passage(candidate: Candidate) -> dict[str, object]:
    found: dict[str, object] = {"base_raw_score": candidate.base}
    if candidate.passage is not None:
        found |= {
            "excerpt_raw_score": candidate.excerpt,
            "source_start": candidate.passage.source_start,
            "source_end": candidate.passage.source_end,
            "passage_words": candidate.passage.passage_words,
        }
        if candidate.retried:
            found["confidence_gate_retry"] = 1.0
    return found
