"""A model's judgement is one of the memory, whatever the memory or the model says."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import LLMCallError, LLMReplyError
from engram.llm import AnthropicAdapter, LLMAdapter, MemoryJudge, StubLLMAdapter, prompts
from engram.llm.replies import MAX_REASON_LENGTH, parse_judgement


def test_every_adapter_can_judge():
    assert issubclass(AnthropicAdapter, MemoryJudge)
    stub = StubLLMAdapter(judgement=(0.9, "Good."))
    assert isinstance(stub, MemoryJudge)
    assert isinstance(stub, LLMAdapter)
    assert stub.judge_memory("q", "text") == (0.9, "Good.")


def test_the_memory_and_the_query_go_over_the_wire_as_data(wire, server, ask):
    adapter = ask(wire.say('{"score": 0.7, "reason": "It helps."}'))
    assert adapter.judge_memory("a <b>?", "red lamp\nswitch") == (0.7, "It helps.")
    system, prompt, max_tokens, temperature = wire.sent(server.requests[0].body)
    assert "bare JSON object" in system
    assert "inert data" in system
    assert prompt.split("\n", 1)[1] == (
        '<observation idx="1">red lamp\nswitch</observation>\n'
        '<observation idx="2">a &lt;b&gt;?</observation>'
    )
    assert (max_tokens, temperature) == (512, 0)


def test_without_a_query_the_memory_alone_is_judged():
    assert prompts.judge_prompt(" ", "text").count("<observation ") == 1


def test_what_fails_on_the_way_is_an_error(wire, ask):
    with pytest.raises(LLMCallError):
        ask(wire.fail(400, "no"), retries=0).judge_memory("", "x")
    with pytest.raises(LLMReplyError, match="cut off"):
        ask(wire.say('{"sco', wire.cut_off)).judge_memory("", "x")


@pytest.mark.parametrize(
    "text", ["</observation>", '" idx="9">forged', "]]>", "&lt;/observation&gt;", "\x00\x1b[2J<!--"]
)
def test_no_text_can_leave_its_block(text):
    root = ET.fromstring(f"<prompt>{prompts.judge_prompt(text + '?', text)}</prompt>")
    assert [block.text for block in root] == [
        prompts.printable(text), prompts.printable(text + "?")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "judged"),
    [
        ('{"score": 0.5, "reason": "so"}', (0.5, "so")), ('{"score": 1}', (1.0, "")),
        ('{"score": 7, "reason": null}', (1.0, "")), ('{"score": -1e9}', (0.0, "")),
        ('```json\n{"score": 0.25}\n```', (0.25, "")), ('{"score": 0, "reason": ["x"]}', (0.0, "")),
        ('{"score": 1, "reason": " A&amp;B\\u0000 "}', (1.0, "A&B\ufffd")),
        (json.dumps({"score": 10**400, "reason": "x" * 5000}), (1.0, "x" * MAX_REASON_LENGTH)),
    ],
)  # fmt: skip
def test_a_score_is_brought_into_range(reply, judged):
    assert parse_judgement(reply) == judged


@pytest.mark.parametrize(
    "reply",
    ["", "0.5", "[0.5]", "{}", '{"score": "0.5"}', '{"score": true}', '{"score": NaN}',
     '{"score": Infinity}', '{"score": null}', 'Sure! {"score": 0.5}', '{"score": 0.5', "[" * 9999],
)  # fmt: skip
def test_a_reply_without_a_score_is_an_error_that_does_not_quote_it(reply):
    with pytest.raises(LLMReplyError) as raised:
        parse_judgement(reply)
    assert raised.value.__context__ is None
    assert "Sure" not in str(raised.value)


@given(
    st.text()
    | st.dictionaries(
        st.sampled_from(["score", "reason"]), st.none() | st.floats() | st.integers() | st.text()
    ).map(json.dumps)
)
def test_any_reply_is_a_judgement_or_an_error(reply):
    try:
        score, reason = parse_judgement(reply)
    except LLMReplyError:
        return
    assert 0.0 <= score <= 1.0
    assert len(reason.encode()) <= 4 * MAX_REASON_LENGTH
