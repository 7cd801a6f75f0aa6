"""Trained models take part in searches, and nothing changes without ones that passed."""

from __future__ import annotations

import logging

import pytest
from learned import WORDS, classified_rows, ranked_rows

from engram.training.classifier import train_classifier
from engram.training.onnx_models import write_manifest
from engram.training.ranker import train_ranker

ALIKE = 30


@pytest.fixture
def folder(tmp_path):
    models = tmp_path / "models"
    made = [
        train_classifier(classified_rows(60), models, 0),
        train_ranker(ranked_rows(100), models, 0),
    ]
    write_manifest(models, made)
    return models


@pytest.fixture
def alike(experiences):
    """Memories that all fit a query, each a little worse than the one before it."""
    names = []
    for number in range(ALIKE):
        more = " ".join(f"other{word}" for word in range(number))
        stored = experiences.store(f"red lamp {more}", "act", "done", threshold=1.0)
        names.append(stored.id)
    return names


def ids(experiences, **options: object) -> list[str]:
    return [hit.id for hit in experiences.search("red lamp", **options).hits]


def test_what_was_of_use_comes_first(experiences, alike, folder):
    *before, late = ids(experiences, limit=4)
    for one in alike:
        experiences.judge(one, score=0.9 if one == late else 0.1)
    assert ids(experiences, limit=3) == before
    experiences.use_models(folder)
    found = experiences.search("red lamp", limit=3).hits
    # It was not even among the three.
    assert [hit.id for hit in found] == [late, *before[:2]]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    experiences.use_models(None)
    assert ids(experiences, limit=3) == before


@pytest.mark.parametrize("limit", [0, 1, 7, ALIKE, 1000])
def test_an_answer_is_the_head_of_the_longest_one(experiences, alike, folder, limit):
    """What cannot win is left out before the model is asked, and that changes nothing."""
    for at, one in enumerate(alike):
        experiences.judge(one, score=(at * 7 % 10) / 10)
    experiences.use_models(folder)
    assert ids(experiences, limit=limit) == ids(experiences, limit=10 * ALIKE)[:limit]


def test_the_same_search_gives_the_same_answer(experiences, alike, folder):
    experiences.use_models(folder)
    assert ids(experiences) == ids(experiences)


def test_what_is_noted_as_shown_is_what_was_shown(experiences, alike, folder):
    useful = ids(experiences, limit=2)[1]
    experiences.judge(useful, score=0.9)
    experiences.prune_feedback()
    experiences.use_models(folder)
    assert ids(experiences, limit=1) == [useful]
    experiences.prune_feedback()
    noted = experiences._store._connection.execute("SELECT memory_id FROM feedback_tracking")
    assert [one for (one,) in noted][2:] == [useful]


def test_an_episode_of_another_face_is_ranked_too(experiences, open_memory, folder):
    open_memory().observe("red lamp")
    experiences.store("red lamp again", "act", "done")
    experiences.use_models(folder)
    assert len(ids(experiences)) == 2


def test_words_of_a_type_say_the_mode_where_no_keyword_does(experiences, folder):
    def mode(query: str, **options: object) -> str:
        return experiences.search(query, **options).routing.mode

    unclear = WORDS["bugfix"].replace("crash ", "").replace("trace ", "")
    assert mode(unclear) == "routine"
    experiences.use_models(folder)
    assert mode(unclear) == "debug"
    assert mode(f"{unclear} roadmap") == "plan"
    assert mode(unclear, mode="review") == "review"
    assert mode("nothing it knows") == "routine"


@pytest.mark.parametrize("damage", ["missing", "manifest", "model"])
def test_a_broken_folder_changes_no_answer(experiences, alike, folder, damage, caplog):
    experiences.judge(alike[5], score=0.9)
    before = [(hit.id, hit.score) for hit in experiences.search("red lamp").hits]
    if damage == "missing":
        (folder / "manifest.json").unlink()
    elif damage == "manifest":
        (folder / "manifest.json").write_bytes(b"{")
    else:
        next(folder.glob("ranking_model-*.onnx")).write_bytes(b"")
    experiences.use_models(folder)
    with caplog.at_level(logging.WARNING):
        after = [(hit.id, hit.score) for hit in experiences.search("red lamp").hits]
    assert after == before
    assert bool(caplog.records) == (damage != "missing")
