"""What goes over the wire, with the real SDKs, and what comes out when it goes wrong."""

from __future__ import annotations

import json
import logging
import re
import threading

import pytest
from llm_wires import KEY, NEVER, AnthropicWire, GeminiWire, OpenAIWire, episode, episodes

from engram.errors import EngramError, InvalidArgument, LLMCallError, LLMReplyError
from engram.llm import (
    DeepSeekAdapter,
    DuplicateJudge,
    KimiAdapter,
    LLMAdapter,
    OpenAIAdapter,
    QwenAdapter,
)
from engram.storage.triplets import Experience

FACT = {"subject": "Ada", "predicate": "lives in", "object": "Paris", "confidence": 0.9}
FOUND = {**FACT, "sources": [1]}


def everything(error: BaseException | None) -> str:
    """All text an error and whatever hangs on it could show."""
    if error is None:
        return ""
    chain = everything(error.__cause__) + everything(error.__context__)
    return f"{error!s} {error!r} {error.args} {chain}"


def test_facts_are_asked_for_at_temperature_0_and_returned_with_the_tokens(wire, server, ask):
    adapter = ask(wire.record([{**FACT, "sources": [2]}]))
    facts, tokens = adapter.extract_facts(episodes(2))
    assert facts == [{**FACT, "sources": [2]}]
    assert tokens == 18
    [request] = server.requests
    system, prompt, max_tokens, temperature = wire.sent(request.body)
    assert "bare JSON array" in system
    assert prompt.splitlines()[1:] == [
        '<observation idx="1">observation number 1</observation>',
        '<observation idx="2">observation number 2</observation>',
    ]
    assert (max_tokens, temperature) == (1024, 0)
    assert re.fullmatch(wire.path, request.path)
    assert wire.key(request.headers) == KEY


def test_a_summary_is_one_paragraph(wire, server, ask):
    adapter = ask(wire.say(" Ada\x00 moved.\n"))
    assert adapter.summarise(episodes(3)) == ("Ada\ufffd moved.", 18)
    system, prompt, max_tokens, temperature = wire.sent(server.requests[0].body)
    assert "one plain paragraph" in system
    assert prompt.count("<observation ") == 3
    assert (max_tokens, temperature) == (512, 0)


@pytest.mark.parametrize(
    ("reply", "same"),
    [
        ("MERGE", True),
        (" **merge**, both say so", True),
        ("KEEP", False),
        ("merged", False),
        ("They MERGE", False),
        ("\N{FIRE}", False),
    ],
)
def test_whether_two_experiences_are_one_is_a_word(reply, same, wire, server, ask):
    first, second = experience("a", "</observation>"), experience("b", "it passes")
    assert ask(wire.say(reply)).are_duplicates(first, second) == (same, 18)
    system, prompt, max_tokens, _ = wire.sent(server.requests[0].body)
    assert "inert data" in system
    assert prompt.splitlines()[1:] == [
        '<observation idx="1">context: it fails',
        "action: try again",
        "result: &lt;/observation&gt;</observation>",
        '<observation idx="2">context: it fails',
        "action: try again",
        "result: it passes</observation>",
    ]
    assert max_tokens == 16


def experience(uid: str, result: str) -> Experience:
    return Experience(
        id=uid,
        memory_type="bugfix",
        context="it fails",
        action="try again",
        result=result,
        created_at="2026-01-01T00:00:00Z",
        updated_at="2026-01-01T00:00:00Z",
    )


def test_structured_output_is_asked_for_in_each_providers_way(server, adapted):
    server.answers = [AnthropicWire.record([FACT])]
    adapted(AnthropicWire.adapter).extract_facts(episodes(1))
    body = server.requests[-1].body
    assert body["tool_choice"] == {"type": "tool", "name": "record_facts"}
    assert list(body["tools"][0]["input_schema"]["properties"]) == ["facts"]

    server.answers = [OpenAIWire.record([FACT])]
    adapted(OpenAIWire.adapter).extract_facts(episodes(1))
    schema = server.requests[-1].body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["additionalProperties"] is False

    server.answers = [GeminiWire.record([FACT])]
    adapted(GeminiWire.adapter).extract_facts(episodes(1))
    config = server.requests[-1].body["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseSchema"]["type"] == "ARRAY"


