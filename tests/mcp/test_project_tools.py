"""Profile "memory" through the SDK's client: every tool, ok and failing."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from engram_server import Server, record, texts
from fake_trainer import FakeTrainer, insight
from mcp import Client
from mcp_wire import COMMAND, MEMORY, client, done
from workers import PATIENCE, environment

from engram import Engram
from engram.server.client import SocketClient

DETERMINISTIC = {"ENGRAM_EMBEDDING_PROVIDER": "deterministic"}

# What the reference's front lists, and the three that its documents list.
TOOLS = {
    "memory_store",
    "memory_search",
    "memory_judge",
    "memory_delete",
    "memory_status",
    "memory_config",
    "memory_export",
    "memory_import",
    "memory_consolidate_preview",
    "memory_consolidate",
    "memory_consolidate_apply",
    "memory_consolidate_log",
    "memory_insights",
    "memory_train_generate",
    "memory_train_list",
    "memory_train_delete",
}

Session = Callable[..., None]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Run a coroutine function with a client of a server in a folder of its own."""

    def run(
        use: Callable[[Client], Coroutine[Any, Any, None]],
        arguments: tuple[str, ...] = MEMORY,
        **variables: str,
    ) -> None:
        async def main() -> None:
            async with client(tmp_path, arguments, **DETERMINISTIC, **variables) as connected:
                await use(connected)

        asyncio.run(main())

    return run


async def failure(connected: Client, tool: str, **arguments: object) -> str:
    result = await connected.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    (block,) = result.content
    return block.text


def test_sixteen_tools_with_the_schemas_of_the_reference(session):
    async def use(connected):
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert set(tools) == TOOLS
        shape = {
            name: (
                {
                    key: {part: one[part] for part in one if part != "description"}
                    for key, one in tool.input_schema["properties"].items()
                },
                tool.input_schema["required"],
            )
            for name, tool in tools.items()
        }
        text, strings = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
        share = {"type": "number", "minimum": 0, "maximum": 1}
        days = {"type": "number", "minimum": 0, "maximum": 3650}
        types = ["antipattern", "bugfix", "context", "decision", "pattern"]
        candidates = {"stale_days": days, "min_score": share}
        assert shape.pop("memory_import")[1] == ["version", "memories"]
        assert shape == {
            "memory_store": (
                {
                    "context": text,
                    "action": text,
                    "result": text,
                    "memory_type": {"type": "string", "enum": types, "default": "decision"},
                    "tags": strings,
                    "project": text,
                },
                ["context", "action", "result"],
            ),
            "memory_search": (
                {
                    "query": text,
                    "limit": {"type": "number", "default": 10},
                    "project": text,
                    "tags": strings,
                },
                ["query"],
            ),
            "memory_judge": ({"memory_id": text, "query": text, "score": share}, ["memory_id"]),
            "memory_delete": ({"id": text}, ["id"]),
            "memory_status": ({}, []),
            "memory_config": (
                {"action": {"type": "string", "enum": ["get", "set"], "default": "get"}},
                [],
            ),
            "memory_export": ({}, []),
            "memory_consolidate_preview": (candidates, []),
            "memory_consolidate": (candidates, []),
            "memory_consolidate_apply": ({**candidates, "min_confidence": share}, []),
            "memory_consolidate_log": ({"limit": {"type": "integer", "minimum": 1}}, []),
            "memory_insights": (
                {
                    "action": {
                        "type": "string",
                        "enum": ["delete", "generate", "list"],
                        "default": "list",
                    },
                    "id": text,
                },
                [],
            ),
            "memory_train_generate": ({}, []),
            "memory_train_list": ({}, []),
            "memory_train_delete": ({"id": text}, ["id"]),
        }
        items = tools["memory_import"].input_schema["properties"]["memories"]["items"]
        assert set(items["properties"]) == {
            *record("x"),
            *("tags", "project", "parent_id", "source_ids", "insight_type", "last_used_at"),
        }
        assert set(items["required"]) == {*record("x")}

    session(use)


def test_hints_say_what_only_reads_and_what_destroys(session):
    async def use(connected):
        tools = (await connected.list_tools()).tools
        hints = {tool.name: tool.annotations for tool in tools}
        # A search notes what it showed, and changes no memory: hosts need not ask for it.
        assert {name for name, hint in hints.items() if hint.read_only_hint} == {
            "memory_search",
            "memory_status",
            "memory_config",
            "memory_export",
            "memory_consolidate_preview",
            "memory_consolidate",
            "memory_consolidate_log",
            "memory_train_list",
        }
        assert {name for name, hint in hints.items() if hint.destructive_hint} == {
            "memory_delete",
            "memory_consolidate_apply",
            "memory_insights",
            "memory_train_generate",
            "memory_train_delete",
        }
        assert all(hint.idempotent_hint for hint in hints.values() if hint.read_only_hint)
        assert not any(hint.open_world_hint for hint in hints.values())
        assert all(tool.title and tool.description for tool in tools)

    session(use)


