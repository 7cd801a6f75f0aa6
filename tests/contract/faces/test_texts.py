"""Texts of any script and size, and what is refused."""

from __future__ import annotations

import pytest
from contract.faces.behaviours import shows

TEXTS = {
    "emoji": "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumb",
    "chinese": "我们明天早上九点在港口见面",
    "japanese": "明日の会議は午後三時からです",
    "korean": "내일 아침 아홉 시에 항구에서 만나요",
    "arabic": "العبّارة تغادر في التاسعة صباحًا",
    "hebrew": "המעבורת יוצאת בתשע \u200fabc\u200e",
    "combining": "e\u0301le\u0300ve and a\u0308 and é",
    "astral": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𠜎",
    "controls": "a\tb\nc\r\nd\x0be\x1ff\x7fg\u0085h\u2028i\ufeffj\uffff",
    "nul": "before\x00after",
}
WORDS = {
    "greek": "καλημέρα",
    "cyrillic": "переправа",
    "arabic": "العبارة",
    "hebrew": "מעבורת",
    "hindi": "नौका",
    "thai": "เรือข้ามฟาก",
    "chinese": "渡轮码头",
    "japanese": "フェリー",
    "korean": "여객선",
    "german": "Überfahrt",
}
HALF = "half \ud83d of one"


@shows("unicode.kept")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_text_comes_back_as_it_was(face, writer, word, text):
    whole = f"{word} {text}"
    uid = writer.remember(whole)
    assert [found.text for found in face.find(whole) if found.id == uid] == [whole]


@pytest.fixture(scope="session")
def many_scripts(shared):
    """A memory for each script; the faces must not find those that each other's tests keep."""
    return {name: shared.operator.observe(f"… {text} …") for name, text in WORDS.items()}


@shows("unicode.words")
@pytest.mark.parametrize("script", WORDS)
def test_words_of_any_script_are_found(face, many_scripts, script):
    assert face.find(WORDS[script])[0].id == many_scripts[script]


@shows("unicode.halves")
def test_half_a_pair_is_refused(face):
    with face.refuses("halves"):
        face.remember(HALF)


@shows("unicode.question")
def test_half_a_pair_in_a_question_does_no_harm(face, writer, word):
    uid = writer.remember(word)
    assert uid in {found.id for found in face.find(f"{word} \ud83d")}


@shows("limits.empty")
def test_an_empty_text_is_kept(face, shared):
    assert shared.operator.get(face.remember("")).content.strip() == ""


@shows("limits.long")
def test_a_long_text_is_kept_whole(face, writer, word):
    text = "The harbour is large. " * 150 + word
    uid = writer.remember(text)
    assert [found.text for found in face.find(word) if found.id == uid] == [text]


@shows("limits.beyond")
def test_a_text_that_is_too_long_is_refused(face):
    with face.refuses("value"):
        face.remember("x" * face.longest + "x")


@shows("limits.blank")
@pytest.mark.parametrize("query", ["", " \t\n", "?!"])
def test_a_blank_question_is_answered(face, writer, word, query):
    writer.remember(word)
    assert len(face.find(query, 2)) <= 2


@shows("limits.count")
@pytest.mark.parametrize("least", [True, False], ids=["too few", "too many"])
def test_as_many_as_may_be_can_be_asked_for(face, least):
    with face.refuses("value"):
        face.find("harbour", 0 if least else face.most + 1)


@shows("limits.types")
@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("find", {"query": 5}),
        ("find", {"query": ["a"]}),
        ("find", {"query": "a", "k": 1.5}),
        ("remember", {"text": 5}),
        ("remember", {"text": None}),
        ("remember", {"text": "a", "tags": 5}),
        ("remember", {"text": "a", "tags": [5]}),
        ("erase", {"uid": 5}),
    ],
)
def test_values_of_another_type_are_refused(face, verb, arguments):
    if verb in face.verbs() and verb not in face.lenient:
        with face.refuses("type"):
            getattr(face, verb)(**arguments)