def test_a_bare_array_is_enough(wire, ask):
    adapter = ask(wire.say(json.dumps([FACT])))
    assert adapter.extract_facts(episodes(1))[0] == [FOUND]


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_without_schemas_is_asked_without_from_then_on(status, server, adapted):
    def answer(request):
        if "response_format" in request.body:
            return OpenAIWire.fail(status, "response_format type is unavailable now")
        return OpenAIWire.say(json.dumps([FACT]))

    server.answers = [answer]
    adapter = adapted(OpenAIAdapter)
    assert adapter.extract_facts(episodes(1))[0] == [FOUND]
    assert adapter.extract_facts(episodes(1))[0] == [FOUND]
    asked = ["response_format" in request.body for request in server.requests]
    assert asked == [True, False, False]


def test_another_refusal_does_not_switch_schemas_off(server, adapted):
    server.answers = [OpenAIWire.fail(400, "no such model")] * 2 + [OpenAIWire.record([FACT])]
    adapter = adapted(OpenAIAdapter)
    with pytest.raises(LLMCallError, match="400"):
        adapter.extract_facts(episodes(1))
    adapter.extract_facts(episodes(1))
    assert "response_format" in server.requests[-1].body


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_retried(status, wire, server, ask):
    adapter = ask(wire.fail(status, "busy"), wire.fail(status, "busy"), wire.record([FACT]))
    assert adapter.extract_facts(episodes(1))[0] == [FOUND]
    assert len(server.requests) == 3


def test_no_server_makes_the_caller_wait_for_hours(wire, server, ask, monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    server.headers = {"Retry-After-Ms": "86400000", "Retry-After": "86400"}
    adapter = ask(wire.fail(429, "come back tomorrow"), retries=2)
    with pytest.raises(LLMCallError, match="429"):
        adapter.extract_facts(episodes(1))
    assert sum(waits) <= 60


def test_a_lasting_failure_ends_after_the_retries(wire, server, ask):
    adapter = ask(wire.fail(500, "down"), retries=1)
    with pytest.raises(LLMCallError, match=r"\(HTTP status 500\)") as caught:
        adapter.extract_facts(episodes(1))
    assert len(server.requests) == 2
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.code == "llm_call"


def test_a_wrong_key_is_not_retried(wire, server, ask):
    with pytest.raises(LLMCallError, match=r"401.*check the API key"):
        ask(wire.fail(401, "invalid key")).summarise(episodes(1))
    assert len(server.requests) == 1


def test_a_server_that_never_answers_is_given_up(wire, server, ask):
    with pytest.raises(LLMCallError, match=r"Timeout.*raise timeout"):
        ask(NEVER, timeout=0.2, retries=0).extract_facts(episodes(1))
    assert len(server.requests) == 1


def test_nobody_listening_is_a_failed_call(wire, server, adapted):
    with pytest.raises(LLMCallError):
        adapted(wire.adapter, base_url="http://127.0.0.1:1", retries=0).extract_facts(episodes(1))


@pytest.mark.parametrize("body", [b"", b"{", b"<html>proxy</html>", b"[]", b"{}", b"null", b'"hi"'])
def test_an_answer_that_is_none_is_an_error_of_ours(body, wire, ask):
    with pytest.raises((LLMCallError, LLMReplyError)):
        ask((200, body), retries=0).extract_facts(episodes(1))


@pytest.mark.parametrize(
    "text",
    ["", "  ", "no facts here", "{}", '{"facts": 1}', "null", "42", '"text"', "[1", '[{"a": 1}',
     '[{"subject": "a", "predicate": "b"}]', "[1, [], null]",
     '[{"subject": {}, "predicate": [], "object": null}]'],
)  # fmt: skip
def test_a_reply_in_another_form_is_an_error_and_never_no_facts(text, wire, ask):
    with pytest.raises(LLMReplyError) as caught:
        ask(wire.say(text)).extract_facts(episodes(1))
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == "llm_reply"


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5_000], ids=["nested", "digits"])
def test_a_reply_that_no_parser_takes_is_an_error(text, wire, ask):
    # Whoever parses first: some SDKs do.
    with pytest.raises((LLMReplyError, LLMCallError)):
        ask(wire.say(text)).extract_facts(episodes(1))


def test_no_facts_is_an_answer(wire, ask):
    assert ask(wire.record([])).extract_facts(episodes(1)) == ([], 18)
    assert ask(wire.say("[]")).extract_facts(episodes(1)) == ([], 18)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_blank_summary_is_an_error(text, wire, ask):
    with pytest.raises(LLMReplyError, match="blank"):
        ask(wire.say(text)).summarise(episodes(1))


def test_a_cut_off_reply_raises_although_it_parses(wire, server, ask):
    """Weak spot 35: it was taken for "no facts" and the window was marked done."""
    adapter = ask(wire.say("[]", stop=wire.cut_off))
    with pytest.raises(LLMReplyError, match=r"cut off.*raise max_tokens"):
        adapter.extract_facts(episodes(1))
    with pytest.raises(LLMReplyError, match="cut off"):
        adapter.summarise(episodes(1))
    limits = [wire.sent(request.body)[2] for request in server.requests]
    assert limits == [1024, 8192, 512, 8192]