def test_a_memory_is_stored_found_judged_and_deleted(session):
    async def use(connected):
        stored = await done(connected, "memory_store", **texts(0), tags=["auth"])
        assert stored == {"id": stored["id"], "indexed": True, "deduplicated": False}
        again = await done(connected, "memory_store", **texts(0))
        assert again["merged_into"] == stored["id"]
        result = await connected.call_tool("memory_search", {"query": texts(0)["context"]})
        (block,) = result.content
        assert json.loads(block.text) == result.structured_content
        assert block.text == json.dumps(result.structured_content, indent=2, ensure_ascii=False)
        (hit,) = result.structured_content["results"]
        assert (hit["id"], hit["memory_type"]) == (stored["id"], "decision")
        assert json.loads(hit["tags"]) == ["auth"]
        judged = await done(connected, "memory_judge", memory_id=stored["id"], score=0.5)
        assert judged["score"] == 0.5
        assert (await done(connected, "memory_status"))["memory_count"] == 1
        assert await done(connected, "memory_delete", id=stored["id"]) == {"deleted": stored["id"]}
        assert (await done(connected, "memory_status"))["memory_count"] == 0

    session(use)


def test_ten_come_back_unless_a_limit_says_otherwise(session):
    async def use(connected):
        memories = [record(f"m{n}", n) for n in range(12)]
        imported = await done(connected, "memory_import", version=1, memories=memories)
        assert imported == {"imported": 12, "skipped": 0}
        assert (await done(connected, "memory_search", query="c0 c1 c2 c3 c4 c5"))["count"] <= 10
        found = await done(connected, "memory_search", query=" ".join(f"c{n}" for n in range(12)))
        assert found["count"] == 10
        assert (await done(connected, "memory_search", query="c1", limit=3.0))["count"] <= 3

    session(use)


def test_exports_are_imports(session):
    async def use(connected):
        memory = record("a", 1, tags=["x", "y"], project="atlas")
        await done(connected, "memory_import", version=1, memories=[memory])
        export = await done(connected, "memory_export")
        assert export["memories"][0]["tags"] == '["x","y"]'
        skipped = await done(connected, "memory_import", **export)
        assert skipped == {"imported": 0, "skipped": 1}
        # Some hosts send lists as texts.
        sent = {"version": 1, "memories": json.dumps([record("b", 2)]), "project": None}
        assert (await done(connected, "memory_import", **sent))["imported"] == 1

    session(use)


def test_imported_texts_are_embedded_in_the_background(session):
    async def use(connected):
        await done(connected, "memory_import", version=1, memories=[record("a", 1)])
        with anyio.fail_after(PATIENCE):
            while (await done(connected, "memory_status"))["waiting"]:  # noqa: ASYNC110
                await anyio.sleep(0.1)
        assert (await done(connected, "memory_status"))["indexed_count"] == 1

    session(use)


def test_duplicates_are_consolidated(session):
    async def use(connected):
        memories = [record(name, 1) for name in ("a", "b")]
        await done(connected, "memory_import", version=1, memories=memories)
        with anyio.fail_after(PATIENCE):
            while (await done(connected, "memory_status"))["waiting"]:  # noqa: ASYNC110
                await anyio.sleep(0.1)
        options = {"stale_days": 3650, "min_score": 0}
        assert (await done(connected, "memory_consolidate_preview", **options))["duplicates"] == 1
        analysis = await done(connected, "memory_consolidate", **options)
        assert [one["action"]["type"] for one in analysis["recommendations"]] == ["merge"]
        applied = await done(connected, "memory_consolidate_apply", **options, min_confidence=0.1)
        assert applied["merged"] == 1
        log = await done(connected, "memory_consolidate_log", limit=5)
        assert [step["action"] for step in log["log"]] == ["merge"]

    session(use)


