"""`engram forget` as section 14 documents it."""

from __future__ import annotations

from engram import Engram


def of_agent(store, agent) -> list[str]:
    with Engram(store, agent_id=agent) as memory:
        return [episode.id for episode in memory.episodes().episodes]


def test_an_episode_is_erased(run, store):
    first, second = of_agent(store, "ana")
    done = run("forget", store, "--episode", first, "--agent-id", "ana")
    assert (done.code, done.out, done.err) == (0, f"Erased episode {first}\n", "")
    document = run("forget", store, "--episode", second, "--json").document
    assert document == {"id": second, "deleted": True}
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
        assert (done.code, done.err) == (1, "error: give either --episode or --entity\n")


def test_forgetting_an_entity_says_that_it_cannot_yet(run, store):
    done = run("forget", store, "--entity", "Ana")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: this version of engram cannot forget an entity yet")
    assert run("forget", store, "--entity", "Ana", "--json").error["code"] == "not_supported"


def test_a_missing_file(run, path):
    assert run("forget", path, "--episode", "x").err == f"error: file not found: {path}\n"
