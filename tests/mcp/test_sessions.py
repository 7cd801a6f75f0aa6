"""What a session is trusted with, over whole conversations with the real process."""

from __future__ import annotations

import pytest
from tool_client import AGENT

from engram import Engram

TRIPLE = {"subject": "Ivan", "predicate": "lives_in", "object": "Omsk"}
QUESTION = "Where does Ivan live?"
CLEAN = {"untrusted": False, "reason": None, "cause": None}


def state(client) -> dict:
    return client.result("stats")["session"]


@pytest.mark.parametrize(
    ("ceiling", "stored"),
    [
        ("user", {None: "user", "tool": "tool", "external": "external"}),
        ("tool", {None: "tool", "tool": "tool", "external": "external"}),
        ("external", {None: "external", "tool": "external", "external": "external"}),
    ],
)
def test_a_write_is_stored_with_what_server_and_caller_say(serve, path, ceiling, stored):
    client = serve("--provenance", ceiling)
    first = ("unknown" if ceiling != "user" else "user", False)
    assert marks(path, client.result("remember", kind="semantic", **TRIPLE)) == first
    for given, provenance in stored.items():
        told = client.result("remember", content="Ivan lives in Omsk.", provenance=given)
        # The very write that taints the session is quarantined.
        assert (told["provenance"], told["quarantined"]) == (provenance, given is not None)
        assert state(client)["untrusted"] is (given is not None)
        assert marks(path, told) == (provenance, given is not None)
    assert state(client)["reason"] == "the caller wrote content it labelled tool"
    # It does not end: these would be the user's own words.
    later = client.result("remember", content="I like tea.")
    assert (later["provenance"], later["quarantined"]) == (UNTRUSTED.get(ceiling, ceiling), True)
    fact = client.result("remember", kind="semantic", **TRIPLE)
    assert fact["quarantined"] is True
    assert marks(path, fact) == ("unknown", True)


UNTRUSTED = {"user": "external"}


def marks(path, told) -> tuple[str, bool]:
    """The provenance and the quarantine in the file, seen by another session than the client's."""
    with Engram(path, agent_id=AGENT) as memory:
        if told["kind"] == "episodic":
            episode = memory.get(told["id"])
            return episode.provenance, episode.quarantined
        why = memory.why(told["id"])
        return why["provenance"], why["quarantined"]


def test_a_caller_that_says_it_read_untrusted_content_is_believed(serve):
    client = serve("--provenance", "user")
    told = client.result("remember", content="The page says so.", read_untrusted=True)
    assert (told["provenance"], told["quarantined"]) == ("external", True)
    cause = state(client)["cause"]
    assert cause.pop("at")
    assert cause == {
        "tool": "remember",
        "memory_id": None,
        "provenance": None,
        "quarantined": None,
    }
    fact = client.result("remember", kind="semantic", **TRIPLE)
    assert fact["quarantined"] is True


def test_a_session_may_start_untrusted(serve):
    client = serve("--provenance", "user", "--session-untrusted")
    assert state(client)["reason"] == "the session was started untrusted"
    assert state(client)["cause"]["tool"] is None
    told = client.result("remember", content="x")
    assert (told["provenance"], told["quarantined"]) == ("external", True)


def honest(client) -> None:
    """A conversation on nothing but the user's own words."""
    uid = client.result("remember", content="Ivan lives in Omsk, says the user.")["id"]
    client.result("remember", kind="semantic", **TRIPLE)
    client.result("remember", kind="semantic", source=uid, **{**TRIPLE, "object": "Tomsk"})
    kinds = {item["kind"] for item in client.result("recall", query=QUESTION)}
    assert kinds == {"episodic", "semantic"}
    for item in client.result("recall", query=QUESTION):
        assert (item["provenance"], item["quarantined"]) == ("user", False)
        client.result("why", memory_id=item["id"])
    assert client.result("timeline", entity="Ivan")["facts"]
    assert client.result("contradictions")["pairs"]
    assert client.result("recent")["memories"]
    assert state(client) == CLEAN
    assert client.result("remember", content="I like tea.")["quarantined"] is False


