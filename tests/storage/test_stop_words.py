"""Queries without what says nothing of what they are about."""

from __future__ import annotations

import pytest

from engram.storage import EpisodeFilter
from engram.storage.stop_words import STOP_WORDS


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("What did Ann say about the budget?", "ann say budget"),
        ("What's Ann\u2019s hobby? Is it Ann's?", "ann hobby"),
        ("I don't, won't; can't. We'll: I'VE", "i don t won can we ll ve"),
        ("We'll see, won't we?", "see"),
        ("the of", "the of"),
        ("vitamin D for Don, in May", "vitamin d don may"),
        ("what is on-call", "on call"),
        ("the T-cell of Don-Juan", "t cell don juan"),
        ("state-of-the-art and/or e.g. (the) \u201cwhat\u201d", "state of the art and or e g"),
        ("o'clock rock'n'roll d'accord", "o clock rock n roll d accord"),
        ("mother-in-law's", "mother law"),
        ("paintings painted a painter's Painting", "paintings painter"),
        ("東京 の the タワー", "東京 の タワ ワー"),
        ("_the_ (the) THE cafe-Caf\u00e9 x-\u0301-y", "cafe x y"),
        ("What did Will buy?", "will buy"),
        ("WHAT DID WILL BUY? AND ANN?", "buy ann"),
        ("What Did Will Buy?", "buy"),
        ("Will it rain on Will?", "rain will"),
        ("I like it. Will we see \u201cWill\u201d (Will\u2019s) boat?", "see will boat"),
        ("who wrote \u201cThe Will\u201d", "wrote will"),
        ("IT policy in the US", "it policy us"),
        ("what I'm told I am, I'VE told A US's man", "told us man"),
        ("so We'll say what Don't say", "say"),
        ("", ""),
    ],
)
def test_what_is_left_of_a_query(memory, query: str, left: str) -> None:
    with memory._store.reading():
        assert " ".join(memory._store.text.words_of(query).values()) == left


def test_a_search_for_every_word_leaves_none_out(memory) -> None:
    with memory._store.reading():
        words = memory._store.text.words_of("Isn't the Café on-call?", every_word=True)
    assert list(words.values()) == ["isn", "t", "the", "cafe", "on", "call"]


def test_stop_words_are_small_english_words() -> None:
    assert all(word.isascii() and word.isalpha() and word.islower() for word in STOP_WORDS)
    assert {"not", "what", "the", "don", "t"} <= STOP_WORDS
    assert not {"may", "say", "new", "time"} & STOP_WORDS


def test_a_recall_asks_for_content(memory) -> None:
    ids = [
        memory.observe(text)
        for text in ("what is it that the", "paintings by Ann", "a painter's brush")
    ]

    def found(query: str) -> set[str]:
        memory.recall(query)
        with memory._store.reading():
            keys, _ = memory._index.match(query, EpisodeFilter(), 9)
            theirs, _ = memory._store.text.search(query, EpisodeFilter(), 9)
        assert set(keys.tolist()) == set(theirs.tolist())
        return {ids[key - 1] for key in keys.tolist()}

    assert found("What is that painting?") == {ids[1]}
    assert found("what is that") == {ids[0]}
    assert found("the painters paint brushes") == {ids[1], ids[2]}
