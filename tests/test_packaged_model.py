"""With the packaged model: long texts are found by any part, and appear once."""

from __future__ import annotations

import pytest

from engram import Engram, FactResult, ObserveInput

FILLER = (
    "The committee met again about the parking spaces and agreed on nothing in particular. "
    "Somebody proposed another meeting. The minutes were read, amended and read once more. "
)
NEEDLE = "Grandmother hid the emerald necklace inside the broken piano."


@pytest.fixture(scope="module")
def memory():
    with Engram() as opened:
        opened.observe_many(
            ObserveInput(text)
            for text in (
                "Emeralds are green gemstones.",
                "We tuned the piano.",
                FILLER,
                FILLER * 60,
            )
        )
        yield opened


@pytest.mark.parametrize("part", [0.01, 0.5, 0.99])
def test_a_sentence_anywhere_in_a_long_text_is_found(memory, part):
    words = (FILLER * 180).split()
    at = int(len(words) * part)
    uid = memory.observe(" ".join([*words[:at], NEEDLE, *words[at:]]))
    question = "Where did grandmother hide the necklace?"
    assert memory.recall(question, 1)[0].episode.id == uid
    by_meaning = memory.recall(question, 50, mode="cosine")
    places = {r.episode.content: place for place, r in enumerate(by_meaning)}
    assert len(places) == len(by_meaning) == memory.count()
    # Without the sentence the same text would be where the plain filler is: last.
    assert places[memory.get(uid).content] < places[FILLER * 60]
    assert places[memory.get(uid).content] <= 1
    memory.forget(uid)


def test_meaning_is_found_without_a_shared_word(memory):
    uid = memory.observe("My doctor says I must not eat anything with nuts.")
    assert memory.recall("food allergies", 1, mode="cosine")[0].episode.id == uid


def test_a_model_is_loaded_once_for_all_instances(tmp_path):
    with Engram(tmp_path / "a.engram") as one, Engram(tmp_path / "b.engram") as two:
        for memory in (one, two):
            memory.observe("hello")
        assert one._embedder is two._embedder
        assert one.model() == two.model()


def test_facts_are_found_by_meaning():
    with Engram() as opened:
        for number in range(40):
            opened.assert_fact(f"server {number}", "runs on port", str(8000 + number))
            opened.observe(f"The build of release {number} took {number + 3} minutes.")
        opened.assert_fact("user", "favourite drink", "espresso")
        opened.assert_fact("Alice", "works at", "Globex")
        for question, answer in (
            ("what coffee do I like", "espresso"),
            ("Where does Alice work?", "Globex"),
        ):
            for mode in ("hybrid", "cosine", "spreading"):
                [best] = opened.recall_memories(question, 1, mode=mode)
                assert isinstance(best, FactResult), (question, mode)
                assert best.fact.object == answer