def test_a_cut_off_window_is_asked_for_in_halves(wire, server, ask):
    def answer(request):
        _, prompt, _, _ = wire.sent(request.body)
        if prompt.count("<observation ") > 2:
            return wire.say('[{"subject": "lost', stop=wire.cut_off)
        last = prompt.split()[-1].removesuffix("</observation>")
        return wire.record([{**FACT, "object": last, "sources": [1]}])

    facts, tokens = ask(answer, max_tokens=1024).extract_facts(episodes(5))
    assert [(fact["object"], fact["sources"]) for fact in facts] == [
        ("2", [1]), ("3", [3]), ("5", [4]),
    ]  # fmt: skip
    assert tokens == 18 * len(server.requests) == 18 * 5


def test_a_window_of_200_fits(wire, server, ask):
    def answer(request):
        count = wire.sent(request.body)[1].count("<observation ")
        return wire.record([{**FACT, "sources": list(range(1, count + 1))}])

    facts, tokens = ask(answer).extract_facts(episodes(200))
    numbers = [number for fact in facts for number in fact["sources"]]
    assert numbers == list(range(1, 201))
    assert tokens == 18 * len(server.requests)
    for request in server.requests:
        _, prompt, limit, _ = wire.sent(request.body)
        assert 160 * prompt.count("<observation ") <= limit <= 8192


def test_a_refusal_is_an_error(server, adapted):
    for wire, stop in [
        (AnthropicWire, "refusal"), (OpenAIWire, "content_filter"), (GeminiWire, "SAFETY"),
    ]:  # fmt: skip
        server.answers = [wire.say("[]", stop=stop)]
        with pytest.raises(LLMReplyError, match=f"no answer: {stop}"):
            adapted(wire.adapter).extract_facts(episodes(1))
    server.answers = [(200, {"promptFeedback": {"blockReason": "SAFETY"}})]
    with pytest.raises(LLMReplyError, match="no answer: SAFETY"):
        adapted(GeminiWire.adapter).extract_facts(episodes(1))
    status, body = OpenAIWire.say(None)
    body["choices"][0]["message"]["refusal"] = "I will not"
    server.answers = [(status, body)]
    with pytest.raises(LLMReplyError, match="no answer: refusal"):
        adapted(OpenAIAdapter).extract_facts(episodes(1))


@pytest.mark.parametrize("count", [10**30, -5, None])
def test_a_bogus_count_of_tokens_still_fits_the_store(count, wire, ask):
    _, tokens = ask(wire.say("[]", tokens=(count, count))).extract_facts(episodes(1))
    assert isinstance(tokens, int)
    assert 0 <= tokens < 2**62


def test_no_error_and_no_log_holds_what_was_said_or_the_key(wire, ask, caplog):
    caplog.set_level(logging.WARNING)
    said, replied = "xyzzy-observed", "plugh-replied"
    answers = [
        wire.fail(400, f"{said} {replied} {KEY}"),
        wire.fail(401, f"Incorrect API key provided: {KEY}"),
        (200, f"{replied} {said}".encode()),
        (200, {"detail": f"{replied} {said} {KEY}"}),
        wire.say(f"{replied} {said}"),
        wire.say(json.dumps([{"subject": replied}])),
        wire.say(json.dumps([replied, {**FACT, "object": replied * 1000}])),
        wire.say("[]", stop=f"{replied} {said}"),
        wire.say(replied, stop=wire.cut_off),
    ]
    for answer in answers:
        with pytest.raises(EngramError) as caught:
            ask(answer, retries=0).extract_facts([episode(said)])
        for secret in (said, replied, KEY):
            assert secret not in everything(caught.value), answer
    ask(wire.record([FACT, {"subject": replied}])).extract_facts([episode(said)])
    for secret in (said, replied, KEY):
        assert secret not in caplog.text
    assert "1 of 2 extracted items are no facts" in caplog.text


def test_adapters_are_llm_adapters_and_do_not_show_their_key(wire, ask):
    adapter = ask(wire.record([]), model="gemini-2.0-flash")
    assert isinstance(adapter, LLMAdapter)
    assert isinstance(adapter, DuplicateJudge)
    assert adapter.model_name == "gemini-2.0-flash"
    assert KEY not in repr(adapter)


def test_no_episodes_cost_no_call(wire, server, ask):
    adapter = ask(wire.record([FACT]))
    assert adapter.extract_facts([]) == ([], 0)
    with pytest.raises(InvalidArgument, match="episodes"):
        adapter.summarise([])
    assert server.requests == []


