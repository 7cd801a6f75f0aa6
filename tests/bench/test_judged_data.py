"""Files of data sets, read into what is asked and what is right."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest
from judged_files import composed, conversation, documents, instance, message, official, write

from engram.bench.judged.conversations import locomo, longmemeval
from engram.bench.judged.data import sampled, turns_of
from engram.bench.judged.documents import collection
from engram.bench.judged.reading import read
from engram.cli.failures import BadFileError


@pytest.fixture
def read_as(tmp_path):
    def read_content(reader, content):
        return reader(read(write(tmp_path / "data.json", content)))

    return read_content


def talk(*places):
    """A conversation of one session whose turns have these ids."""
    lines = [{"speaker": "Ana", "dia_id": place, "text": "Hello."} for place in places]
    date = "1:56 pm on 8 May, 2023"
    return conversation("c", conversation={"session_1": lines, "session_1_date_time": date})


def turns(haystack, *, whole_sessions=False, user_only=False):
    return turns_of(haystack, whole_sessions=whole_sessions, user_only=user_only)


def test_an_official_file_has_a_haystack_for_each_question(read_as):
    data = read_as(longmemeval, official(2))
    assert [[one.id for one in each.questions] for each in data.haystacks] == [["q0"], ["q1"]]
    (question,) = data.haystacks[0].questions
    assert question.text == "What pet do I have in Lisbon?"
    assert question.at == datetime(2023, 5, 30, 20, 8, tzinfo=UTC)
    labels = data.labels["q0"]
    assert (labels.kind, labels.abstention) == ("single-session-user", False)
    assert (labels.turns, labels.sessions) == (["answer_0_1#3"], ["answer_0_1"])


def test_sessions_are_in_the_order_of_their_dates_and_turns_a_second_apart(read_as):
    (haystack,) = read_as(longmemeval, official(1)).haystacks
    assert [(turn.id, turn.at) for turn in turns(haystack)] == [
        ("filler_0#1", datetime(2023, 5, 20, 8, 1, 0, tzinfo=UTC)),
        ("filler_0#2", datetime(2023, 5, 20, 8, 1, 1, tzinfo=UTC)),
        ("filler#1", datetime(2023, 5, 21, tzinfo=UTC)),  # the blank turn behind it is left out
        ("answer_0_1#1", datetime(2023, 5, 22, 9, 0, 0, tzinfo=UTC)),
        ("answer_0_1#2", datetime(2023, 5, 22, 9, 0, 1, tzinfo=UTC)),
        ("answer_0_1#3", datetime(2023, 5, 22, 9, 0, 2, tzinfo=UTC)),
    ]


def test_user_turns_alone(read_as):
    (haystack,) = read_as(longmemeval, official(1)).haystacks
    assert {turn.speaker for turn in turns(haystack, user_only=True)} == {"user"}
    whole = turns(haystack, whole_sessions=True, user_only=True)
    assert [(turn.id, turn.session, turn.speaker) for turn in whole] == [
        (name, name, "") for name in ("filler_0", "filler", "answer_0_1")
    ]
    assert whole[2].text == (
        "user: I live in Lisbon now.\nuser: Lovely, I have a cat named Mochi with me."
    )


def test_a_session_listed_twice_is_one_session_with_turns_of_its_own(read_as):
    twice = [[message("user", "Hello there.")]] * 2
    dates = ["2023/05/20 (Sat) 08:01"] * 2
    one = instance(
        0,
        haystack_session_ids=["s", "s"],
        haystack_dates=dates,
        haystack_sessions=twice,
        answer_session_ids=["s", "elsewhere"],
    )
    data = read_as(longmemeval, [one])
    found = turns(data.haystacks[0])
    assert [(turn.id, turn.session) for turn in found] == [("s#1", "s"), ("s~2#1", "s")]
    assert data.labels["q0"].sessions == ["s"]


def test_abstentions_are_told_by_their_id(read_as):
    data = read_as(longmemeval, [instance(0, question_id="q0_abs")])
    assert data.labels["q0_abs"].abstention


def test_a_composed_file_has_one_haystack(read_as):
    data = read_as(longmemeval, composed(3))
    (haystack,) = data.haystacks
    assert [one.id for one in haystack.questions] == ["q0", "q1", "q2"]
    assert data.labels["q1"].turns == ["answer_1_1#3"]


def test_a_packed_file_is_read_as_the_file_in_it(tmp_path):
    plain = write(tmp_path / "plain.json", official(2))
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert longmemeval(read(tmp_path / "packed.json.gz")) == longmemeval(read(plain))


def test_a_conversation(read_as):
    data = read_as(locomo, [conversation("conv-1"), conversation("conv-2")])
    first, second = data.haystacks
    assert [one.id for one in second.questions] == [f"conv-2:{n}" for n in range(1, 6)]
    assert first.questions[0].at is None
    assert [(turn.id, turn.session, turn.speaker) for turn in turns(first)] == [
        ("D2#1", "D2", "Ben"),
        ("D2#2", "D2", "Ana"),
        ("D10#1", "D10", "Ana"),
        ("D10#2", "D10", "Ben"),
    ]
    assert turns(first)[3].text == "Congratulations! Here is my garden. [shares tall roses]"
    assert turns(first)[2].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def test_evidence_is_read_as_far_as_it_names_turns(read_as):
    labels = read_as(locomo, [conversation("c")]).labels
    assert [(one.kind, one.turns, one.sessions) for one in labels.values()] == [
        ("4", ["D10#1"], ["D10"]),
        ("1", ["D2#1", "D2#2"], ["D2"]),
        ("2", ["D10#2"], ["D10"]),
        ("3", [], []),
        ("5", ["D10#1"], ["D10"]),
    ]


def test_a_collection(read_as):
    data = read_as(collection, documents())
    (haystack,) = data.haystacks
    assert [(turn.id, turn.text) for turn in turns(haystack)] == [
        ("a", "Wings\nLift of a wing in a slipstream."),
        ("b", "Heat\nConduction of heat in a slab."),
    ]
    assert data.labels["1"].grades == {"a": 2}
    assert data.labels["2"].turns == ["b"]


def test_the_highest_relevance_there_is(read_as):
    data = read_as(collection, documents() | {"qrels": [["1", "a", 2**63 - 1], ["2", "b", -1]]})
    assert [data.labels[one].grades for one in "12"] == [{"a": 2**63 - 1}, {}]


@pytest.mark.parametrize(
    ("reader", "content"),
    [
        (longmemeval, "[]]"),
        (longmemeval, '{"a": 1}'),
        (longmemeval, json.dumps([conversation("c")])),
        (longmemeval, json.dumps([instance(0), instance(0)])),
        (longmemeval, json.dumps([instance(0, haystack_dates=["2023/05/20"])])),
        (longmemeval, json.dumps([instance(0, question_date="yesterday")])),
        (longmemeval, json.dumps(composed(1) | {"questions": [{}]})),
        (locomo, json.dumps(official(1))),
        (locomo, json.dumps(documents())),
        (locomo, json.dumps([conversation("c"), conversation("c")])),
        (locomo, json.dumps([conversation("c", conversation={"session_1": [{}]})])),
        (locomo, json.dumps([conversation("c", conversation={})])),
        (locomo, json.dumps([conversation("c", conversation={"session_1": []})])),
        (locomo, json.dumps([talk("D1:1", "D1:1")])),
        (locomo, json.dumps([talk("D1:1", "D01:001")])),
        (longmemeval, json.dumps([instance(0, haystack_sessions=[[], [], []])])),
        (longmemeval, json.dumps([instance(0, haystack_session_ids=["s", "s", "s~2"])])),
        *(
            (longmemeval, json.dumps([instance(0, question_type=name)]))
            for name in ("all", "all_with_abstention", "flagged", "type_weighted")
        ),
        (collection, json.dumps(official(1))),
        (collection, json.dumps(documents() | {"qrels": [["1", "a"]]})),
        *(
            (collection, json.dumps(documents() | {"qrels": [["1", "a", relevance]]}))
            for relevance in (2**63, -(2**64), 10**400, 0.5, "1", True, None)
        ),
        (collection, json.dumps(documents() | {"corpus": documents()["corpus"] * 2})),
    ],
)
def test_another_file_is_refused_by_its_name(tmp_path, reader, content):
    (tmp_path / "data.json").write_text(content)
    with pytest.raises(BadFileError, match=r"data\.json is no ") as refused:
        reader(read(tmp_path / "data.json"))
    assert "Lisbon" not in str(refused.value)


def test_a_damaged_packed_file_is_refused(tmp_path):
    (tmp_path / "data.gz").write_bytes(gzip.compress(b"[]" * 99)[:-9])
    with pytest.raises(BadFileError, match="cut off"):
        read(tmp_path / "data.gz")


def test_a_sample_has_every_kind_by_its_share_in_the_datas_order(read_as):
    instances = official(20)
    for one in instances[:15]:
        one["question_type"] = "common"
    for one in instances[15:]:
        one["question_type"] = "rare"
    data = read_as(longmemeval, instances)

    def drawn(seed: int, limit: int | None = None) -> list[str]:
        few = sampled(data, 8, seed, limit)
        return [question.id for haystack in few.haystacks for question in haystack.questions]

    assert sum(int(one[1:]) >= 15 for one in drawn(0)) == 2
    assert len(drawn(0)) == 8
    assert drawn(0) == sorted(drawn(0), key=lambda one: int(one[1:])) == drawn(0)
    assert drawn(0) != drawn(1)
    assert drawn(0, limit=3) == drawn(0)[:3]
