"""What each stage finds in small databases of the reference server."""

from __future__ import annotations

import uuid

import pytest
from bare_database import BareDatabase, blob, hours, near, numbers, sources, stages

from engram.training.messages import Complete, Insight, Recommendation


def insights(said):
    return [one for one in said if isinstance(one, Insight)]


def targets(said, action):
    return [
        one.target_id for one in said if isinstance(one, Recommendation) and one.action == action
    ]


def test_an_empty_database_ends_with_nothing(bare):
    said = bare.learned()
    assert stages(said)[:5] == [
        ("loading", 0.0), ("clustering", 20.0), ("temporal", 40.0), ("causal", 60.0),
        ("training", 70.0),
    ]  # fmt: skip
    assert stages(said)[-2:] == [("meta", 90.0), ("done", 100.0)]
    assert said[-1] == Complete(0, 0.0)
    assert numbers(said) == {}
    assert insights(said) == []


def test_stages_come_in_their_order_and_percents_never_fall(bare):
    for at in range(4):
        bare.add(f"m{at}", near(0), created_at=hours(at))
    said = bare.learned(deep=True)
    percents = [percent for _, percent in stages(said)]
    assert percents == sorted(percents)
    assert [name for name, _ in stages(said)][-6:] == [
        "text_lora", "text_lora_done", "quality_gate", "quality_gate_failed: below threshold",
        "meta", "done",
    ]  # fmt: skip
    assert numbers(said)["text_quality_rouge_l"] == 0.0
    assert said[-1].insights_generated == len(insights(said)) > 0


def test_deep_with_twenty_good_memories_says_why_there_is_no_text_model(bare):
    for at in range(20):
        bare.add(f"m{at}", score=0.9)
    said = stages(bare.learned(deep=True))
    assert ("text_lora_skipped: torch not installed", 75.0) in said
    # Nothing is trained on memories that are not good.
    bare.connection.execute("UPDATE memories SET score = 0.5 WHERE id = 'm0'")
    assert not [name for name, _ in stages(bare.learned(deep=True)) if "skipped: torch" in name]


def test_clusters_hold_what_is_alike(bare):
    bare.add("a", near(0))
    bare.add("x", near(1))
    bare.add("b", near(0, 0.1), memory_type="bugfix")
    bare.add("y", near(1, 0.1))
    bare.add("alone", near(2))
    bare.add("unembedded")
    said = bare.learned()
    assert sources(said, "cluster") == [["a", "b"], ["x", "y"]]
    assert numbers(said)["cluster_count"] == 2.0


def test_a_cluster_says_how_many_of_what_and_shows_three(bare):
    for at in range(5):
        bare.add(
            f"m{at}",
            near(0),
            memory_type="bugfix" if at < 3 else "decision",
            tags='["auth", "a,b"]' if at < 4 else "tokens, auth",
        )
    [one] = [one for one in insights(bare.learned()) if one.insight_type == "cluster"]
    assert one.context == (
        "Found a cluster of 5 memories about auth, a,b (3 bugfix, 2 decision):\n"
        "- context of m0\n- context of m1\n- context of m2"
    )
    assert one.action == "What was done:\n- action of m0\n- action of m1\n- action of m2"
    assert one.result == "What came of it:\n- result of m0\n- result of m1\n- result of m2"
    assert one.tags == "auth"
    assert one.source_ids == "m0,m1,m2,m3,m4"


def test_long_memories_are_cut_to_what_a_memory_may_have(bare):
    for at in range(3):
        bare.add(f"m{at}", near(0), context=f"{at}" + "ü" * 20_000, action=" \n", result="")
    [one] = [one for one in insights(bare.learned()) if one.insight_type == "cluster"]
    assert len(one.context.encode()) <= 10_000
    assert one.context.count("…") == 3
    assert one.action == "What was done."


def test_ids_stay_and_depend_on_nothing_but_type_and_sources(bare, tmp_path):
    for at in range(3):
        bare.add(f"m{at}", near(0))
    first = bare.learned()
    assert bare.learned() == first
    other = BareDatabase(tmp_path / "other.db")
    for at in (2, 0, 1):
        other.add(f"m{at}", near(0, at / 100), context="changed")
    of = [{one.insight_type: one.id for one in insights(said)} for said in (first, other.learned())]
    assert of[0] == of[1]
    assert len(set(of[0].values())) == len(of[0]) == 2
    assert {uuid.UUID(one).version for one in of[0].values()} == {5}


