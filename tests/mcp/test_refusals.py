"""Calls that are refused: the client is told why, and nothing happened."""

from __future__ import annotations

import pytest
from tool_client import AGENT

from engram import Engram

BOB = "agent://acme.example/bob"
TRIPLE = {"subject": "Ivan", "predicate": "lives_in", "object": "Omsk"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"content": "x", "subject": "Ivan"}, "takes no subject"),
        ({"content": "x", "predicate": "is"}, "takes no predicate"),
        ({"content": "x", "object": "Omsk"}, "takes no object"),
        ({}, "needs content"),
        ({"content": ""}, "needs content"),
        ({"content": None}, "needs content"),
        ({"content": "x", "shared": True}, "takes no shared"),
        ({"content": "x", "source": "id"}, "takes no source"),
        ({"kind": "semantic", "content": "x", **TRIPLE}, "takes no content"),
        ({"kind": "semantic"}, "needs subject, predicate and object"),
        ({"kind": "semantic", **TRIPLE, "subject": None}, "needs subject"),
        ({"kind": "semantic", **TRIPLE, "predicate": ""}, "needs subject"),
        ({"kind": "semantic", **TRIPLE, "object": ""}, "needs subject"),
        ({"kind": "semantic", **TRIPLE, "object": " "}, "needs subject"),
        ({"kind": "semantic", **TRIPLE, "provenance": "tool"}, "takes no provenance"),
        ({"kind": "semantic", **TRIPLE, "provenance": ""}, "takes no provenance"),
        ({"kind": "semantic", **TRIPLE, "content": ""}, "takes no content"),
        ({"kind": "semantic", **TRIPLE, "tags": []}, "takes no tags"),
        ({"content": "x", "subject": ""}, "takes no subject"),
        ({"content": "x", "source": ""}, "takes no source"),
        ({"kind": "semantic", **TRIPLE, "tags": ["a"]}, "takes no tags"),
        ({"kind": "semantic", **TRIPLE, "actors": ["a"]}, "takes no actors"),
        ({"kind": "semantic", **TRIPLE, "source": "nothing"}, "there is no such episode"),
        ({"kind": "procedural", "content": "x"}, "'procedural' is not supported"),
        ({"kind": "Episodic", "content": "x"}, "kind must be episodic or semantic"),
        ({"content": "x", "provenance": "user"}, "cannot claim"),
        ({"content": "x", "provenance": "unknown"}, "provenance must be tool or external"),
        ({"content": "x", "provenance": ""}, "provenance must be tool or external"),
        ({"content": "x", "timestamp": "yesterday"}, "timestamp is no ISO 8601 date"),
        ({"content": "x", "timestamp": "0001-01-01T00:00:00+14:00"}, "timestamp is no"),
        ({"content": "x", "agent_id": BOB}, "agent_id is not this server's"),
        ({"content": 5}, "content: Input should be a valid string"),
        ({"content": "x", "tags": "work"}, "tags: Input should be a valid list"),
        ({"content": "x", "shared": "perhaps"}, "shared: Input should be a valid boolean"),
        ({"content": "x", "tag": ["a"]}, "an unknown parameter; it takes content, kind, agent_id,"),
        ({"content": " \n"}, "needs content"),
        ({"content": "x", "shared": 1}, "shared: Input should be a valid boolean"),
    ],
    ids=str,
)
def test_a_refused_memory_leaves_nothing(shared, arguments, reason):
    before = shared.result("stats")
    refusal = shared.refusal("remember", read_untrusted=True, **arguments)
    assert reason in refusal
    # Neither in the store nor in the session; others that share the server make the file grow.
    after = shared.result("stats")
    assert (after["counts"], after["session"]) == (before["counts"], before["session"])
    assert after["session"]["untrusted"] is False


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "\ud800"},
        {"content": "x", "tags": ["\ud800"]},
        {"content": "x", "actors": ["\ud800"], "provenance": "tool"},
        *({"kind": "semantic", **TRIPLE, part: "\ud800"} for part in TRIPLE),
    ],
    ids=ascii,
)
def test_what_is_no_text_leaves_nothing(inside, arguments):
    """No line of JSON brings it; a program that serves the tools otherwise might."""
    client = inside(provenance="user")
    before = client.result("stats")
    refusal = client.refusal("remember", read_untrusted=True, **arguments)
    assert "lone surrogates" in refusal
    assert client.result("stats") == before
    assert before["session"]["untrusted"] is False


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("recall", {}, "query: Field required"),
        ("recall", {"query": "x", "limit": 0}, "limit: Input should be greater than or equal to 1"),
        (
            "recall",
            {"query": "x", "limit": 1001},
            "limit: Input should be less than or equal to 1000",
        ),
        ("recall", {"query": "x", "limit": "many"}, "limit: Input should be a valid integer"),
        ("recall", {"query": "x", "mode": "psychic"}, "mode must be one of"),
        ("recall", {"query": "x", "kind": "procedural"}, "kind must be one of"),
        ("recall", {"query": "x", "as_of": "then"}, "as_of is no ISO 8601 date"),
        ("recall", {"query": "x", "since": "then"}, "since is no ISO 8601 date"),
        ("recall", {"query": "x", "until": "then"}, "until is no ISO 8601 date"),
        ("recall", {"query": "x", "agent_id": BOB}, "agent_id is not this server's"),
        ("recall", {"query": "x", "k": 3}, "an unknown parameter; it takes query, limit,"),
        *(
            ("recall", {"query": "x", "limit": wrong}, "limit: Input should be a valid integer")
            for wrong in (True, "3", 2.5, None)
        ),
        *(
            ("recall", {"query": "x", "trusted_only": wrong}, "should be a valid boolean")
            for wrong in ("yes", 1, None)
        ),
        ("why", {"memory_id": "nothing"}, "memory not found"),
        ("why", {}, "memory_id: Field required"),
        ("forget", {"memory_id": "nothing"}, "memory not found"),
        ("timeline", {"entity": "x", "known_at": "then"}, "known_at is no ISO 8601 date"),
        ("contradictions", {"entity": "x"}, "an unknown parameter; it takes limit"),
        ("stats", {"verbose": True}, "an unknown parameter; it takes agent_id"),
        ("recent", {"limit": 0}, "limit: Input should be greater"),
        ("recent", {"limit": 1001}, "limit: Input should be less"),
        ("timeline", {"entity": "x", "limit": 0}, "limit: Input should be greater"),
        ("contradictions", {"limit": 1001}, "limit: Input should be less"),
        ("recent", {"cursor": "elsewhere"}, "cursor is not one"),
        ("stats", {"agent_id": BOB}, "agent_id is not this server's"),
    ],
    ids=str,
)
def test_a_refused_call_says_why(shared, tool, arguments, reason):
    assert reason in shared.refusal(tool, **arguments)
    assert shared.result("stats")["session"]["untrusted"] is False


