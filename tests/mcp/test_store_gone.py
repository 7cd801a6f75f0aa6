"""A store whose file is removed or replaced, or is not this server's to read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engram import Engram

GONE = "the store's file was removed or replaced (start the server again)"
TRIPLE = {"kind": "semantic", "subject": "Ivan", "predicate": "lives_in", "object": "Omsk"}


@pytest.mark.parametrize("replaced", [False, True])
def test_every_call_is_refused_once_the_file_is_gone(inside, path, replaced):
    client = inside(provenance="user")
    uid = client.result("remember", content="I live in Omsk.")["id"]
    shutil.copyfile(path, copy := path.with_name("copy"))
    if replaced:
        copy.rename(path)
    else:
        path.unlink()
    calls = [
        ("remember", {"content": "x"}),
        ("remember", TRIPLE),
        ("forget", {"memory_id": uid}),
        ("recall", {"query": "x"}),
        ("why", {"memory_id": uid}),
        ("timeline", {"entity": "Ivan"}),
        ("contradictions", {}),
        ("recent", {}),
        ("stats", {}),
    ]
    assert {name for name, _ in calls} == {tool.name for tool in client.tools()}
    for name, arguments in calls:
        assert client.refusal(name, **arguments) == GONE
    assert path.exists() is replaced


@pytest.mark.parametrize("verb", ["observe", "assert_fact", "forget", "forget_fact"])
def test_nothing_is_acknowledged_if_it_goes_meanwhile(inside, path, monkeypatch, verb):
    client = inside(provenance="user")
    episode = client.result("remember", content="I live in Omsk.")["id"]
    fact = client.result("remember", **TRIPLE)["id"]
    carry_out = getattr(Engram, verb)

    def late(memory: Engram, *args: object, **kwargs: object) -> object:
        done = carry_out(memory, *args, **kwargs)
        Path(path).unlink()
        return done

    monkeypatch.setattr(Engram, verb, late)
    tool, arguments = {
        "observe": ("remember", {"content": "x"}),
        "assert_fact": ("remember", TRIPLE),
        "forget": ("forget", {"memory_id": episode}),
        "forget_fact": ("forget", {"memory_id": fact}),
    }[verb]
    assert client.refusal(tool, **arguments) == GONE


@pytest.mark.parametrize("key", [None, "another passphrase"])
def test_who_has_the_wrong_key_is_told_of_the_flag(inside, path, key):
    with Engram(path, key="a passphrase of several words") as memory:
        memory.assert_fact("Ivan", "lives_in", "Omsk")
    client = inside(key=key)
    for _ in range(2):
        refusal = client.refusal("stats")
        assert refusal.endswith("(--key-file names the file with its key)")
        assert "key=" not in refusal


def test_a_fact_of_another_agent_is_its_writers_to_forget(inside):
    other = inside(agent_id="agent://acme.example/bob")
    uid = other.result("remember", **TRIPLE, shared=True)["id"]
    refusal = inside().refusal("forget", memory_id=uid)
    assert refusal.startswith("the fact was written by another agent")
    assert "agent_id" not in refusal
    assert other.result("forget", memory_id=uid)["deleted"]