def test_a_pattern_is_what_recurs_within_a_week_of_the_latest(bare):
    bare.add("early", created_at=hours(0))
    bare.add("edge", created_at=hours(32))
    bare.add("last", created_at=hours(200), result="it held")
    bare.add("rare", memory_type="bugfix", created_at=hours(1))
    bare.add("middle", created_at=hours(100))
    [one] = insights(bare.learned())
    assert one.insight_type == "temporal"
    assert one.source_ids == "edge,middle,last"
    assert one.action == "3 occurrences with ~84.0h interval"
    assert "decision" in one.context
    assert one.result.startswith("What came of the latest:\n- it held")


def test_two_memories_are_no_pattern_and_types_come_as_they_are_met(bare):
    for at, kind in enumerate(["bugfix", "decision", "pattern"] * 3):
        if kind != "pattern" or at < 5:
            bare.add(f"m{at}", memory_type=kind, created_at=hours(9 - at))
    said = bare.learned()
    assert sources(said, "temporal") == [["m6", "m3", "m0"], ["m7", "m4", "m1"]]
    assert numbers(said)["temporal_pattern_count"] == 2.0


def test_a_chain_follows_the_first_child_of_each(bare):
    bare.add("child", parent_id="root", created_at=hours(30))
    bare.add("root", memory_type="bugfix", action="restarted")
    bare.add("second child", parent_id="root", created_at=hours(60))
    bare.add("grandchild", parent_id="child", created_at=hours(90))
    bare.add("orphan", parent_id="gone", created_at=hours(120))
    bare.add("of the orphan", parent_id="orphan", created_at=hours(150))
    [one] = [one for one in insights(bare.learned()) if one.insight_type == "causal"]
    assert one.source_ids == "root,child,grandchild"
    assert one.result == "root -> child -> grandchild"
    assert one.context.startswith("Found a causal chain of 3 memories:")
    assert one.action == "Began with a bugfix:\n- restarted"


def test_a_circle_of_parents_is_no_chain(bare):
    bare.add("a", parent_id="b")
    bare.add("b", parent_id="a")
    bare.add("self", parent_id="self")
    assert sources(bare.learned(), "causal") == []


def test_what_is_alike_and_follows_within_six_hours_is_a_chain(bare):
    tilts = {"a": (0, 0.0), "b": (6, 0.9), "c": (12.1, 0.0), "d": (12.2, 0.9), "e": (18, 0.0)}
    for uid, (at, tilt) in tilts.items():
        bare.add(uid, near(0, tilt), created_at=hours(at))
    bare.add("unlike", near(1), created_at=hours(7))
    bare.add("undated", near(0, 0.5), created_at="yesterday")
    said = bare.learned()
    assert sources(said, "causal") == [["a", "b"], ["c", "d", "e"]]
    assert numbers(said)["causal_chain_count"] == 2.0


def test_what_is_in_an_explicit_chain_is_in_no_other(bare):
    for at, (uid, parent) in enumerate([("a", None), ("b", "a"), ("c", None), ("d", None)]):
        bare.add(uid, near(0, at / 2), created_at=hours(at), parent_id=parent)
    assert sources(bare.learned(), "causal") == [["a", "b"], ["c", "d"]]


def test_a_chain_of_the_memories_of_a_cluster_is_not_said_twice(bare):
    bare.add("a", near(0))
    bare.add("b", near(0), created_at=hours(1))
    said = bare.learned()
    assert sources(said, "cluster") == [["a", "b"]]
    assert sources(said, "causal") == []
    assert numbers(said)["causal_chain_count"] == 1.0


def test_metrics_in_their_order(bare):
    for at, (kind, score) in enumerate([("pattern", 0.2), ("bugfix", 0.7), ("pattern", 0.9)]):
        bare.add(f"m{at}", memory_type=kind, score=score)
    bare.connection.execute("INSERT INTO q_table VALUES ('search', 'debug', 'x', 0.5, 30, '')")
    bare.connection.execute("INSERT INTO q_table VALUES ('search', 'debug', 'y', 0.5, 50, '')")
    found = numbers(bare.learned())
    assert list(found) == [
        "memory_count", "avg_score", "type_fraction_bugfix", "type_fraction_pattern",
        "q_table_convergence", "cluster_count", "temporal_pattern_count", "causal_chain_count",
    ]  # fmt: skip
    assert found["avg_score"] == pytest.approx(0.6, abs=1e-12)
    assert found["type_fraction_pattern"] == pytest.approx(2 / 3, abs=1e-12)
    assert found["q_table_convergence"] == pytest.approx(0.4, abs=1e-12)


def test_the_convergence_is_at_most_one(bare):
    bare.add("m")
    bare.connection.execute("INSERT INTO q_table VALUES ('search', 'debug', 'x', 0.5, 300, '')")
    assert numbers(bare.learned())["q_table_convergence"] == 1.0


