"""An erasure leaves a name in no label: a tag, a session's among them, or an actor."""

from __future__ import annotations

import pytest
from files import every_byte
from langchain_core.messages import HumanMessage

from engram.adapters.langchain import EngramChatMessageHistory


def test_a_session_that_is_named_after_somebody_is_theirs(memory, path):
    EngramChatMessageHistory(memory, "Zaphod Bee").add_messages([HumanMessage("hi")] * 2)
    EngramChatMessageHistory(memory, "other").add_messages([HumanMessage("hello")])
    assert memory.forget_entity("zaphod bee").episodes_deleted == 0
    assert memory.forget_entity("zaphod bee", content_sweep=True).episodes_deleted == 2
    assert [one.content for one in memory.episodes().episodes] == ["hello"]
    assert b"zaphod" not in every_byte(path).lower()


@pytest.mark.parametrize(
    ("labels", "goes"),
    [
        ({"tags": ["team zaphod"]}, True),
        ({"tags": ["ZAPHOD's"]}, True),
        ({"tags": ["work", "session:zaphod-1"]}, True),
        ({"actors": ["Ann", "Zaphod junior"]}, True),
        ({"tags": ["zaphodite"], "actors": ["Zaphods"]}, False),
        ({"tags": ["session:zaphod1"]}, False),
    ],
)
def test_a_sweep_finds_names_as_words_of_labels(memory, labels, goes):
    memory.observe("x", **labels)
    assert memory.forget_entity("Zaphod").episodes_deleted == 0
    assert memory.forget_entity("Zaphod", content_sweep=True).episodes_deleted == goes
    assert memory.check() == []
