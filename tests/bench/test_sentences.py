from __future__ import annotations

import re
from collections import Counter

import pytest

from engram.bench.corpus import ask
from engram.bench.sentences import decisions, long_questions, sentences, simple_sentence


@pytest.fixture(scope="module")
def many() -> list[str]:
    return sentences(20_000, seed=0)


def terms(texts):
    return Counter(word for text in texts for word in re.findall(r"\w+", text.lower()))


def test_a_seed_has_one_row(many):
    assert sentences(500, seed=0) == many[:500]
    assert sentences(500, seed=1) != many[:500]


def test_frequencies_fall_like_those_of_words(many):
    counts = [count for _, count in terms(many).most_common()]
    # A straight line on two logarithmic scales, within a factor.
    assert 5 < counts[0] / counts[99] < 200
    assert 5 < counts[99] / counts[999] < 120
    assert sum(1 for count in counts if count == 1) > len(counts) / 3


def test_new_words_never_cease(many):
    half, whole = len(terms(many[:10_000])), len(terms(many))
    assert whole > 1.5 * half
    # A million sentences at this rate have hundreds of thousands of distinct terms.
    assert whole > 10_000


def test_sentences_look_like_sentences(many):
    lengths = [len(text.split()) for text in many]
    assert 8 < sum(lengths) / len(lengths) < 16
    assert len(set(many)) > 0.99 * len(many)
    assert not [text for text in many if "{" in text or "  " in text]


def test_the_questions_are_in_no_text(many):
    questions = ask(sentences(1000, seed=1), 50)
    assert not set(questions.every) & set(many)
    assert len(questions.every) == 150


def test_questions_have_the_terms_they_promise():
    questions = ask(sentences(1000, seed=1), 20)
    assert {len(question.split()) for question in questions.eight} == {8}
    assert {len(question.split()) for question in questions.fifteen} == {15}


def test_decisions_go_on_from_a_number():
    assert decisions(3, 7) == decisions(10)[7:]
    assert decisions(1) == ["what was decided about the budget Berlin, note 0"]
    assert len(set(decisions(5000))) == 5000


def test_texts_without_words_still_give_questions():
    assert len(long_questions(["12 34"], "how", 3)) == 3


def test_the_simple_sentences_cycle():
    assert simple_sentence(0) == "Alice joined Northwind in Berlin as a designer (event 0)."
    assert simple_sentence(8).startswith("Alice founded Sunfield in Oslo as a pilot")