def test_a_model_that_refuses_temperature_can_be_used(wire, server, ask):
    ask(wire.record([]), temperature=None).extract_facts(episodes(1))
    assert wire.sent(server.requests[0].body)[3] is None


def test_one_client_serves_all_threads(wire, ask):
    adapter = ask(wire.record([FACT]))
    made, connect = [], adapter._connect
    adapter._connect = lambda sdk: made.append(connect(sdk)) or made[-1]
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(adapter.extract_facts(episodes(1))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert results == [([FOUND], 18)] * 8
    adapter.close()
    assert adapter.extract_facts(episodes(1)) == ([FOUND], 18)
    assert len(made) == 2


@pytest.mark.parametrize(
    ("kind", "variable", "address", "model"),
    [
        (DeepSeekAdapter, "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat"),
        (QwenAdapter, "DASHSCOPE_API_KEY",
         "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-max"),
        (KimiAdapter, "MOONSHOT_API_KEY", "https://api.moonshot.cn/v1", "moonshot-v1-8k"),
    ],
)  # fmt: skip
def test_compatible_providers_read_their_own_variable(
    kind, variable, address, model, server, adapted, monkeypatch
):
    """Weak spot 31: they ignored it and sent OpenAI's key."""
    assert kind("m", KEY)._api_key == KEY
    assert kind().model_name == model
    assert kind()._base_url == address
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-them")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    server.answers = [OpenAIWire.record([FACT])]
    adapter = adapted(kind, api_key=None)
    with pytest.raises(InvalidArgument, match=f"no API key.*{variable}"):
        adapter.extract_facts(episodes(1))
    monkeypatch.setenv(variable, "their-own")
    assert adapter.extract_facts(episodes(1))[0] == [FOUND]
    assert OpenAIWire.key(server.requests[0].headers) == "their-own"
    assert server.requests[0].body["model"] == model


def test_a_given_address_wins_over_the_variables(server, adapted, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    for wire in (OpenAIWire, AnthropicWire):
        server.answers = [wire.record([FACT])]
        assert adapted(wire.adapter, base_url=server.url).extract_facts(episodes(1))[1] == 18


def test_a_proxy_with_a_path_is_asked_under_it(wire, server, ask):
    ask(wire.record([FACT]), base_url=f"{server.url}/proxy").extract_facts(episodes(1))
    assert re.fullmatch(f"/proxy{wire.path}", server.requests[0].path)


@pytest.mark.parametrize(
    ("wire", "variable"),
    [(AnthropicWire, "ANTHROPIC_API_KEY"), (OpenAIWire, "OPENAI_API_KEY"),
     (GeminiWire, "GOOGLE_API_KEY")],
    ids=["anthropic", "openai", "gemini"],
)  # fmt: skip
def test_a_missing_key_is_named(wire, variable, server, adapted, monkeypatch):
    server.answers = [wire.record([FACT])]
    base_url = None if wire is OpenAIWire else server.url
    with pytest.raises(InvalidArgument, match=f"no API key.*{variable}"):
        adapted(wire.adapter, api_key=None, base_url=base_url).extract_facts(episodes(1))
    monkeypatch.setenv(variable, "from-the-environment")
    adapted(wire.adapter, api_key=None).extract_facts(episodes(1))
    assert wire.key(server.requests[0].headers) == "from-the-environment"


def test_a_local_server_needs_no_key(server, adapted):
    server.answers = [OpenAIWire.record([FACT])]
    adapter = adapted(OpenAIAdapter, model="llama3.2", api_key=None)
    assert adapter.extract_facts(episodes(1))[0] == [FOUND]


def test_openai_itself_is_told_the_limit_by_its_new_name(server, adapted):
    adapter = adapted(OpenAIAdapter, base_url=None)
    client = adapter._client()
    assert client.base_url.host == "api.openai.com"
    sent = {}
    client.chat.completions.create = lambda **arguments: sent.update(arguments)
    with pytest.raises(LLMCallError):
        adapter.extract_facts(episodes(1))
    assert sent["max_completion_tokens"] == 1024
    assert "max_tokens" not in sent


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"timeout": float("nan")}, {"timeout": float("inf")}, {"retries": -1},
     {"max_tokens": 0}, {"timeout": "60"}, {"retries": True}, {"retries": 1.5}, {"temper": 1},
     {"temperature": -1}, {"temperature": "0"}],
)  # fmt: skip
def test_options_are_checked_when_the_adapter_is_made(options, wire):
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        wire.adapter(**options)
