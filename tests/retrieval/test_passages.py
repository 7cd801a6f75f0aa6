"""The passage of a long text that answers a query by its words."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engram.embedding.sentences import sentence_spans
from engram.retrieval.passages import MAX_WORDS, best_passage
from engram.storage.segment import word_spans

FILLER = "The quarterly report lists costs for paper, ink, postage and coffee."


def around(needle: str, before: int = 40, after: int = 40) -> str:
    return " ".join([FILLER] * before + [needle] + [FILLER] * after)


def test_the_sentence_with_the_rare_words_is_in_the_middle() -> None:
    content = around("Grandmother hid the silver keys under the beehive.")
    passage = best_passage("Where is the silver key of the report?", content)
    assert passage is not None
    assert "silver keys under the beehive" in passage.text
    before, after = passage.text.split("Grandmother hid the silver keys under the beehive.")
    assert (before.count(FILLER), after.count(FILLER)) == (7, 6)
    assert passage.passage_words == 8 + 13 * 11 <= MAX_WORDS
    assert content[passage.source_start : passage.source_end] == passage.text


def test_a_text_that_is_no_longer_than_a_passage_has_none() -> None:
    assert best_passage("word", " ".join(["word"] * MAX_WORDS)) is None
    passage = best_passage("word", " ".join(["word"] * (MAX_WORDS + 1)))
    assert passage is not None
    assert passage.passage_words == MAX_WORDS


@pytest.mark.parametrize("query", ["", "zebra", "what is the", "does", "???", "it's"])
def test_without_a_word_in_common_there_is_none(query: str) -> None:
    assert best_passage(query, around("It's here, as it does.")) is None


@pytest.mark.parametrize(
    ("query", "needle"),
    [
        ("box", "Both boxes are empty."),
        ("parties", "The party was loud."),
        ("SHA-256", "We compare by sha-256 here."),
        ("node.js", "It runs on Node.js these days."),
        ("CAFÉ", "A cafe\u0301 opened."),
        ("Москва", "Он живёт в городе москва."),
        ("किताब", "यह किताब अच्छी है।"),
    ],
)
def test_spellings_of_a_word_are_one(query: str, needle: str) -> None:
    passage = best_passage(query, around(needle))
    assert passage is not None
    assert needle in passage.text


@pytest.mark.parametrize(
    ("query", "needle", "filler"),
    [
        ("钥匙在哪里", "祖母把银钥匙藏在蜂箱下面。", "季度报告列出了纸张和墨水的费用。"),
        ("鍵はどこ", "祖母は銀の鍵を隠した。", "報告書には紙の費用が書いてある。"),
        ("กุญแจ", "คุณยายซ่อนกุญแจเงินไว้", "รายงานแสดงค่าใช้จ่ายกระดาษ\n"),
    ],
)
def test_scripts_without_spaces_are_searched_too(query: str, needle: str, filler: str) -> None:
    content = filler * 60 + needle + "\n" + filler * 60
    passage = best_passage(query, content)
    assert passage is not None
    assert needle in passage.text
    assert passage.passage_words <= MAX_WORDS
    assert 100 < len(passage.text) < 2 * MAX_WORDS + 40


def test_one_endless_sentence_is_cut() -> None:
    content = "a " * 500 + "beehive " + "b " * 500
    passage = best_passage("beehives", content)
    assert passage is not None
    assert "beehive" in passage.text
    assert passage.passage_words == len(passage.text.split()) == MAX_WORDS


def test_the_first_of_equal_sentences_is_taken() -> None:
    content = around("A beehive.") + " " + around("A beehive.")
    passage = best_passage("beehive", content)
    assert passage is not None
    assert passage.source_start < content.index("A beehive.") < passage.source_end


def test_a_number_does_not_end_a_sentence() -> None:
    text = 'It costs 3.50 here. "Really?" she said.\n- yes\n\nDone'
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    assert sentences == ["It costs 3.50 here.", '"Really?"', "she said.", "- yes", "Done"]


PIECES = st.sampled_from(
    [
        "word",
        "beehive",
        "beehives.",
        ". ",
        "!?",
        "\n",
        "\n\n",
        "蜂箱",
        "。",
        "กุญแจ",
        "e\u0301",
        "---",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=400),
    st.lists(PIECES, max_size=500).map(" ".join),
    st.lists(PIECES, max_size=500).map("".join),
)


@given(TEXTS, TEXTS)
@example("beehive", "\u3002" * 400 + "beehive")
@example("\ud800", "\ud800 " * 300)
def test_a_passage_is_a_bounded_piece_of_any_text(query: str, content: str) -> None:
    passage = best_passage(query, content)
    if passage is None:
        return
    assert 0 <= passage.source_start < passage.source_end <= len(content)
    assert content[passage.source_start : passage.source_end] == passage.text
    assert 0 < passage.passage_words <= MAX_WORDS < len(word_spans(content))
    starts = [start for start, _ in word_spans(content)]
    inside = sum(passage.source_start <= start < passage.source_end for start in starts)
    assert inside == passage.passage_words
    assert passage == best_passage(query, content)


@given(TEXTS)
def test_sentences_hold_all_but_the_space_between_them(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(
        text.split()
    )
    assert all(text[start:end].strip() == text[start:end] != "" for start, end in spans)
    assert spans == sorted(spans)


@pytest.mark.parametrize("run", [".", " ", "\n", "…", '."', "。", " \n", "a.", ".\t"])
def test_a_long_run_takes_no_longer_than_another_text(run):
    # The square of this length would keep the test busy for an hour.
    text = f"Contents{run * 300_000}12"
    assert text.strip() == text
    spans = sentence_spans(text)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)


def test_the_passage_of_a_very_long_text_is_where_the_words_are():
    filler = "the quick brown fox jumps over the lazy dog again. " * 8_000
    text = f"{filler}The silver key lies under the third stone. {filler}"
    found = best_passage("where is the silver key?", text)
    assert "silver key" in found.text
    assert text[found.source_start : found.source_end] == found.text
