"""Turns: which episodes are of one conversation, what answers what, and whom that may serve."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import Clock, WordEmbedder

from engram import Engram, ObserveInput

NOON = datetime(2024, 2, 1, 12, tzinfo=UTC)


def minutes(number):
    return NOON + timedelta(minutes=number)


def keys_of(memory, ids):
    with memory._store.reading():
        return [memory._store.episodes.key(uid, None) for uid in ids]


def turns_of(memory, ids):
    """Of each episode: which begins its conversation, which it answers, whether of an assistant.

    Episodes are counted from 1; 0 is none.
    """
    keys = keys_of(memory, ids)
    places = {0: 0} | {key: at for at, key in enumerate(keys, start=1)}
    with memory._store.reading():
        found = memory._store.turns.of(np.array(keys, dtype=np.int64))
    return [
        (places[began], places[asked], by_one)
        for began, asked, by_one in zip(
            found.conversation.tolist(),
            found.answers.tolist(),
            found.assistant.tolist(),
            strict=True,
        )
    ]


def said(text, who, minute=0.0, **more):
    actors = [who] if isinstance(who, str) else who
    return ObserveInput(text, actors=actors, timestamp=minutes(minute), **more)


def test_a_conversation_ends_with_an_hour_of_silence(memory):
    ids = memory.observe_many(
        [said("a", "Ann", 0), said("b", "Bob", 60), said("c", "Ann", 120.1), said("d", "Bob", 121)]
    )
    assert [turn[0] for turn in turns_of(memory, ids)] == [1, 1, 3, 3]


def test_what_nobody_said_is_no_turn(memory):
    ids = memory.observe_many([said("a?", "Ann"), said("note", []), said("b", "Bob")])
    assert turns_of(memory, ids) == [(1, 0, False), (0, 0, False), (1, 1, False)]


@pytest.mark.parametrize(
    "mark", ["?", "？", "؟", "\u037e", "՞", "፧", "⸮", "‽", "⁇", "⁈", "⁉", "﹖", "꘏", "꛷"]
)
def test_a_question_mark_of_any_script_asks(memory, mark):
    ids = memory.observe_many([said(f"so{mark} well", "Ann"), said("yes", "Bob")])
    assert turns_of(memory, ids)[1] == (1, 1, False)


@pytest.mark.parametrize(
    ("first", "second", "answers"),
    [
        (said("so?", "Ann"), said("yes", "Bob"), True),
        (said("so.", "Ann"), said("yes", "Bob"), False),
        (said("so?", "Ann"), said("yes", "Ann"), False),
        (said("so?", ["Ann", "Bob"]), said("yes", ["Bob", "Ann"]), False),
        (said("so?", "Ann"), said("yes", ["Ann", "Bob"]), True),
        (said("so?", "user"), said("yes", "assistant"), False),
        (said("so?", "assistant"), said("yes", "user"), False),
        (said("so?", "Ann"), said("yes", " AI "), False),
    ],
)
def test_what_answers(memory, first, second, answers):
    assert turns_of(memory, memory.observe_many([first, second]))[1][1] == int(answers)


def test_a_member_of_an_enumeration_is_the_provenance_it_says(memory):
    source = StrEnum("Source", ["USER"]).USER
    ids = memory.observe_many(
        [said("so?", "Ann", provenance="user"), said("yes", "Bob", provenance=source)]
    )
    assert turns_of(memory, ids)[1] == (1, 1, False)


def test_who_is_an_assistant(memory):
    them = [["assistant"], ["AI"], ["bot "], ["model"], ["Assistant"]]
    actors = [*them, ["user"], ["Ann"], ["ai", "x"], ["Bot"], ["Ai"], ["Agent"]]
    ids = memory.observe_many([said("a", who) for who in actors])
    assert [turn[2] for turn in turns_of(memory, ids)] == [True] * 5 + [False] * 6


TRUST = [
    {"provenance": "user"},
    {"provenance": "tool"},
    {"provenance": "user", "quarantined": True},
    {"provenance": "tool", "quarantined": True},
]


@pytest.mark.parametrize("one", TRUST)
@pytest.mark.parametrize("other", TRUST)
def test_nothing_is_taken_from_what_is_trusted_otherwise(memory, one, other):
    ids = memory.observe_many([said("so?", "Eve", **one), said("yes", "Ann", 1, **other)])
    assert turns_of(memory, ids)[1] == ((1, 1, False) if one == other else (2, 0, False))


def test_agents_do_not_share_conversations(open_memory):
    ids = [open_memory(name).observe("so?", actors=[str(name)]) for name in (None, "a", "b")]
    assert [turn[:2] for turn in turns_of(open_memory(), ids)] == [(1, 0), (2, 0), (3, 0)]


def test_conversations_at_one_time_are_told_apart_by_their_tags(memory):
    ids = memory.observe_many(
        [
            said("so?", "Ann", 0, tags=["one", "x"]),
            said("so?", "Zoë", 1, tags=["two"]),
            said("yes", "Bob", 2, tags=["x", "one"]),
            said("no", "Bob", 3, tags=["two"]),
        ]
    )
    assert [turn[:2] for turn in turns_of(memory, ids)] == [(1, 0), (2, 0), (1, 1), (2, 2)]


def test_an_erased_question_is_answered_no_more(memory):
    ids = memory.observe_many([said("so?", "Ann"), said("yes", "Bob", 1), said("ok", "Ann", 2)])
    memory.forget(ids[0])
    keys = np.array(keys_of(memory, ids[1:]))
    with memory._store.reading():
        found = memory._store.turns.of(keys)
        assert memory._store._connection.execute("SELECT count(*) FROM turn").get == 2
    assert found.answers.tolist() == [0, 0]
    assert len(set(found.conversation.tolist())) == 1
    assert memory.check() == []


def test_tags_that_change_later_leave_the_conversation(memory):
    ids = memory.observe_many([said("so?", "Ann", tags=["t"]), said("yes", "Bob", tags=["t"])])
    first, _ = keys_of(memory, ids)
    with memory._store.writing():
        memory._store.retag(first, ["other"], 0)
    assert turns_of(memory, ids)[1] == (1, 1, False)
    assert memory.check() == []


def test_keys_in_any_order_and_of_nothing(memory):
    ids = memory.observe_many([said("so?", "Ann"), said("yes", "Bob", 1)])
    first, second = keys_of(memory, ids)
    with memory._store.reading():
        found = memory._store.turns.of(np.array([-5, second, 999, first, second]))
        nothing = memory._store.turns.of(np.empty(0, dtype=np.int64))
    assert found.answers.tolist() == [0, first, 0, 0, first]
    assert found.conversation.tolist() == [0, first, 0, first, first]
    assert [len(nothing.conversation), len(nothing.answers), len(nothing.assistant)] == [0, 0, 0]


def twin(written):
    """The same in plain Python, slowly; `written` are pairs of agent and item."""
    turns = []
    for place, (agent, item) in enumerate(written, start=1):
        thread = agent, frozenset(item.tags), item.provenance, item.quarantined
        before = [
            one
            for one in turns
            if one["thread"] == thread
            and timedelta(0) <= item.timestamp - one["at"] <= timedelta(hours=1)
        ]
        last = max(before, key=lambda one: (one["at"], one["place"]), default=None)
        assistant = [name.lower() for name in item.actors] == ["assistant"]
        began, asked = last["began"] if last else place, 0
        if last and "?" in last["item"].content and not assistant and not last["assistant"]:
            asked = last["place"] * (set(last["item"].actors) != set(item.actors))
        turn = {"place": place, "thread": thread, "at": item.timestamp, "item": item}
        if item.actors:
            turns.append(turn | {"assistant": assistant, "began": began})
        yield (began, asked, assistant) if item.actors else (0, 0, False)


items = st.builds(
    ObserveInput,
    st.sampled_from(["so?", "yes", "well? no."]),
    actors=st.sampled_from([["Ann"], ["Bob"], ["assistant"], ["Ann", "Bob"], []]),
    tags=st.sampled_from([[], ["t"], ["t", "u"], ["u", "t", "t"]]),
    timestamp=st.integers(0, 10).map(lambda part: minutes(20 * part)),
    provenance=st.sampled_from(["user", "tool"]),
    quarantined=st.booleans(),
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([None, "a"]), st.lists(items, min_size=1)), max_size=6))
def test_any_history_has_the_conversations_of_its_twin(batches):
    with Engram(embedder=WordEmbedder()) as memory:
        ids = []
        for agent, batch in batches:
            memory._agent = agent
            ids += memory.observe_many(batch)
        written = [(agent, item) for agent, batch in batches for item in batch]
        assert turns_of(memory, ids) == list(twin(written))
        assert memory.check() == []


def test_an_export_comes_back_with_its_conversations(open_memory, file, tmp_path):
    memory = open_memory()
    ids = memory.observe_many(
        [said("so?", "Ann"), said("note", []), said("yes", "Bob", 1), said("ok?", "Ann", 2)]
    )
    for number, write in enumerate((memory.export_lines, memory.export_json)):
        write(file)
        copy = open_memory(path=tmp_path / f"{number}.engram")
        (copy.import_json if number else copy.import_lines)(file)
        assert turns_of(copy, ids) == turns_of(memory, ids)
        assert copy.check() == []


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("DELETE FROM episode_label", "2 turns are of episodes without actors"),
        ("UPDATE turn SET occurred_at = 1", "2 turns are not at the time of their episodes"),
        ("UPDATE turn SET answers = 7", "2 turns go on with what was written after them"),
        ("UPDATE turn SET conversation = 2", "1 turns go on with what was written after them"),
    ],
)
def test_the_check_finds_turns_that_cannot_be(memory, damage, problem):
    memory.observe_many([said("so?", "user"), said("yes", "user", 1)])
    with memory._store.writing():
        memory._store._connection.execute(damage)
    assert memory.check() == [problem]


def test_no_trace_of_erased_turns(path):
    with Engram(path, embedder=WordEmbedder(), clock=Clock()) as memory:
        memory.observe_many([said("so?", "Ann"), said("yes", "Bob", 1)])
        memory.forget_entity("Ann")
        memory.forget_entity("Bob")
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM turn").fetchone() == (0,)
    connection.close()