def test_insights_are_trained_listed_and_deleted(session, tmp_path):
    trainer = FakeTrainer(tmp_path).says(insight("i", **texts(2)))

    async def use(connected):
        await done(connected, "memory_import", version=1, memories=[record("a", 1)])
        generated = await done(connected, "memory_train_generate")
        assert generated["generated"] == 1
        (insight,) = (await done(connected, "memory_train_list"))["insights"]
        assert (await done(connected, "memory_insights"))["insights"] == [insight]
        deleted = await done(connected, "memory_train_delete", id=insight["id"])
        assert deleted == {"deleted": insight["id"]}
        assert (await done(connected, "memory_insights", action="generate"))["generated"] == 1
        await done(connected, "memory_insights", action="delete", id=insight["id"])
        assert (await done(connected, "memory_train_list"))["count"] == 0

    session(use, ENGRAM_TRAINER_BINARY=trainer)


REFUSED = [
    ("memory_store", {"context": "a", "action": "b"}, 6007, "missing field `result`"),
    ("memory_store", {**texts(0), "memory_type": "insight"}, 6007, "memory_type"),
    ("memory_store", {**texts(0), "tags": "a,b"}, 6007, "tags"),
    ("memory_store", {**texts(0), "context": "x" * 10_001}, 6007, "context"),
    ("memory_search", {}, 6007, "missing field `query`"),
    ("memory_search", {"query": None}, 6007, "missing field `query`"),
    ("memory_search", {"query": "a", "limit": 1.5}, 6007, "limit"),
    ("memory_search", {"query": "a", "limit": -1}, 6007, "limit"),
    ("memory_search", {"query": "a", "tags": "[1]"}, 6007, "tags"),
    ("memory_judge", {"memory_id": "a", "score": 2}, 6007, "score"),
    ("memory_judge", {"memory_id": "a", "score": 1}, 1002, "not found: memory a"),
    ("memory_delete", {"id": "a"}, 1002, "not found: memory a"),
    ("memory_config", {"action": "set"}, 6008, "config is read-only"),
    ("memory_import", {"version": 2, "memories": []}, 6010, "import version mismatch"),
    ("memory_import", {"version": 1, "memories": [{}]}, 6007, "missing field `memories"),
    ("memory_consolidate_preview", {"stale_days": 4000}, 6007, "stale_days"),
    ("memory_consolidate", {"min_score": -1}, 6007, "min_score"),
    ("memory_consolidate_apply", {"min_confidence": 2}, 6007, "min_confidence"),
    ("memory_consolidate_log", {"limit": 0}, 6007, "limit"),
    ("memory_insights", {"action": "forget"}, 6007, "action"),
    ("memory_insights", {"action": "delete"}, 6007, "missing field `id`"),
    ("memory_train_generate", {}, 6013, "trainer failed"),
    ("memory_train_delete", {"id": "a"}, 1002, "not found: memory a"),
]


def test_failures_are_tool_errors_with_their_numbers(session):
    async def use(connected):
        for tool, arguments, number, text in REFUSED:
            said = await failure(connected, tool, **arguments)
            assert said.startswith(f"Error: [{number}] [{number}] "), (tool, arguments, said)
            assert text in said, (tool, arguments, said)
        assert (await done(connected, "memory_status"))["memory_count"] == 0

    session(use, ENGRAM_TRAINER_BINARY="/nowhere/trainer")


def test_a_damaged_store_is_a_tool_error_and_the_server_lives(session, tmp_path):
    (tmp_path / "project.engram").write_bytes(b"no store " * 1000)

    async def use(connected):
        assert "[6012]" in await failure(connected, "memory_status")
        assert len((await connected.list_tools()).tools) == len(TOOLS)

    session(use)


def test_a_slow_call_tells_its_progress(session, tmp_path):
    marker = tmp_path / "told"
    trainer = FakeTrainer(tmp_path).does(
        f"""
        import pathlib
        # The test makes it once it was told that this is under way.
        while not pathlib.Path({str(marker)!r}).exists(): time.sleep(0.05)
        """
    )
    told = []

    async def use(connected):
        async def progress(seconds: float, total: float | None, text: str | None) -> None:
            told.append((seconds, total, text))
            marker.touch()

        await done(connected, "memory_import", version=1, memories=[record("a", 1)])
        result = await connected.call_tool("memory_train_generate", {}, progress_callback=progress)
        assert not result.is_error, result.content

    session(use, ENGRAM_TRAINER_BINARY=trainer)
    assert told
    assert all(seconds > 0 and total is None and text for seconds, total, text in told)


