"""Profile "memory" through the SDK's client: every tool, ok and failing."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import anyio
import pytest
from engram_server import Server, record, texts
from fake_trainer import FakeTrainer, insight
from mcp import Client
from mcp_wire import DETERMINISTIC, client, done, failed
from workers import PATIENCE

from engram.mcp.calls import TICK
from engram.server.client import SocketClient

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


def test_sixteen_tools_with_the_schemas_and_hints_of_the_reference(session):
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
        hints = {tool.name: tool.annotations for tool in tools.values()}
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
        assert all(tool.title and tool.description for tool in tools.values())

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


@pytest.fixture
def often(tmp_path: Path) -> None:
    """Upkeep comes every second."""
    (tmp_path / ".engram").mkdir()
    (tmp_path / ".engram/engram.toml").write_text("[server]\nreindex_interval_secs = 1\n")


async def embedded(connected: Client, *memories: dict[str, object]) -> None:
    """Import memories, and ask for the status until none waits for its vectors."""
    await done(connected, "memory_import", version=1, memories=list(memories))
    with anyio.fail_after(PATIENCE):
        while (await done(connected, "memory_status"))["waiting"]:
            pass


def test_imported_texts_are_embedded_in_the_background(session, often):
    async def use(connected):
        await embedded(connected, record("a", 1))
        assert (await done(connected, "memory_status"))["indexed_count"] == 1

    session(use)


def test_duplicates_are_consolidated(session, often):
    async def use(connected):
        await embedded(connected, *[record(name, 1) for name in ("a", "b")])
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
            said = await failed(connected, tool, **arguments)
            assert said.startswith(f"Error: [{number}] [{number}] "), (tool, arguments, said)
            assert text in said, (tool, arguments, said)
        assert (await done(connected, "memory_status"))["memory_count"] == 0

    session(use, ENGRAM_TRAINER_BINARY="/nowhere/trainer")


def test_a_damaged_store_is_a_tool_error_and_the_server_lives(session, tmp_path):
    (tmp_path / "project.engram").write_bytes(b"no store " * 1000)

    async def use(connected):
        assert "[6012]" in await failed(connected, "memory_status")
        assert len((await connected.list_tools()).tools) == len(TOOLS)

    session(use)


def test_a_slow_call_tells_its_progress(session, tmp_path):
    """It goes on until the client was told: only the passing of time tells it."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    trainer = FakeTrainer(tmp_path).does(f"open({str(gate)!r}).read()")
    told = []

    async def use(connected):
        async def progress(seconds: float, total: float | None, text: str | None) -> None:
            told.append((seconds, total, text))
            if len(told) == 2:
                await anyio.to_thread.run_sync(lambda: gate.open("w").close())

        await done(connected, "memory_import", version=1, memories=[record("a", 1)])
        result = await connected.call_tool("memory_train_generate", {}, progress_callback=progress)
        assert not result.is_error, result.content

    session(use, ENGRAM_TRAINER_BINARY=trainer)
    (first, *_), (second, *_) = told[:2]
    assert TICK <= first < second
    assert {one[1:] for one in told} == {(None, "at work")}


def test_a_cancelled_call_harms_nothing(session, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    said = json.dumps(insight("i", source_ids=None))
    trainer = FakeTrainer(tmp_path).does(f"open({str(gate)!r}, 'w').close()\nprint({said!r})")

    async def use(connected):
        await done(connected, "memory_import", version=1, memories=[record("a", 1)])
        async with anyio.create_task_group() as group:
            group.start_soon(connected.call_tool, "memory_train_generate")
            # The other end is opened when the trainer runs.
            await anyio.to_thread.run_sync(lambda: gate.open().close())
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