@pytest.mark.parametrize("wrong", ["yes", 1, 0.0, None])
def test_what_was_read_is_said_by_a_boolean(inside, wrong):
    client = inside(provenance="user")
    refusal = client.refusal("remember", content="x", read_untrusted=wrong)
    assert refusal == "read_untrusted: Input should be a valid boolean"
    assert client.result("stats")["session"]["untrusted"] is False


def test_a_whole_number_is_an_integer(shared):
    assert shared.result("recall", query="x", limit=2.0) == []


def test_an_unknown_tool_is_an_error(shared):
    done = shared.call("reflect")
    assert done.is_error
    assert done.content[0].text == "Unknown tool: reflect"


def test_a_refusal_is_short_and_quotes_nothing(shared):
    secret = "canary-47" * 1000
    for arguments in (
        {"content": [secret]},
        {"content": "x", "timestamp": secret},
        {"content": "x", "kind": secret},
        {"content": "x", "provenance": secret},
        {"content": "x", "agent_id": secret},
        {"content": "x", **{f"canary{n}": secret for n in range(1000)}},
    ):
        refusal = shared.refusal("remember", **arguments)
        assert "canary" not in refusal
        assert len(refusal) < 600
    # The name is what is wrong here.
    assert len(shared.refusal("remember", **{secret: 1})) < 200
    assert "canary" not in shared.err


def test_the_own_agent_may_be_named(shared):
    uid = shared.result("remember", content="Named.", agent_id=AGENT)["id"]
    found = shared.result("recall", query="Named.", agent_id=AGENT, limit=20)
    assert uid in [item["id"] for item in found]
    assert shared.result("stats", agent_id=AGENT)["agent_id"] == AGENT


@pytest.fixture
def bobs(path) -> dict[str, str]:
    """What another agent has in the store, by what it is."""
    with Engram(path, agent_id=BOB) as bob:
        return {
            "episode": bob.observe("Bob's diary.", provenance="user"),
            "private": bob.assert_fact("Bob", "keeps", "a secret", shared=False),
            "shared": bob.assert_fact("Bob", "likes", "chess"),
        }


def test_what_is_anothers_is_out_of_reach(serve, bobs):
    client = serve()
    for private in ("episode", "private"):
        for tool in ("why", "forget"):
            assert client.refusal(tool, memory_id=bobs[private]).startswith("memory not found")
    refusal = client.refusal("remember", kind="semantic", source=bobs["episode"], **TRIPLE)
    assert refusal.startswith("there is no such episode")
    assert client.result("stats")["session"]["untrusted"] is False
    assert "another agent" in client.refusal("forget", memory_id=bobs["shared"])
    assert client.result("why", memory_id=bobs["shared"])["agent_id"] == BOB
    found = {
        item["id"]
        for item in [
            *client.result("recall", query="Bob secret diary chess", limit=50),
            *client.result("timeline", entity="Bob")["facts"],
            *client.result("recent")["memories"],
        ]
    }
    assert found == {bobs["shared"]}


def test_a_server_without_identity_serves_the_file_and_nobody_by_name(serve, bobs):
    client = serve(agent=None)
    for tool, arguments in (
        ("remember", {"content": "x"}),
        ("recall", {"query": "x"}),
        ("stats", {}),
    ):
        for name in (BOB, AGENT, ""):
            refusal = client.refusal(tool, agent_id=name, **arguments)
            assert refusal.startswith("agent_id is not this server's")
    assert client.result("stats")["counts"]["episodic"] == 1
    for uid in bobs.values():
        client.result("why", memory_id=uid)
    assert client.result("remember", content="Nobody's.")["agent_id"] is None
    client.result("forget", memory_id=bobs["private"])
