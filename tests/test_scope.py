"""Scope is equality on the agent id, on every way in and out."""

from __future__ import annotations

import unicodedata

import pytest

from engram import ObserveInput
from engram.errors import InvalidArgument, InvalidType, NotFound

# Ids that a prefix, a pattern, a case fold, a trim or a normalisation would confuse.
LOOKALIKES = ["a", "a-b", "a_b", "a%", "A", "a ", " a", "", "á", unicodedata.normalize("NFD", "á"),
              "a\0", "a\0b", "agent://acme/a", "NULL", "0", "日本"]  # fmt: skip


def test_lookalike_agents_never_meet(open_memory):
    memories = {agent: open_memory(agent) for agent in LOOKALIKES}
    ids = {agent: memory.observe("the secret token") for agent, memory in memories.items()}
    nobody = open_memory().observe("the secret token")
    for agent, memory in memories.items():
        for mode in ("hybrid", "cosine"):
            found = memory.recall("secret token", 50, mode=mode)
            assert [r.episode.id for r in found] == [ids[agent]]
            assert found[0].episode.agent_id == agent
        assert [e.id for e in memory.episodes().episodes] == [ids[agent]]
        assert memory.count() == 1
        for other in {*ids.values(), nobody} - {ids[agent]}:
            with pytest.raises(NotFound):
                memory.get(other)
            with pytest.raises(NotFound):
                memory.forget(other)
    assert open_memory().count() == len(LOOKALIKES) + 1
    assert open_memory().list_agents() == sorted(LOOKALIKES)


def test_another_agents_many_better_matches_do_not_displace(open_memory):
    open_memory("loud").observe_many([ObserveInput("lost keys") for _ in range(200)])
    quiet = open_memory("quiet")
    uid = quiet.observe("something about keys")
    for mode in ("hybrid", "cosine"):
        assert [r.episode.id for r in quiet.recall("lost keys", 3, mode=mode)] == [uid]


def test_cross_agent_and_unscoped_see_everything(open_memory):
    one, two, all_of_them = open_memory("one"), open_memory("two"), open_memory()
    ids = {one.observe("plan"), two.observe("plan"), all_of_them.observe("plan")}
    assert {r.episode.id for r in one.recall("plan", cross_agent=True)} == ids
    assert {r.episode.id for r in all_of_them.recall("plan")} == ids
    assert {e.id for e in two.episodes(cross_agent=True).episodes} == ids
    assert two.count(cross_agent=True) == 3


def test_an_unscoped_instance_may_forget_any_episode(open_memory):
    uid = open_memory("one").observe("plan")
    open_memory().forget(uid)
    assert open_memory("one").count() == 0


@pytest.mark.parametrize(("agent", "error"), [(5, InvalidType), ("\ud800", InvalidArgument)])
def test_an_agent_id_is_text(open_memory, agent, error):
    with pytest.raises(error):
        open_memory(agent)


def test_list_agents_is_about_episodes(open_memory):
    memory = open_memory("gone")
    memory.forget(memory.observe("x"))
    assert memory.list_agents() == []
