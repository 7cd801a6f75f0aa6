"""`EngramChatMessageHistory`: exact round trips, conversations that do not mix, the newest kept."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

from engram import AsyncEngram, Engram, ObserveInput
from engram.adapters.langchain import EngramChatMessageHistory, EngramRetriever
from engram.errors import Closed, InvalidArgument, InvalidType

CALL = {"name": "find_order", "args": {"number": 7}, "id": "call-1", "type": "tool_call"}
BLOCKS = [
    {"type": "text", "text": "What is on this picture of Globex?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
]
EVERY_KIND: list[BaseMessage] = [
    SystemMessage("Answer briefly.", name="operator"),
    HumanMessage("Where is my order?", id="m-1", additional_kwargs={"mood": "cross"}),
    HumanMessage("Grüße, 你好 \U0001f600\x00!"),
    HumanMessage(BLOCKS),
    HumanMessage(""),
    AIMessage(
        "",
        tool_calls=[CALL],
        usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
        response_metadata={"model_name": "fake", "logprobs": [-0.5, -1e-9]},
    ),
    AIMessage(
        "Odd call.",
        invalid_tool_calls=[
            {"name": "f", "args": "{", "id": "2", "error": "cut", "type": "invalid_tool_call"}
        ],
    ),
    ToolMessage("On its way.", tool_call_id="call-1", name="find_order", artifact={"rows": [1]}),
    ToolMessage([{"type": "text", "text": "Broken"}], tool_call_id="call-2", status="error"),
    FunctionMessage(name="old", content="An old function spoke."),
    AIMessage("It is on its way."),
    ChatMessage(role="moderator", content="Be nice."),
    AIMessageChunk(content="streamed", chunk_position="last"),
    HumanMessageChunk(content="a chunk"),
]


@pytest.fixture
def history(memory: Engram) -> EngramChatMessageHistory:
    return EngramChatMessageHistory(engram=memory, session_id="one")


def said(history: EngramChatMessageHistory) -> list[str]:
    return [message.text for message in history.messages]


@pytest.mark.parametrize("message", EVERY_KIND, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("session", ["one", None])
def test_a_message_comes_back_as_it_was(memory, message, session):
    EngramChatMessageHistory(memory, session).add_messages([message])
    [back] = EngramChatMessageHistory(memory, session).messages
    assert type(back) is type(message)
    assert back == message
    assert back.model_dump() == message.model_dump()


def test_turns_come_back_in_order_in_another_process_too(memory, history, path):
    history.add_messages(EVERY_KIND[:6])
    history.add_messages(EVERY_KIND[6:])
    assert history.messages == EVERY_KIND
    memory.close()
    script = (
        "import sys, json\n"
        "sys.path[:0] = [sys.argv[2]]\n"
        "from engram import Engram\n"
        "from engram.adapters.langchain import EngramChatMessageHistory\n"
        "from langchain_core.messages import message_to_dict\n"
        "with Engram(sys.argv[1]) as memory:\n"
        "    history = EngramChatMessageHistory(memory, 'one')\n"
        "    print(json.dumps([message_to_dict(m) for m in history.messages]))\n"
    )
    here = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", script, path, here], capture_output=True, text=True, check=True
    )
    assert [m["data"]["content"] for m in json.loads(done.stdout)] == [
        m.content for m in EVERY_KIND
    ]


@pytest.mark.parametrize(
    ("message", "content", "role", "provenance"),
    [
        (HumanMessage("hello"), "hello", "human", "user"),
        (HumanMessage(BLOCKS), "What is on this picture of Globex?", "human", "user"),
        (HumanMessageChunk(content="hello"), "hello", "human", "user"),
        (AIMessage("hello"), "hello", "ai", "external"),
        (AIMessageChunk(content="hello"), "hello", "ai", "external"),
        (AIMessage("", tool_calls=[CALL]), 'find_order {"number": 7}', "ai", "external"),
        (SystemMessage("hello"), "hello", "system", "external"),
        (ToolMessage("hello", tool_call_id="1"), "hello", "tool", "tool"),
        (FunctionMessage(name="f", content="hello"), "hello", "function", "tool"),
        (ChatMessage(role="moderator", content="hello"), "hello", "chat", "external"),
        (ChatMessage(role="user", content="hello"), "hello", "chat", "user"),
        (ChatMessage(role="tool", content="hello"), "hello", "chat", "tool"),
    ],
)
def test_what_the_memory_has_of_a_message(memory, history, message, content, role, provenance):
    history.add_message(message)
    [episode] = memory.episodes().episodes
    assert episode.content == content
    assert episode.tags == [role, "session:one"]
    assert (episode.provenance, episode.quarantined) == (provenance, False)


def test_what_was_said_is_found_by_recall_and_by_the_retriever(memory, history):
    history.add_messages(EVERY_KIND)
    assert memory.recall("picture Globex", 1)[0].episode.metadata
    own = EngramRetriever(engram=memory, k=1, filters={"tags": ["session:one", "tool"]})
    assert own.invoke("order")[0].metadata["provenance"] == "tool"


def test_the_shortcuts(history):
    history.add_user_message("What did Ivan say about Globex?")
    history.add_ai_message("Ivan joined Globex last week.")
    assert history.messages == [
        HumanMessage("What did Ivan say about Globex?"),
        AIMessage("Ivan joined Globex last week."),
    ]
    assert str(history).startswith("Human: What did Ivan")


# Sessions.


def test_sessions_do_not_mix(memory):
    names = ["one", "two", "session:one", "One", "Ünïcode 你", None]
    for name in names:
        EngramChatMessageHistory(memory, name).add_user_message(f"said in {name}")
    for name in names:
        assert said(EngramChatMessageHistory(memory, name)) == [f"said in {name}"]


def test_agents_do_not_mix(open_memory):
    for agent in ("a", "b"):
        EngramChatMessageHistory(open_memory(agent), "s").add_user_message(f"to {agent}")
    assert said(EngramChatMessageHistory(open_memory("a"), "s")) == ["to a"]


def test_two_histories_of_a_session_see_each_others_turns(open_memory):
    one = EngramChatMessageHistory(open_memory(), "s")
    two = EngramChatMessageHistory(open_memory(), "s")
    one.add_user_message("a")
    two.add_user_message("b")
    one.add_user_message("c")
    assert said(one) == said(two) == ["a", "b", "c"]


def test_the_list_is_the_callers_own(history):
    history.add_user_message("a")
    history.messages.append(HumanMessage("b"))
    assert said(history) == ["a"]


# What is no message.


def test_a_note_of_a_session_that_is_no_message_is_none(memory, history):
    memory.observe("a note", tags=["session:one"])
    memory.observe("by hand", tags=["session:one", "user"])
    assert history.messages == [HumanMessage("by hand")]


# The newest are kept.


@pytest.mark.parametrize("session", ["long", None])
def test_the_newest_messages_are_kept(memory, clock, session):
    long = EngramChatMessageHistory(memory, session)
    for start in range(0, 1200, 300):
        long.add_messages([HumanMessage(str(n)) for n in range(start, start + 300)])
        clock.advance(seconds=1)
    EngramChatMessageHistory(memory, "other").add_messages([AIMessage("x")] * 50)
    memory.observe_many([ObserveInput(f"noise {n}") for n in range(50)])
    assert said(long) == [str(n) for n in range(200, 1200)]
    assert said(EngramChatMessageHistory(memory, session, limit=3)) == ["1197", "1198", "1199"]
    assert len(EngramChatMessageHistory(memory, session, limit=1100).messages) == 1100


def test_only_the_tail_is_read(memory, history, monkeypatch):
    history.add_messages([HumanMessage(str(n)) for n in range(40)])
    read = 0
    pages = Engram.episodes

    def counted(self: Engram, **options: object) -> object:
        nonlocal read
        page = pages(self, **options)
        read += len(page.episodes)
        return page

    monkeypatch.setattr(Engram, "episodes", counted)
    assert said(EngramChatMessageHistory(memory, "one", limit=5)) == ["35", "36", "37", "38", "39"]
    assert read <= 6


# Clearing and erasing.


@pytest.mark.parametrize("session", ["one", None])
def test_clear_begins_anew_and_the_memory_keeps_all(memory, session):
    history = EngramChatMessageHistory(memory, session)
    history.clear()
    history.add_messages([HumanMessage("a"), AIMessage("b")])
    history.clear()
    assert history.messages == []
    history.add_user_message("c")
    assert said(history) == ["c"]
    assert said(EngramChatMessageHistory(memory, session)) == ["a", "b", "c"]
    asyncio.run(history.aclear())
    assert history.messages == []


@pytest.mark.parametrize("session", ["one", None])
def test_erase_erases_the_conversation_and_nothing_else(open_memory, path, session):
    memory = open_memory()
    history = EngramChatMessageHistory(memory, session, limit=2)
    other = EngramChatMessageHistory(memory, "other")
    other.add_user_message("kept")
    memory.observe("a note")
    history.add_messages([HumanMessage(f"zanzibar {n}") for n in range(7)])
    history.clear()
    assert history.erase() == 7
    assert history.erase() == 0
    assert history.messages == []
    assert said(other) == ["kept"]
    assert memory.count() == 2
    memory.close()
    assert b"zanzibar" not in path.read_bytes()


# What cannot be kept or read.


@pytest.mark.parametrize(
    "refused",
    [
        "a str",
        RemoveMessage(id="1"),
        HumanMessage("x", additional_kwargs={"f": object()}),
        HumanMessage("x", additional_kwargs={"f": float("nan")}),
        HumanMessage("\ud800"),
    ],
)
def test_what_is_refused_leaves_nothing(memory, history, refused):
    with pytest.raises((InvalidArgument, InvalidType)):
        history.add_messages([HumanMessage("before"), refused])
    assert memory.count() == 0


def test_an_artifact_that_json_has_no_form_for_is_left_out_and_said_so(history, caplog):
    with caplog.at_level(logging.WARNING):
        history.add_message(ToolMessage("x", tool_call_id="1", artifact=object()))
    assert history.messages == [ToolMessage("x", tool_call_id="1")]
    assert "artifact" in caplog.text


@pytest.mark.parametrize("kept", ["x", {}, {"type": "human"}, {"type": "new", "data": {}}, [1]])
def test_a_message_that_cannot_be_read_is_its_text(memory, history, caplog, kept):
    tags = ["human", "session:one"]
    memory.observe("the text", tags=tags, metadata={"langchain_message": kept})
    assert history.messages == [HumanMessage("the text")]
    assert "langchain-core" in caplog.text


def test_a_store_that_cannot_be_read_is_no_empty_history(memory, history):
    history.add_user_message("a")
    memory.close()
    with pytest.raises(Closed):
        _ = history.messages
    with pytest.raises(Closed):
        asyncio.run(history.aget_messages())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"session_id": ""}, InvalidArgument),
        ({"session_id": 7}, InvalidType),
        ({"limit": 0}, InvalidArgument),
        ({"limit": "5"}, InvalidType),
        ({"engram": AsyncEngram()}, InvalidType),
    ],
)
def test_arguments_are_checked(memory, options, error):
    with pytest.raises(error):
        EngramChatMessageHistory(**{"engram": memory} | options)


# In chains.

HISTORY_IS_DEPRECATED = pytest.mark.filterwarnings(
    "ignore:.*RunnableWithMessageHistory:DeprecationWarning",
    "ignore:.*RunnableWithMessageHistory:PendingDeprecationWarning",
)


def conversation(memory: Engram, seen: list[list[BaseMessage]]) -> RunnableWithMessageHistory:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Be brief."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    model = FakeListChatModel(responses=["first answer", "second answer"])
    return RunnableWithMessageHistory(
        prompt | (lambda value: seen.append(value.to_messages()) or value) | model,
        lambda session_id: EngramChatMessageHistory(memory, session_id),
        input_messages_key="question",
        history_messages_key="history",
    )


@HISTORY_IS_DEPRECATED
def test_a_chain_with_a_history(memory):
    seen: list[list[BaseMessage]] = []
    chain = conversation(memory, seen)
    ann = {"configurable": {"session_id": "ann"}}
    bob = {"configurable": {"session_id": "bob"}}
    chain.invoke({"question": "I am Ann."}, ann)
    chain.invoke({"question": "I am Bob."}, bob)
    chain.invoke({"question": "Who am I?"}, ann)
    assert [message.content for message in seen[2]] == [
        "Be brief.",
        "I am Ann.",
        "first answer",
        "Who am I?",
    ]
    assert memory.count(tags=["session:bob"]) == 2


@HISTORY_IS_DEPRECATED
def test_an_awaited_and_streamed_chain_with_a_history(memory):
    seen: list[list[BaseMessage]] = []
    chain = conversation(memory, seen)
    config = {"configurable": {"session_id": "ann"}}

    async def talk() -> str:
        await chain.ainvoke({"question": "I am Ann."}, config)
        parts = [part.content async for part in chain.astream({"question": "Who am I?"}, config)]
        return "".join(parts)

    assert asyncio.run(talk()) == "second answer"
    assert [m.content for m in seen[1]][1:3] == ["I am Ann.", "first answer"]
    history = EngramChatMessageHistory(memory, "ann")
    assert said(history) == ["I am Ann.", "first answer", "Who am I?", "second answer"]


def test_awaited_calls(history):
    async def use() -> list[BaseMessage]:
        await history.aadd_messages([HumanMessage("a"), AIMessage("b")])
        found = await history.aget_messages()
        await history.aclear()
        assert await history.aget_messages() == []
        assert await history.aerase() == 2
        return found

    assert asyncio.run(use()) == [HumanMessage("a"), AIMessage("b")]