def test_a_cancelled_call_harms_nothing(session, tmp_path):
    marker = tmp_path / "begun"
    said = json.dumps(insight("i", source_ids=None))
    trainer = FakeTrainer(tmp_path).does(
        f"""
        import pathlib
        pathlib.Path({str(marker)!r}).touch()
        print({said!r})
        """
    )

    async def use(connected):
        await done(connected, "memory_import", version=1, memories=[record("a", 1)])
        async with anyio.create_task_group() as group:
            group.start_soon(connected.call_tool, "memory_train_generate")
            with anyio.fail_after(PATIENCE):
                while not marker.exists():  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        # All or nothing of it is there, and the next call is answered.
        assert (await done(connected, "memory_train_list"))["count"] in (0, 1)
        assert (await done(connected, "memory_status"))["memory_count"] >= 1

    session(use, ENGRAM_TRAINER_BINARY=trainer)


def test_a_socket_server_and_another_front_share_the_file(tmp_path):
    server = Server(tmp_path)
    variables = {"HOME": str(server.home), **DETERMINISTIC}

    async def use():
        async with (
            client(server.root, ("--profile", "memory"), **variables) as one,
            client(server.root, ("--profile", "memory"), **variables) as two,
        ):
            by_front = await done(one, "memory_store", **texts(0))
            assert (await done(two, "memory_status"))["memory_count"] == 1
            with SocketClient(server.socket) as asked:
                found = asked.memory_search(texts(0)["context"])
                assert found["results"][0]["id"] == by_front["id"]
                by_socket = asked.memory_store(**texts(1))
            found = await done(two, "memory_search", query=texts(1)["context"])
            assert found["results"][0]["id"] == by_socket["id"]

    with server:
        asyncio.run(use())


# Where the store is, and whose.


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
def test_the_environment_names_the_store(session, tmp_path, variables):
    async def use(connected):
        settings = await done(connected, "memory_config")
        assert settings["effective"]["store_path"] == str(tmp_path / "named/its.db")
        await done(connected, "memory_store", **texts(0))

    session(use, ("--profile", "memory"), **variables)
    assert (tmp_path / "named/its.db").exists()
    assert not (tmp_path / "other.db").exists()


def test_a_flag_goes_before_every_variable(session, tmp_path):
    async def use(connected):
        settings = await done(connected, "memory_config")
        assert settings["effective"]["store_path"] == str(tmp_path / "project.engram")

    session(use, ENGRAM_MCP_DB="a.db", ENGRAM_DB_PATH="b.db")


def test_an_agent_has_its_own(session, tmp_path):
    async def one(connected):
        await done(connected, "memory_store", **texts(0))

    async def other(connected):
        assert (await done(connected, "memory_status"))["memory_count"] == 0

    session(one, (*MEMORY, "--agent-id", "one"))
    session(other, MEMORY, ENGRAM_MCP_AGENT_ID="other")
    with closing(Engram(tmp_path / "project.engram", agent_id="one")) as memory:
        assert memory.counts().episodes == 1


def test_an_encrypted_store_is_served(session, tmp_path):
    for name in ("key", "wrong"):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o600)

    async def store(connected):
        await done(connected, "memory_store", **texts(0))

    async def read(connected):
        assert (await done(connected, "memory_status"))["memory_count"] == 1

    async def refuse(connected):
        assert "[6012]" in await failure(connected, "memory_status")

    session(store, (*MEMORY, "--key-file", "key"))
    session(read, MEMORY, ENGRAM_KEY_FILE="key")
    session(read, (*MEMORY, "--key-file", "key"), ENGRAM_KEY_FILE="wrong")
    session(refuse, MEMORY)
    files = [file for file in tmp_path.iterdir() if file.name.startswith("project.engram")]
    assert files
    assert not any(texts(0)["result"].encode() in file.read_bytes() for file in files)


def refusal(folder: Path, *arguments: str, code: int = 2, **variables: str) -> str:
    ended = subprocess.run(
        [*COMMAND, "--profile", "memory", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder, **variables),
        timeout=PATIENCE,
    )
    assert (ended.returncode, ended.stdout) == (code, ""), ended.stderr
    return ended.stderr


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
    said = refusal(tmp_path, *arguments, **variables)
    named = (arguments or list(variables))[0]
    assert named in said
    assert not any(tmp_path.iterdir())


def test_without_a_project_it_does_not_start(tmp_path):
    assert "[6016] project directory not found" in refusal(tmp_path, code=1)
    missing = str(tmp_path / "missing")
    assert "[6016]" in refusal(tmp_path, code=1, ENGRAM_PROJECT_DIR=missing)
    assert not Path(missing).exists()


def test_settings_that_are_refused_keep_it_from_starting(tmp_path):
    said = refusal(tmp_path, *MEMORY[2:], code=1, ENGRAM_EMBEDDING_PROVIDER="voyage")
    assert "[6003] invalid provider: embedding.provider" in said