def test_what_is_of_little_use_is_to_be_archived(bare):
    for uid, score in (("low", 0.12), ("edge", 0.3), ("never", 0), ("high", 0.9)):
        bare.add(uid, score=score)
    said = bare.learned()
    assert targets(said, "archive") == ["low", "never"]
    assert Recommendation("low", "archive", "Score 0.12 below threshold 0.3") in said


def parts(context, action, result):
    """The vectors of a memory's parts; None: the part is blank."""
    found = {"vector": context, "embedding_action": action, "embedding_result": result}
    blank = {"vector": "context", "embedding_action": "action", "embedding_result": "result"}
    return {
        **{column: None if one is None else blob(one) for column, one in found.items()},
        **{blank[column]: " \n" for column, one in found.items() if one is None},
    }


def test_what_is_said_twice_is_to_be_merged_into_the_first(bare):
    bare.add("a", **parts(near(0), near(1), near(2)))
    bare.add("other type", **parts(near(0), near(1), near(2)), memory_type="bugfix")
    bare.add("b", **parts(near(0, 0.01), near(1, 0.1), near(2)))
    bare.add("c", **parts(near(0, 0.02), near(1), near(2, 0.1)), score=0.1)
    bare.add("unlike", **parts(near(0, 0.5), near(1), near(2)))
    said = bare.learned()
    assert targets(said, "merge") == ["b", "c"]
    assert targets(said, "archive") == ["c"]
    assert "as a," in next(one.reasoning for one in said if getattr(one, "target_id", "") == "b")


@pytest.mark.parametrize(
    ("other", "merged"),
    [
        (parts(near(0), near(1), near(2)), True),
        (parts(near(0, 0.1), near(1, 0.1), near(2, 0.1)), True),
        (parts(near(0), near(1, 0.5), near(2)), False),
        (parts(near(0), near(1), near(3)), False),
        (parts(near(0), None, near(2)), False),
        (parts(near(0), near(1), None), False),
        # A text that is there and was not embedded.
        ({"vector": near(0), "embedding_action": blob(near(1))}, False),
        ({"vector": near(0)}, False),
    ],
)
def test_only_what_agrees_in_every_part_is_merged(bare, other, merged):
    bare.add("a", **parts(near(0), near(1), near(2)))
    bare.add("b", **other)
    assert targets(bare.learned(), "merge") == (["b"] if merged else [])


@pytest.mark.parametrize(
    "filled", [(1, 0, 0), (1, 1, 0), (1, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 1)]
)
def test_a_blank_part_agrees_with_a_blank_one(bare, filled):
    vectors = [near(axis) if there else None for axis, there in enumerate(filled)]
    bare.add("whole", **parts(near(0), near(1), near(2)))
    for uid in ("a", "b"):
        bare.add(uid, **parts(*vectors))
    assert targets(bare.learned(), "merge") == ["b"]


def test_memories_without_a_word_are_not_merged(bare):
    for uid in ("a", "b"):
        bare.add(uid, **{**parts(None, None, None), "vector": near(0)})
    assert targets(bare.learned(), "merge") == []


def test_memories_of_two_projects_are_not_merged(bare):
    for uid, project in (("a", None), ("b", "/p"), ("c", "/q"), ("d", "/p"), ("e", None)):
        bare.add(uid, **parts(near(0), near(1), near(2)), project=project)
    said = bare.learned()
    assert targets(said, "merge") == ["d", "e"]


def test_scores_as_large_as_numbers_get(bare):
    for at in range(3):
        bare.add(f"m{at}", score=1.7e308)
    assert numbers(bare.learned())["avg_score"] == pytest.approx(1.7e308)


def test_a_stage_that_fails_leaves_the_others(bare, monkeypatch):
    from engram.training import clustering

    def failing(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(clustering, "clusters", failing)
    for at in range(3):
        bare.add(f"m{at}", near(0, at / 2), created_at=hours(at))
    said = bare.learned()
    assert ("clustering_failed: failed unexpectedly (ZeroDivisionError)", 20.0) in stages(said)
    assert len(sources(said, "temporal")) == 1
    assert "cluster_count" not in numbers(said)
    assert said[-1].insights_generated == 2


def test_ids_with_commas_are_not_listed(bare):
    bare.add("a,b", near(0))
    bare.add("c", near(0))
    bare.add("d", near(0))
    assert sources(bare.learned(), "cluster") == [["c", "d"]]


@pytest.mark.parametrize("size", [1, 7, 9])
def test_vectors_of_another_size_cost_their_memories_alone(bare, size):
    bare.add("odd", blob([1.0] * size))
    for at in range(3):
        bare.add(f"m{at}", near(0))
    said = bare.learned()
    assert sources(said, "cluster") == [["m0", "m1", "m2"]]
    assert numbers(said)["skipped_rows"] == 1.0
