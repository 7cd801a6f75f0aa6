"""Near words: what a text says in another word than the query counts a little."""

from __future__ import annotations

from importlib import resources
from itertools import islice

import numpy as np
import pytest

from engram import Blending, Engram, ObserveInput
from engram.embedding import resolve
from engram.retrieval.near_words import ASKED, LEAST, near_words
from engram.storage.stop_words import STOP_WORDS

TABLE = resources.files("engram.retrieval").joinpath("near_words.tsv").read_text("ascii")
LINES = [line.split("\t") for line in TABLE.splitlines()]
PAIRS = [(stem, *pair.split(" ")) for stem, *pairs in LINES for pair in pairs]

# Texts as long as each other that share one word of the query.
SAME = "the car was at school today"


def best(memory: Engram, query: str, **options: object) -> str:
    return memory.recall(query, 1, **options)[0].episode.content


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("kids and school", "the children was at school today"),
        ("who went to school", "the go was at school today"),
        ("movies of the school", "the film was at school today"),
        ("DOCTORS, school?", "the physician was at school today"),
    ],
)
def test_a_near_word_decides_between_texts_that_are_alike_otherwise(
    memory: Engram, query: str, text: str
) -> None:
    memory.observe_many([ObserveInput(SAME), ObserveInput(text)])
    assert best(memory, query) == text
    assert best(memory, query, blending=Blending(near_words=0.0)) == SAME


def test_the_word_itself_counts_more_than_one_near_to_it(memory: Engram) -> None:
    texts = [f"the {word} was at school today" for word in ("car", "children", "kids")]
    memory.observe_many(ObserveInput(text) for text in texts)
    hits = memory.recall("kids and school", blending=Blending(near_words=1.0))
    assert [hit.episode.content for hit in hits] == texts[::-1]


def test_a_near_word_that_all_texts_have_says_nothing(memory: Engram) -> None:
    texts = [SAME, "the children was at school today"]
    memory.observe_many(ObserveInput(text) for text in texts + ["all our children"] * 9)
    on, off = (
        {hit.episode.id: hit.score for hit in memory.recall("kids at school", 20, blending=way)}
        for way in (Blending(), Blending(near_words=0.0))
    )
    assert on == pytest.approx(off, abs=1e-4)


@pytest.mark.parametrize(
    "query", ["kids", "", "?", "東京の子供", "\x00", "xylq", "kids " * 400, "🙂 kids", "and the"]
)
def test_any_query_is_answered(memory: Engram, query: str) -> None:
    memory.observe_many([ObserveInput(SAME), ObserveInput("children"), ObserveInput("子供 東京")])
    assert len(memory.recall(query)) == 3


def test_the_first_words_of_a_long_query_have_near_ones(memory: Engram) -> None:
    texts = [SAME, "the children was at school today"]
    memory.observe_many(ObserveInput(text) for text in texts)

    def gain(before: int) -> float:
        others = " ".join(f"x{at}" for at in range(before))
        hits = memory.recall(f"{others} kids school", vector_weight=0.0)
        scores = {hit.episode.content: hit.score for hit in hits}
        return scores[texts[1]] / scores[texts[0]]

    assert gain(0) > 1.0
    assert gain(ASKED - 1) > 1.0
    assert gain(ASKED) == pytest.approx(1.0)


def test_other_blends_know_of_none(memory: Engram) -> None:
    memory.observe_many([ObserveInput(SAME), ObserveInput("the children was at school today")])
    for blending in ("min_max", "reciprocal_rank"):
        assert best(memory, "kids and school", blending=blending) == SAME


def test_how_near_a_word_is_goes_from_nothing_to_itself() -> None:
    assert near_words("xylq") == []
    shares = [share for stem, *_ in LINES for _, share in near_words(stem)]
    assert len(shares) == len(PAIRS)
    assert min(shares) >= 0.0
    assert max(shares) < 1.0


def test_the_table_is_in_order_and_has_no_word_that_says_nothing() -> None:
    assert [stem for stem, *_ in LINES] == sorted({stem for stem, *_ in LINES})
    assert not {word for _, word, _ in PAIRS} & (STOP_WORDS | {"two", "monday", "june", "third"})
    for stem, *pairs in LINES:
        cosines = [int(pair.split(" ")[1]) for pair in pairs]
        assert 1 <= len(pairs) <= 4
        assert cosines == sorted(cosines, reverse=True), stem
        assert cosines[-1] >= 100 * LEAST


def test_words_are_as_near_as_the_packaged_model_says() -> None:
    # A stem that is a word is that word.
    model, words = resolve(None), {word for _, word, _ in PAIRS}
    some = list(islice((pair for pair in PAIRS if pair[0] in words), 0, None, 250))
    assert len(some) > 20
    stems, others = (model.embed(list(side)) for side in list(zip(*some, strict=True))[:2])
    cosines = np.sum(stems * others, axis=1)
    # What 8-bit weights give differs a little between processors.
    assert cosines == pytest.approx([int(one[2]) / 100 for one in some], abs=0.05)
