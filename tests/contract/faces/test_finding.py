"""Remembering, finding, filtering, and looking at the memory as of a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from contract.faces.behaviours import reason, shows

FERRY = "The ferry to the island departs at nine"
MORNING = datetime(2020, 3, 1, 8, 30, 0, 250_001, tzinfo=UTC)
EVENING = MORNING + timedelta(hours=12)


@shows("remember.kept")
def test_what_is_remembered_is_found_again(face, word):
    text = f"  {word} \t is “quoted”, 'twice'; and\n on two lines  "
    uid = face.remember(text)
    assert [found.text for found in face.find(word) if found.id == uid] == [text]


@shows("remember.tags")
def test_tags_are_kept(face, word):
    uid = face.remember(word, tags=["zeta", "alpha beta", "ключ"])
    assert only(face.find(word), uid).tags == ["zeta", "alpha beta", "ключ"]


@shows("remember.actors")
def test_actors_are_kept(face, word):
    uid = face.remember(word, actors=["Zoë", "Ann Lee"])
    assert only(face.find(word), uid).actors == ["Zoë", "Ann Lee"]


@shows("remember.answers")
def test_what_may_answer_a_question_is_noted(writer, shared, word):
    said = [(f"Where is {word}?", "Ann"), (f"{word} is here", "Bob")]
    ids = [writer.remember(text, actors=[who], tags=[word], at=MORNING) for text, who in said]
    store = shared.operator._store
    with store.reading():
        keys = [store.episodes.key(uid, None) for uid in ids]
        turns = store.turns.of(np.array(keys))
    assert turns.answers.tolist() == [0, keys[0]]
    assert turns.conversation.tolist() == [keys[0], keys[0]]


@shows("remember.time")
def test_the_time_of_an_event_is_kept(face, word):
    there = MORNING.astimezone(timezone(timedelta(hours=5, minutes=30)))
    uid = face.remember(word, at=there)
    assert only(face.find(word), uid).at == MORNING


@shows("remember.twice")
def test_the_same_text_twice_is_two_memories(face, word):
    ids = {face.remember(word), face.remember(word)}
    assert len(ids) == 2
    assert ids <= {found.id for found in face.find(word)}


@shows("find.words")
def test_a_word_finds_its_memory_first(face, writer, word):
    uid = writer.remember(f"Somebody said {word} to the doorman")
    writer.remember("Somebody said nothing to the doorman")
    assert face.find(f"{word} doorman")[0].id == uid


@pytest.fixture(scope="session")
def ferry(shared):
    return shared.operator.observe(FERRY)


@shows("find.meaning")
def test_meaning_finds_what_has_no_word_in_common(face, ferry):
    uid = ferry if reason(type(face), "pairs.found") is None else face.remember(FERRY)
    assert uid in {found.id for found in face.find("When can we catch our boat?")}


@shows("find.count")
def test_no_more_are_found_than_asked_for(face, writer, word):
    for number in range(3):
        writer.remember(f"{word} number {number}")
    assert [len(face.find(word, k)) for k in (1, 2, 3)] == [1, 2, 3]


@shows("find.operators")
@pytest.mark.parametrize("query", ['"{} AND NOT', "{}*) OR NEAR(", "content:{}", "-{} ^ '%"])
def test_operators_are_words(face, writer, word, query):
    uid = writer.remember(f"{word} stands here")
    assert uid in {found.id for found in face.find(query.format(word))}


@shows("find.project")
def test_the_memories_of_a_project_are_listed(face, shared, word, tmp_path):
    one, other = (tmp_path / folder for folder in ("one", "other"))
    kept = shared.operator.remember(word, project=one)
    shared.operator.remember(word, project=other)
    shared.operator.observe(word)
    assert [found.id for found in face.listed(str(one))] == [kept]


@shows("get.id")
def test_a_memory_is_read_by_its_id(face, word):
    uid = face.remember(word)
    assert (face.get(uid).id, face.get(uid).text) == (uid, word)


@shows("get.unknown")
def test_an_id_of_nothing_is_refused(face):
    with face.refuses("missing"):
        face.get("01890a5d-ac96-774b-bcce-b302099a8057")


@shows("filter.tags")
def test_all_tags_must_be_there(face, writer, word):
    both = writer.remember(f"{word} one", tags=["a", word, "b"])
    one = writer.remember(f"{word} two", tags=["a", word])
    writer.remember(f"{word} three")
    assert ids(face.find(word, tags=[word, "a"])) == {both, one}
    assert ids(face.find(word, tags=["b", word])) == {both}


@shows("filter.actors")
def test_all_actors_must_be_there(face, word):
    both = face.remember(f"{word} one", actors=["Ann", word])
    one = face.remember(f"{word} two", actors=[word])
    face.remember(f"{word} three")
    assert ids(face.find(word, actors=[word])) == {both, one}
    assert ids(face.find(word, actors=[word, "Ann"])) == {both}


@shows("filter.time")
def test_both_times_are_included(face, word):
    first, last = two = face.remember(word, at=MORNING), face.remember(word, at=EVENING)
    tick = timedelta(microseconds=1)

    def found(since, until):
        return ids(face.find(word, since=since, until=until)) & {*two}

    assert found(MORNING, EVENING) == {first, last}
    assert found(MORNING + tick, EVENING) == {last}
    assert found(MORNING, EVENING - tick) == {first}


@shows("filter.provenance")
def test_one_source_is_found(face, word):
    two = {source: face.remember(word, provenance=source) for source in ("user", "tool")}
    for source, uid in two.items():
        assert ids(face.find(word, provenance=source)) & {*two.values()} == {uid}


@shows("filter.value")
def test_the_members_of_a_filter_must_be_there(face, word):
    both = face.remember(f"{word} one", colour="red", size={"legs": 4})
    face.remember(f"{word} two", colour="red", size={"legs": 2})
    face.remember(f"{word} three", colour="blue", size={"legs": 4})
    assert ids(face.find(word, colour="red", size={"legs": 4})) == {both}


@shows("filter.quarantine")
def test_what_is_quarantined_can_be_left_out(face, shared, word):
    clean = shared.operator.observe(word)
    doubtful = shared.operator.observe(word, quarantined=True)
    assert ids(face.find(word)) >= {clean, doubtful}
    assert ids(face.find(word, exclude_quarantined=True)) & {clean, doubtful} == {clean}


@shows("time.as_of")
def test_nothing_later_is_found(face, word):
    first, last = two = face.remember(word, at=MORNING), face.remember(word, at=EVENING)
    tick = timedelta(microseconds=1)
    for moment, there in ((EVENING, {first, last}), (MORNING, {first}), (MORNING - tick, set())):
        assert ids(face.find(word, as_of=moment)) & {*two} == there


def ids(found):
    return {one.id for one in found}


def only(found, uid):
    [memory] = [one for one in found if one.id == uid]
    return memory