def test_an_honest_session_stays_clean_also_after_a_restart(serve):
    for _ in range(2):
        honest(serve("--provenance", "user"))


def test_by_default_the_first_memory_that_is_not_the_users_taints(serve):
    client = serve()
    uid = client.result("remember", content="Ivan lives in Omsk.")["id"]
    assert client.result("recall", query=QUESTION, tags=["none"]) == []
    assert state(client) == CLEAN
    assert client.result("recall", query=QUESTION)[0]["quarantined"] is False
    told = state(client)
    assert told["reason"] == "recall returned a memory of provenance external"
    assert told["cause"].pop("at")
    assert told["cause"] == {
        "tool": "recall",
        "memory_id": uid,
        "provenance": "external",
        "quarantined": False,
    }
    # The first cause stays, and so does the state.
    client.result("why", memory_id=uid)
    client.result("forget", memory_id=uid)
    assert state(client)["reason"] == told["reason"]
    assert client.result("remember", content="x")["quarantined"] is True
    assert client.result("remember", kind="semantic", **TRIPLE)["quarantined"] is True


@pytest.fixture
def mixed(path) -> dict[str, str]:
    """Memories of every sort, by what they are."""
    with Engram(path, agent_id=AGENT) as memory:
        return {
            "user": memory.observe("Ivan lives in Omsk.", provenance="user", tags=["user"]),
            "tool": memory.observe("Ivan moved.", provenance="tool", tags=["tool"]),
            "quarantined": memory.observe(
                "Ivan sails.", provenance="user", quarantined=True, tags=["quarantined"]
            ),
            "fact": memory.assert_fact("Ivan", "plays", "chess"),
            "other fact": memory.assert_fact("Ivan", "plays", "go"),
        }


@pytest.mark.parametrize(
    ("tool", "arguments", "cause", "reason"),
    [
        ("recall", {"query": "Ivan", "tags": ["user"]}, None, None),
        ("recall", {"query": "Ivan", "tags": ["tool"]}, "tool", "a memory of provenance tool"),
        ("recall", {"query": "Ivan", "tags": ["quarantined"]}, "quarantined", "a quarantined"),
        ("recall", {"query": "plays go", "kind": "semantic", "limit": 1}, "other fact", "unknown"),
        ("recall", {"query": "Ivan", "limit": 20, "trusted_only": True}, None, None),
        ("recall", {"query": "Ivan", "kind": "semantic", "trusted_only": True}, None, None),
        ("why", {"memory_id": "user"}, None, None),
        ("why", {"memory_id": "tool"}, "tool", "why returned a memory of provenance tool"),
        ("why", {"memory_id": "quarantined"}, "quarantined", "why returned a quarantined memory"),
        ("why", {"memory_id": "fact"}, "fact", "why returned a memory of provenance unknown"),
        ("timeline", {"entity": "Ivan"}, "fact", "timeline returned"),
        ("timeline", {"entity": "Olga"}, None, None),
        ("contradictions", {}, "fact", "contradictions returned"),
        ("recent", {"tags": ["user"]}, None, None),
        ("recent", {}, "quarantined", "recent returned a quarantined memory"),
        ("recent", {"trusted_only": True}, None, None),
        ("stats", {}, None, None),
        ("forget", {"memory_id": "tool"}, None, None),
    ],
    ids=str,
)
def test_what_is_returned_decides(inside, mixed, tool, arguments, cause, reason):
    client = inside(provenance="user")
    if "memory_id" in arguments:
        arguments = {"memory_id": mixed[arguments["memory_id"]]}
    answer = client.result(tool, **arguments)
    told = state(client)
    if cause is None:
        assert told == CLEAN
    else:
        assert reason in told["reason"]
        assert told["cause"]["tool"] == tool
        assert told["cause"]["memory_id"] == mixed[cause]
    if arguments.get("trusted_only"):
        items = answer["memories"] if tool == "recent" else answer
        kind = arguments.get("kind")
        assert [item["id"] for item in items] == ([] if kind else [mixed["user"]])
    written = client.result("remember", content="x")
    assert written["quarantined"] is (cause is not None)
    assert written["provenance"] == ("external" if cause else "user")


