"""Full text: words in any script, in a table that plain SQLite understands."""

from __future__ import annotations

import sqlite3

import apsw
import pytest

from engram.storage.full_text import _TOKENIZER
from engram.storage.segment import MAX_TERMS, match_expression, query_terms, searchable

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
    (hit, *_) = memory.recall(query, 1, vector_weight=0.0, fts_weight=1.0)
    assert (hit.episode.id, hit.score) == (uid, 1.0)
    assert hit.episode.content == text


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("мой", "мои"),
        ("東京", "京東"),
        ("on the call", "on-call"),
        ("かき", "がき"),
        ("universe", "unicorn"),
    ],
)
def test_what_is_another_word_is_not_found(memory, text, query):
    memory.observe(text)
    assert memory.recall(query, vector_weight=0.0, fts_weight=1.0) == []


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


def test_queries_are_bounded_and_operators_inert():
    assert match_expression(query_terms('NEAR(a b) "c" OR ^d*')) == (
        '"NEAR(a" OR "b)" OR """c""" OR "OR" OR "^d*"'
    )
    assert match_expression(query_terms("a a A")) == '"a" OR "A"'
    assert match_expression(query_terms(" .,!* \0 ")) == ""
    many = match_expression(query_terms(" ".join(map(str, range(10_000)))))
    assert many.count(" OR ") == MAX_TERMS - 1
    apsw.Connection(":memory:").execute(
        "CREATE VIRTUAL TABLE t USING fts5(x); SELECT * FROM t WHERE t MATCH ?", (many,)
    )
