"""Profile "memory": where its store is and whose, and with what it does not start."""

from __future__ import annotations

import stat

import pytest
from engram_server import texts
from mcp_command import refused, started
from mcp_wire import MEMORY, done, failed

from engram import Engram
from engram.server.settings import ServerSettings


@pytest.fixture(autouse=True)
def _at_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def settings(*arguments: str, **variables: str) -> ServerSettings:
    return started(["--profile", "memory", *arguments], **variables).project


def test_the_project_of_the_working_folder_is_served(session, tmp_path):
    (tmp_path / ".engram").mkdir()

    async def use(connected):
        settings = await done(connected, "memory_config")
        assert settings["effective"]["store_path"] == str(tmp_path / ".engram/engram.db")
        await done(connected, "memory_store", **texts(0))

    session(use, ("--profile", "memory"))
    assert stat.S_IMODE((tmp_path / ".engram/engram.db").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "variables",
    [
        {"ENGRAM_DB_PATH": "named/its.db"},
        {"ENGRAM_MCP_DB": "named/its.db", "ENGRAM_DB_PATH": "other.db"},
        {"ENGRAM_MCP_DB": "named/its.db"},
    ],
)
def test_the_environment_names_the_store(tmp_path, variables):
    assert settings(**variables).store_path == tmp_path / "named/its.db"
    # And a flag goes before every variable.
    assert settings("--db", "flag.db", **variables).store_path == tmp_path / "flag.db"


def test_an_agent_has_its_own(session, tmp_path):
    async def use(connected):
        await done(connected, "memory_store", **texts(0))

    session(use, (*MEMORY, "--agent-id", "one"), ENGRAM_MCP_AGENT_ID="other")
    assert settings("--db", "a.db", ENGRAM_MCP_AGENT_ID="other").server.agent == "other"
    for agent, count in (("one", 1), ("other", 0)):
        with Engram(tmp_path / "project.engram", agent_id=agent) as memory:
            assert memory.counts().episodes == count


def test_an_encrypted_store_is_served(session, tmp_path):
    for name in ("key", "wrong"):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o600)

    async def store(connected):
        await done(connected, "memory_store", **texts(0))
        assert (await done(connected, "memory_status"))["memory_count"] == 1

    async def refuse(connected):
        assert "[6012]" in await failed(connected, "memory_status")

    session(store, (*MEMORY, "--key-file", "key"), ENGRAM_KEY_FILE="wrong")
    session(refuse)
    assert settings("--db", "a.db", ENGRAM_KEY_FILE="key").key == "key"
    files = [file for file in tmp_path.iterdir() if file.name.startswith("project.engram")]
    assert files
    assert not any(texts(0)["result"].encode() in file.read_bytes() for file in files)


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--provenance", "user"], {}),
        (["--provenance", "external"], {}),
        (["--session-untrusted"], {}),
        (["--events", "log"], {}),
        ([], {"ENGRAM_MCP_PROVENANCE": "tool"}),
        ([], {"ENGRAM_MCP_SESSION_UNTRUSTED": "1"}),
        ([], {"ENGRAM_MCP_EVENTS": "log"}),
        (["--db", ":memory:"], {}),
        (["--agent-id", ""], {}),
    ],
)
def test_what_would_mean_nothing_is_refused(tmp_path, arguments, variables):
    said = refused(["--profile", "memory", *arguments], **variables)
    named = (arguments or list(variables))[0]
    assert named in said
    assert not any(tmp_path.iterdir())


def test_without_a_project_it_does_not_start(tmp_path):
    arguments = ["--profile", "memory"]
    assert "[6016] project directory not found" in refused(arguments, code=1)
    missing = tmp_path / "missing"
    assert "[6016]" in refused(arguments, code=1, ENGRAM_PROJECT_DIR=str(missing))
    assert not missing.exists()


def test_settings_that_are_refused_keep_it_from_starting():
    said = refused(MEMORY, code=1, ENGRAM_EMBEDDING_PROVIDER="voyage")
    assert "[6003] invalid provider: embedding.provider" in said