@pytest.mark.parametrize(
    ("tool", "cause"), [("recall", "quarantined"), ("why", "tool"), ("why", "fact")]
)
def test_what_the_process_returns_decides(serve, mixed, tool, cause):
    client = serve("--provenance", "user")
    assert client.result("recall", query="Ivan", tags=["nothing"]) == []
    assert client.result("recall", query="Ivan", tags=["user"])[0]["id"] == mixed["user"]
    client.result("why", memory_id=mixed["user"])
    assert client.refusal("why", memory_id="nothing")
    assert state(client) == CLEAN
    arguments = {"query": "Ivan", "tags": [cause]} if tool == "recall" else {}
    client.result(tool, **(arguments or {"memory_id": mixed[cause]}))
    assert state(client)["cause"]["memory_id"] == mixed[cause]
    written = client.result("remember", content="x")
    assert (written["provenance"], written["quarantined"]) == ("external", True)


def test_a_fact_without_a_source_is_the_sessions_word(inside):
    for ceiling, source in (("user", ["engram-mcp"]), ("tool", []), ("external", [])):
        client = inside(provenance=ceiling)
        uid = client.result("remember", kind="semantic", **TRIPLE)["id"]
        assert client.result("why", memory_id=uid)["extracted_from"] == source


@pytest.mark.parametrize(
    ("ceiling", "source", "expected"),
    [
        ("user", "user", ("user", False)),
        ("user", "tool", ("tool", False)),
        ("user", "quarantined", ("user", True)),
        # No more trusted than the server, whatever the fact rests on.
        ("tool", "user", ("tool", False)),
        ("external", "user", ("external", False)),
        ("external", "tool", ("external", False)),
    ],
)
def test_a_fact_with_a_source_is_worth_no_more_than_it(inside, mixed, ceiling, source, expected):
    client = inside(provenance=ceiling)
    told = client.result("remember", kind="semantic", source=mixed[source], **TRIPLE)
    assert told["quarantined"] is expected[1]
    assert state(client) == CLEAN
    why = client.result("why", memory_id=told["id"])
    assert (why["provenance"], why["quarantined"]) == expected
    assert why["extracted_from"] == [mixed[source]]


@pytest.mark.parametrize("source", ["user", "tool", "quarantined"])
def test_a_source_that_is_forgotten_meanwhile_is_no_name_to_vouch_for(
    inside, mixed, monkeypatch, source
):
    get = Engram.get

    def vanishing(memory, uid):
        episode = get(memory, uid)
        memory.forget(uid)
        return episode

    monkeypatch.setattr(Engram, "get", vanishing)
    client = inside(provenance="user")
    before = client.result("timeline", entity="Ivan")
    given = {"kind": "semantic", "source": mixed[source], **TRIPLE}
    assert client.refusal("remember", **given).startswith("there is no such episode")
    assert client.result("timeline", entity="Ivan") == before


def test_facts_are_private_unless_shared(inside):
    client = inside()
    private = client.result("remember", kind="semantic", **TRIPLE)["id"]
    shared = client.result("remember", kind="semantic", shared=True, **TRIPLE)
    assert shared["shared"] is True
    bob = inside(agent_id="agent://acme.example/bob")
    [fact] = bob.result("timeline", entity="Ivan")["facts"]
    assert fact["id"] == shared["id"]
    assert bob.refusal("why", memory_id=private).startswith("memory not found")


def test_a_new_session_is_trusted_again(inside):
    first = inside(provenance="user")
    first.result("remember", content="The page says so.", read_untrusted=True)
    second = inside(provenance="user")
    assert state(second) == CLEAN
    assert second.result("recall", query="page")[0]["quarantined"] is True
    assert state(second)["reason"] == "recall returned a quarantined memory"
