"""`engram forget` as section 14 documents it."""

from __future__ import annotations

import json

from files import every_byte

from engram import Engram
from engram.engine.session import Session
from engram.ledger import Ledger


def of_agent(store, agent) -> list[str]:
    with Engram(store, agent_id=agent) as memory:
        return [episode.id for episode in memory.episodes().episodes]


def test_an_episode_is_erased(run, store):
    first, second = of_agent(store, "ana")
    done = run("forget", store, "--episode", first, "--agent-id", "ana")
    assert (done.code, done.out, done.err) == (0, f"Erased episode {first}\n", "")
    document = run("forget", store, "--episode", second, "--json").document
    assert document == {"id": second, "deleted": True, "wiped": True}
    assert of_agent(store, "ana") == []


def test_an_unknown_episode_is_an_error(run, store):
    done = run("forget", store, "--episode", "it's")
    assert (done.code, done.out, done.err) == (1, "", 'error: episode not found: "it\'s"\n')
    error = run("forget", store, "--episode", "x", "--json").error
    assert error == {"code": "not_found", "message": "episode not found: 'x'", "hint": ""}


def test_another_agents_episode_is_unknown(run, store):
    (bens,) = of_agent(store, "ben")
    done = run("forget", store, "--episode", bens, "--agent-id", "ana")
    assert (done.code, done.err) == (1, f"error: episode not found: '{bens}'\n")
    assert of_agent(store, "ben") == [bens]


def test_exactly_one_of_episode_and_entity(run, store):
    for options in ([], ["--episode", "x", "--entity", "y"]):
        done = run("forget", store, *options)
        assert (done.code, done.err) == (1, "error: give one of --episode, --fact and --entity\n")


def test_an_entity_is_erased_from_every_agent(run, store):
    assert run("assert", store, "Ben", "keeps", "bees").code == 0
    document = run("forget", store, "--entity", "ben", "--agent-id", "ana", "--json").document
    assert document.pop("removed")["episode"] == 1
    assert document == {
        "entity": "ben",
        "episodes_deleted": 1,
        "facts_deleted": 1,
        "episode_ids": document["episode_ids"],
        "fact_ids": document["fact_ids"],
        "wiped": True,
    }
    done = run("forget", store, "--entity", "Ben", "--sweep")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        'Erased entity "Ben"',
        "  Episodes deleted: 1",
        "  Facts deleted:    0",
    ]
    assert of_agent(store, "ben") == []


def test_what_a_reader_keeps_from_the_disk_is_said(run, store, monkeypatch):
    erase = Engram.forget_entity

    def kept(self, name, *, content_sweep):
        erased = erase(self, name, content_sweep=content_sweep)
        erased.wiped = False
        return erased

    monkeypatch.setattr(Engram, "forget_entity", kept)
    done = run("forget", store, "--entity", "Ben")
    assert done.code == 0
    assert done.err.startswith("warning: erased bytes may still be in the files of the store (")
    done = run("forget", store, "--entity", "Ben", "--json")
    assert json.loads(done.err)["warning"]["code"] == "not_wiped"


def test_an_episode_a_reader_keeps_on_the_disk_is_said(run, store, monkeypatch):
    """The reader is another connection, whose transaction goes on."""
    (uid,) = of_agent(store, "ben")
    monkeypatch.setattr(
        Session.__init__, "__kwdefaults__", {**Session.__init__.__kwdefaults__, "busy_timeout": 0.0}
    )
    with Ledger(store) as reader, reader._reading() as held:
        held.holdings.count(0)
        done = run("forget", store, "--episode", uid, "--json")
        assert json.loads(done.err)["warning"]["code"] == "not_wiped"
        assert json.loads(done.out) == {"id": uid, "deleted": True, "wiped": False}
        assert b"Ben keeps bees" in every_byte(store)
    with Engram(store) as memory:
        assert memory.wipe() is True
        assert b"Ben keeps bees" not in every_byte(store)


def test_a_fact_is_erased(run, path):
    uid = run("assert", path, "Ana", "likes", "tea", "--json").document["id"]
    assert run("forget", path, "--fact", uid).lines == [f"Erased fact {uid}"]
    done = run("forget", path, "--fact", uid)
    assert (done.code, done.err) == (1, f"error: fact not found: '{uid}'\n")


def test_another_agents_fact_is_kept(run, path):
    uid = run("assert", path, "Ana", "likes", "tea", "--agent-id", "ana", "--json").document["id"]
    done = run("forget", path, "--fact", uid, "--agent-id", "ben")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: the fact was written by another agent")


def test_a_sweep_needs_an_entity(run, store):
    done = run("forget", store, "--episode", "x", "--sweep")
    assert (done.code, done.err) == (1, "error: --sweep goes with --entity\n")
