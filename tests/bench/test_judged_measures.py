"""What a ranking is worth: by hand, by plain twins, and by what must always hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.bench.judged.abstention import auroc
from engram.bench.judged.measures import (
    CUTS,
    DOCUMENT_MEASURES,
    MEASURES,
    document_measures,
    ranking_measures,
)

IDS = [f"t{number}" for number in range(80)]
rankings = st.permutations(IDS).map(lambda ids: ids[:50])
evidence = st.sets(st.sampled_from(IDS), min_size=1, max_size=8)


def of_ranking(ranked, gold):
    return dict(zip(MEASURES, ranking_measures(ranked, gold), strict=True))


def of_documents(ranked, grades):
    return dict(zip(DOCUMENT_MEASURES, document_measures(ranked, grades), strict=True))


def test_by_hand():
    values = of_ranking(["a", "x", "b", "y", "z", "c"], ["a", "b", "c", "d"])
    assert [values[f"recall_any@{k}"] for k in CUTS] == [1, 1, 1, 1]
    assert [values[f"recall_all@{k}"] for k in CUTS] == [0, 0, 0, 0]
    assert [values[f"recall@{k}"] for k in CUTS] == [0.25, 0.5, 0.75, 0.75]
    ideal = 1 + 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert values["ndcg@1"] == 1
    assert values["ndcg@5"] == pytest.approx((1 + 1 / math.log2(3)) / ideal)
    assert values["ndcg@10"] == pytest.approx((1 + 1 / math.log2(3) + 1 / math.log2(6)) / ideal)
    assert values["mrr"] == 1


def test_the_second_rank_counts_in_full_as_in_the_official_script():
    assert of_ranking(["x", "a"], ["a"])["ndcg@5"] == 1
    assert of_ranking(["x", "y", "a"], ["a"])["ndcg@5"] == pytest.approx(1 / math.log2(3))


def test_nothing_found():
    assert set(ranking_measures(["x", "y"], ["a"])) == {0.0}
    assert set(ranking_measures([], ["a"])) == {0.0}


def test_what_comes_again_is_counted_where_it_came_first():
    assert of_ranking(["x", "x", "x", "x", "x", "a"], ["a"])["mrr"] == 0.5
    assert of_ranking(["a", "a", "b"], ["a", "b"])["recall_all@5"] == 1


def test_what_is_below_the_fiftieth_rank_is_not_found():
    values = of_ranking([*IDS[:50], "a"], ["a"])
    assert (values["mrr"], values["recall_any@50"]) == (0, 0)
    assert of_ranking([*IDS[:49], "a"], ["a"])["mrr"] == 1 / 50


@given(rankings, evidence)
def test_any_is_no_less_than_the_share_and_the_share_no_less_than_all(ranked, gold):
    values = of_ranking(ranked, gold)
    for k in CUTS:
        assert 1 >= values[f"recall_any@{k}"] >= values[f"recall@{k}"]
        assert values[f"recall@{k}"] >= values[f"recall_all@{k}"] >= 0
        assert -1e-12 <= values[f"ndcg@{k}"] <= 1 + 1e-12


@given(rankings, evidence)
def test_recall_grows_with_k(ranked, gold):
    values = of_ranking(ranked, gold)
    for reading in ("recall_any", "recall_all", "recall"):
        column = [values[f"{reading}@{k}"] for k in CUTS]
        assert column == sorted(column)


@given(rankings, evidence, st.randoms(use_true_random=False))
def test_the_order_within_a_cut_moves_no_recall_at_it(ranked, gold, random):
    first = ranked[:5]
    random.shuffle(first)
    before, after = of_ranking(ranked, gold), of_ranking([*first, *ranked[5:]], gold)
    for name in MEASURES:
        if name.startswith("recall") and not name.endswith("@1"):
            assert before[name] == after[name]


@given(rankings, evidence)
def test_evidence_first_is_perfect(ranked, gold):
    best = [*sorted(gold), *(one for one in ranked if one not in gold)]
    values = of_ranking(best, gold)
    assert values["mrr"] == values["recall_all@10"] == 1
    assert all(values[f"ndcg@{k}"] == pytest.approx(1) for k in CUTS)


@given(rankings, evidence)
def test_ndcg_is_that_of_a_plain_twin(ranked, gold):
    values = of_ranking(ranked, gold)
    relevance = np.array([float(one in gold) for one in ranked])
    ideal = np.array([float(at < len(gold)) for at in range(50)])
    discount = np.array([1.0, *np.log2(np.arange(2, 51))])
    for k in CUTS:
        twin = (relevance / discount)[:k].sum() / (ideal / discount)[:k].sum()
        assert values[f"ndcg@{k}"] == pytest.approx(twin)


def test_documents_by_hand():
    values = of_documents(["x", "a", "b"], {"a": 1.0, "b": 3.0})
    gained = 1 / math.log2(3) + 3 / math.log2(4)
    assert values["ndcg@10"] == pytest.approx(gained / (3 + 1 / math.log2(3)))
    binary = 1 / math.log2(3) + 1 / math.log2(4)
    assert values["ndcg_binary@10"] == pytest.approx(binary / (1 + 1 / math.log2(3)))
    assert (values["recall@10"], values["hit@5"], values["mrr@10"]) == (1, 1, 0.5)


def test_documents_below_the_cuts():
    ranked = [*IDS[:6], "a", *IDS[6:9], "b"]
    values = of_documents(ranked, {"a": 1.0, "b": 1.0})
    assert (values["hit@5"], values["mrr@10"], values["recall@10"]) == (0, 1 / 7, 0.5)
    assert set(document_measures(IDS[:20], {"a": 2.0})) == {0.0}


@given(rankings, st.dictionaries(st.sampled_from(IDS), st.just(1.0), min_size=1, max_size=20))
def test_grades_of_one_make_both_gains_the_same(ranked, grades):
    values = of_documents(ranked, grades)
    assert values["ndcg@10"] == values["ndcg_binary@10"]


def test_more_relevant_documents_than_ranks_can_still_be_perfect():
    grades = dict.fromkeys(IDS[:20], 1.0)
    assert of_documents(IDS, grades)["ndcg@10"] == pytest.approx(1)


figures = st.lists(st.integers(0, 5), min_size=1, max_size=30)


@given(figures, figures)
def test_the_area_is_the_share_of_pairs_in_order(higher, lower):
    pairs = [(one > other) + (one == other) / 2 for one in higher for other in lower]
    area = auroc(np.array(higher, dtype=float), np.array(lower, dtype=float))
    assert area == pytest.approx(sum(pairs) / len(pairs))


@given(figures, figures)
def test_the_area_is_that_of_rank_sums(higher, lower):
    every = sorted([*higher, *lower])
    rank = {one: every.index(one) + (every.count(one) + 1) / 2 for one in every}
    above = sum(rank[one] for one in higher) - len(higher) * (len(higher) + 1) / 2
    area = auroc(np.array(higher, dtype=float), np.array(lower, dtype=float))
    assert area == pytest.approx(above / (len(higher) * len(lower)))
