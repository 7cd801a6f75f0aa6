"""What is a message of a conversation is shown by its history and erased by it; nothing else is."""

from __future__ import annotations

import logging
import threading

import pytest
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from llama_index.core.base.llms.types import ChatMessage as LlamaMessage
from llama_index.core.base.llms.types import MessageRole, ToolCallBlock

from engram.adapters.langchain import EngramChatMessageHistory
from engram.adapters.llamaindex import EngramMemory

ROLES = ["human", "user", "ai", "assistant", "system", "unknown", "chat", "tool", "function"]
ROLES += ["chatbot", "model", "developer"]


def written_by_hand(memory, clock) -> None:
    for role in ROLES:
        memory.observe(f"by {role}", tags=["note", role])
        clock.advance(seconds=1)
    memory.observe("no message", tags=["note"])
    memory.observe("neither")
    memory.observe("of a session", tags=["user", "session:a"])


def test_episodes_with_a_role_are_messages_when_another_face_wrote_them(memory, clock):
    written_by_hand(memory, clock)
    memory.observe("in two roles", tags=["assistant", "user"])
    assert EngramChatMessageHistory(memory).messages == [
        HumanMessage("by human"),
        HumanMessage("by user"),
        AIMessage("by ai"),
        AIMessage("by assistant"),
        SystemMessage("by system"),
        ChatMessage(content="by unknown", role="unknown"),
        ChatMessage(content="by chat", role="chat"),
        ChatMessage(content="by tool", role="tool"),
        ChatMessage(content="by function", role="tool"),
        AIMessage("by chatbot"),
        AIMessage("by model"),
        SystemMessage("by developer"),
        AIMessage("in two roles"),
    ]


@pytest.mark.parametrize("framework", ["langchain", "llamaindex"])
def test_what_is_erased_is_what_was_shown(memory, clock, framework):
    written_by_hand(memory, clock)
    if framework == "langchain":
        history = EngramChatMessageHistory(memory)
        shown = [message.content for message in history.messages]
    else:
        history = EngramMemory(engram=memory)
        shown = [message.content for message in history.get_all()]
    before = {episode.content for episode in memory.episodes(limit=99).episodes}
    assert history.erase() == len(shown)
    after = {episode.content for episode in memory.episodes(limit=99).episodes}
    assert before - after == set(shown)
    assert after == {"no message", "neither", "of a session"}


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ({"tool_call_id": "1", "status": "new"}, ToolMessage("42", tool_call_id="1")),
        ({"tool_call_id": 7, "status": "new"}, ChatMessage(content="42", role="tool")),
        ({"status": "new"}, ChatMessage(content="42", role="tool")),
        (None, ChatMessage(content="42", role="tool")),
    ],
)
def test_a_tool_message_that_cannot_be_read_is_its_text(memory, caplog, kept, expected):
    metadata = {"langchain_message": {"type": "tool", "data": kept}}
    memory.observe("42", tags=["tool", "session:a"], metadata=metadata)
    with caplog.at_level(logging.WARNING):
        assert EngramChatMessageHistory(memory, "a").messages == [expected]
    assert "its text is used" in caplog.text


def test_a_conversation_is_erased_in_one_transaction(memory, monkeypatch):
    history = EngramChatMessageHistory(memory, "a")
    history.add_messages([HumanMessage(str(n)) for n in range(120)])
    remove = memory._store.episodes.remove
    removed = 0

    def fails_late(key: int) -> None:
        nonlocal removed
        removed += 1
        if removed == 100:
            raise MemoryError
        remove(key)

    monkeypatch.setattr(memory._store.episodes, "remove", fails_late)
    with pytest.raises(MemoryError):
        history.erase()
    monkeypatch.undo()
    assert len(history.messages) == 120
    assert history.erase() == 120
    assert memory.check() == []


def test_erasing_at_once_counts_each_message_once(open_memory):
    histories = [EngramChatMessageHistory(open_memory(), "a") for _ in range(3)]
    histories[0].add_messages([HumanMessage(str(n)) for n in range(60)])
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda one=one: counts.append(one.erase())) for one in histories
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 60


@pytest.mark.parametrize("name", ["Zoë", "日本語", "кофе"])
def test_a_bare_tool_call_is_found_by_its_words_in_any_script(memory, name):
    call = {"name": "look", "args": {"who": name}, "id": "1"}
    EngramChatMessageHistory(memory, "a").add_messages([AIMessage("", tool_calls=[call])])
    block = ToolCallBlock(tool_call_id="1", tool_name="look", tool_kwargs={"who": name})
    EngramMemory(engram=memory).put(LlamaMessage(role=MessageRole.ASSISTANT, blocks=[block]))
    for found in memory.recall(name, 2):
        assert found.episode.content == f'look {{"who": "{name}"}}'
