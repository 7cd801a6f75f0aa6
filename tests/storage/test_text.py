"""Full text: words in any script, in a table that plain SQLite understands."""

from __future__ import annotations

import sqlite3

import pytest

from engram import ObserveInput
from engram.storage.full_text import _TOKENIZER
from engram.storage.segment import MAX_TERMS, searchable

WORDS_ALONE = {"vector_weight": 0.0, "fts_weight": 1.0}
FOUND = [
    ("Café naïve STRASSE", ["cafe", "CAFÉ", "cafe\u0301", "naive", "straße"]),
    ("Tiếng Việt", ["tieng", "việt"]),
    ("Ёлка и мой дом", ["елка", "ёлка", "МОЙ"]),
    ("Η Αθήνα και ο σοφός", ["αθηνα", "ΑΘΗΝΑ", "σοφοσ", "ΣΟΦΟΣ"]),
    ("السَّلامُ عليكم", ["السلام", "عليكم"]),
    ("שָׁלוֹם לכולם", ["שלום", "לכולם"]),
    ("नमस्ते हिन्दी", ["नमस्ते", "हिन्दी"]),
    ("ฉันกินข้าวที่บ้าน", ["กิน", "ข้าว", "บ้าน", "ที่"]),
    ("ສະບາຍດີຕອນເຊົ້າ", ["ສະບາຍດີ"]),
    ("東京タワーに行った", ["東京", "タワー", "行", "に"]),
    ("我用Python写代码", ["python", "代码", "写", "我"]),
    ("用GPT4模型", ["gpt4", "模型", "用"]),
    ("한국어를 공부했다", ["한국어", "공부", "한국"]),
    ("ﬁne １２３ ＡＢＣ", ["fine", "123", "abc"]),
    ("𠮷野家で食べた", ["𠮷野家", "𠮷"]),
    ("don't on-call GB/s 20.04 a::b", ["don't", "on-call", "GB/s", "20.04", "a::b", "call"]),
    ("co\u00adoperate zero\u200bwidth", ["cooperate", "zerowidth"]),
]


@pytest.mark.parametrize(("text", "query"), [(t, q) for t, queries in FOUND for q in queries])
def test_a_word_finds_its_text(memory, text, query):
    memory.observe("an unrelated remark 12 другое 無関係")
    uid = memory.observe(text)
    (hit, *_) = memory.recall(query, 1, **WORDS_ALONE)
    assert (hit.episode.id, hit.score) == (uid, 1.0)
    assert hit.episode.content == text


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("мой", "мои"),
        ("東京", "京東"),
        ("かき", "がき"),
        ("universe", "unicorn"),
    ],
)
def test_what_is_another_word_is_not_found(memory, text, query):
    memory.observe(text)
    assert memory.recall(query, **WORDS_ALONE) == []


def test_text_that_needs_nothing_is_its_own_searchable_form():
    for text in ("plain ASCII, with punctuation!", "Café naïve", "Москва", ""):
        assert searchable(text) is text
    assert searchable("東京都x") == " 東 東京 京 京都 都 x"


def test_the_table_serves_other_sqlite_programs(memory, path):
    memory.observe("我用Python写代码")
    memory.close()
    plain = sqlite3.connect(path)
    try:
        rows = plain.execute(
            "SELECT content FROM episode WHERE id IN"
            " (SELECT rowid FROM episode_fts WHERE episode_fts MATCH '代码')"
        ).fetchall()
        assert rows == [("我用Python写代码",)]
        plain.execute("INSERT INTO episode_fts (episode_fts) VALUES ('rebuild')")
        plain.execute("INSERT INTO episode_fts (episode_fts, rank) VALUES ('integrity-check', 1)")
    finally:
        plain.close()


def test_the_tokenizer_is_the_one_of_the_table(memory):
    name, arguments = _TOKENIZER
    with memory._store.reading():
        sql = memory._store._connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'episode_fts'"
        ).get
    option = sql.split('tokenize = "')[1].split('"')[0]
    words = [f"'{word}'" if " " in word else word for word in arguments]
    assert option == " ".join([name, *words])


def test_operators_in_queries_are_inert(memory):
    uid = memory.observe("a cat")
    memory.observe("beside a dog")
    for query in ("cat NOT a", "NEAR(cat zebra)", '"cat', "^cat*", "cat\0zebra", "body:cat -cat"):
        assert [hit.episode.id for hit in memory.recall(query, **WORDS_ALONE)] == [uid]
    assert memory.recall(" .,!* \0 ", **WORDS_ALONE) == []


def test_queries_are_bounded(memory):
    last = MAX_TERMS - 1
    kept, left_out = memory.observe(f"w{last}x"), memory.observe(f"w{last + 1}x")
    for between in (" ", "-"):
        query = between.join(f"w{n}x" for n in range(10_000))
        assert [hit.episode.id for hit in memory.recall(query, **WORDS_ALONE)] == [kept]
    assert memory.recall(f"w{last + 1}x", 1, **WORDS_ALONE)[0].episode.id == left_out


@pytest.mark.parametrize(
    ("query", "whole", "part"),
    [
        ("on-call", "who is on call", "a call, and what came of it"),
        ("mmp-9", "MMP-9 was found", "MMP was found"),
        ("state-of-the-art", "the state of the art", "the state of Ohio"),
        ("GB/s", "ten GB/s", "ten GB of it"),
    ],
)
def test_words_with_punctuation_inside_are_several(memory, query, whole, part):
    """A text that has one of them is found, behind one that has all, in whatever order."""
    parts = memory.observe(part)
    memory.observe_many([ObserveInput("unrelated remarks") for _ in range(8)])
    apart = memory.observe(" ".join(reversed(whole.split())))
    wholes = memory.observe(whole)
    found = memory.recall(query, **WORDS_ALONE)
    assert [hit.episode.id for hit in found] == [apart, wholes, parts]


def test_words_of_one_stem_count_once(memory):
    """As many forms of a word as the query has, they say one thing."""
    memory.observe_many([ObserveInput("unrelated remarks") for _ in range(8)])
    one, both = memory.observe("paintings, yes"), memory.observe("a piano painted")
    memory.observe("piano, yes")
    for query in ("painting piano", "painting paintings painted paint piano"):
        scores = {hit.episode.id: hit.score for hit in memory.recall(query, **WORDS_ALONE)}
        assert len(scores) == 3
        assert scores[one] < scores[both] / 1.5
