"""A conversation that one framework's adapter wrote is read by the other's, tool calls and all."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages import ChatMessage as LangChainMessage
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock

from engram.adapters.langchain import EngramChatMessageHistory
from engram.adapters.llamaindex import EngramMemory

CALL = ToolCallBlock(tool_call_id="1", tool_name="weather", tool_kwargs={"town": "Bergen"})
ARGS = {"id": "1", "name": "weather", "args": {"town": "Bergen"}}


@pytest.mark.parametrize("session", ["a", None])
def test_langchain_reads_what_llamaindex_wrote(memory, session):
    EngramMemory(engram=memory, session_id=session).put_messages(
        [
            ChatMessage("Be brief.", role=MessageRole.SYSTEM),
            ChatMessage("Rain?"),
            ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text="Well,"), CALL]),
            ChatMessage(role=MessageRole.ASSISTANT, blocks=[CALL]),
            ChatMessage("Rain.", role=MessageRole.TOOL, additional_kwargs={"tool_call_id": "1"}),
            ChatMessage("nobody asked", role=MessageRole.TOOL),
            ChatMessage("Yes.", role=MessageRole.MODEL),
        ]
    )
    assert EngramChatMessageHistory(engram=memory, session_id=session).messages == [
        SystemMessage("Be brief."),
        HumanMessage("Rain?"),
        AIMessage("Well,", tool_calls=[ARGS]),
        AIMessage("", tool_calls=[ARGS]),
        ToolMessage("Rain.", tool_call_id="1"),
        LangChainMessage(content="nobody asked", role="tool"),
        AIMessage("Yes."),
    ]


@pytest.mark.parametrize("session", ["a", None])
def test_llamaindex_reads_what_langchain_wrote(memory, session):
    EngramChatMessageHistory(engram=memory, session_id=session).add_messages(
        [
            SystemMessage("Be brief."),
            HumanMessage("Rain?"),
            AIMessage("", tool_calls=[ARGS]),
            ToolMessage("Rain.", tool_call_id="1"),
            AIMessage([{"type": "text", "text": "Yes."}]),
        ]
    )
    assert EngramMemory(engram=memory, session_id=session).get_all() == [
        ChatMessage("Be brief.", role=MessageRole.SYSTEM),
        ChatMessage("Rain?"),
        ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text=""), CALL]),
        ChatMessage("Rain.", role=MessageRole.TOOL, additional_kwargs={"tool_call_id": "1"}),
        ChatMessage("Yes.", role=MessageRole.ASSISTANT),
    ]


def test_arguments_that_are_text_stay_readable(memory):
    call = ToolCallBlock(tool_call_id="1", tool_name="weather", tool_kwargs="Bergen")
    EngramMemory(engram=memory).put(ChatMessage(role=MessageRole.ASSISTANT, blocks=[call]))
    [message] = EngramChatMessageHistory(engram=memory).messages
    assert message.tool_calls[0]["args"] == {"input": "Bergen"}


@pytest.mark.parametrize("kept", [7, {"blocks": [7]}, {"blocks": [{}]}, {"additional_kwargs": 7}])
@pytest.mark.parametrize("member", ["llama_index_message", "langchain_message"])
def test_metadata_that_no_adapter_wrote_leave_the_text(memory, member, kept):
    memory.observe("hello", tags=["human"], metadata={member: kept})
    assert EngramChatMessageHistory(engram=memory).messages == [HumanMessage("hello")]
    assert EngramMemory(engram=memory).get_all() == [ChatMessage("hello")]
