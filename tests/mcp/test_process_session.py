"""Whole sessions of the SDK's client: a thousand memories, a restart, a key; and many at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mcp_wire import PROFILES, client, done

from engram import Engram

THOUSAND = 1000
ANIMALS = (
    "heron",
    "otter",
    "lapwing",
    "badger",
    "plover",
    "marten",
    "viper",
    "osprey",
    "dunnock",
    "curlew",
)


def fact(number: int) -> str:
    return (
        f"Ticket {number}: the {ANIMALS[number % 10]} survey was handed in by team {number // 10}."
    )


async def remembered(folder: Path, arguments: tuple[str, ...]) -> str:
    """Remember a thousand things, use them, and return the id of one that is left."""
    async with client(folder, arguments) as session:
        ids = []
        for number in range(THOUSAND):
            kept = await done(session, "remember", content=fact(number))
            assert not kept["quarantined"]
            ids.append(kept["id"])
        assert len(set(ids)) == THOUSAND
        found = (await done(session, "recall", query=fact(617)))["result"]
        assert found[0]["id"] == ids[617]
        reason = await done(session, "why", memory_id=ids[617])
        assert (reason["content"], reason["provenance"]) == (fact(617), "user")
        gone = await done(session, "forget", memory_id=ids[616])
        assert gone["deleted"]
        assert (await session.call_tool("why", {"memory_id": ids[616]})).is_error
        stats = await done(session, "stats")
        assert stats["counts"]["episodic"] == THOUSAND - 1
        assert not stats["session"]["untrusted"]
        return ids[617]


async def recalled(folder: Path, arguments: tuple[str, ...], memory_id: str) -> None:
    """Recall after a restart."""
    async with client(folder, arguments) as session:
        found = (await done(session, "recall", query=fact(617), limit=10))["result"]
        assert found[0]["id"] == memory_id
        assert fact(616) not in [one["content"] for one in found]
        assert (await done(session, "stats"))["counts"]["episodic"] == THOUSAND - 1


def test_a_thousand_memories_and_a_restart_on_an_encrypted_store(tmp_path):
    (tmp_path / "key").write_text("a passphrase of several words")
    (tmp_path / "key").chmod(0o600)
    arguments = (*PROFILES["engram"], "--key-file", "key")
    memory_id = asyncio.run(remembered(tmp_path, arguments))
    asyncio.run(recalled(tmp_path, arguments, memory_id))
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "key"]
    assert files
    # Of at least five letters: shorter ones are in any megabytes of noise.
    for file in files:
        stored = file.read_bytes()
        assert not any(word.encode() in stored for word in (*ANIMALS, "survey", "Ticket")), file

    async def refused():
        async with client(tmp_path) as session:
            assert (await session.call_tool("stats", {})).is_error

    asyncio.run(refused())


@pytest.mark.parametrize("profile", PROFILES)
def test_three_servers_on_one_file_see_each_other_write(profile, tmp_path):
    def call(number: int) -> tuple[str, dict[str, object]]:
        text = f"The {ANIMALS[number % 10]} was seen at post {number}, not at {number * 37}."
        if profile == "engram":
            return "remember", {"content": text}
        return "memory_store", {"context": text, "action": f"Noted {number}.", "result": text[::-1]}

    async def use():
        arguments = PROFILES[profile]
        async with (
            client(tmp_path, arguments) as one,
            client(tmp_path, arguments) as two,
            client(tmp_path, arguments) as three,
        ):
            sessions = (one, two, three)

            async def write(place: int) -> None:
                for number in range(place, 60, 3):
                    tool, given = call(number)
                    assert await done(sessions[place], tool, **given)

            await asyncio.gather(*map(write, range(3)))
            for place, session in enumerate(sessions):
                written_elsewhere = (place + 1) % 3 + 30
                query = next(iter(call(written_elsewhere)[1].values()))
                if profile == "engram":
                    found = (await done(session, "recall", query=query))["result"]
                    assert found[0]["content"] == query
                    stats = await done(session, "stats")
                    assert stats["counts"]["episodic"] == stats["vector_index_size"] == 60
                else:
                    found = await done(session, "memory_search", query=query)
                    assert found["results"][0]["context"] == query
                    assert (await done(session, "memory_status"))["memory_count"] == 60

    asyncio.run(use())


def test_servers_of_two_agents_on_one_file_keep_apart(tmp_path):
    async def use():
        async with (
            client(tmp_path, ("--db", "shared.engram", "--agent-id", "one")) as one,
            client(tmp_path, ("--db", "shared.engram", "--agent-id", "two")) as two,
        ):
            kept = await done(one, "remember", content="The heron nests by the weir.")
            assert (await done(two, "recall", query="heron"))["result"] == []
            assert (await two.call_tool("forget", {"memory_id": kept["id"]})).is_error
            assert (await done(one, "recall", query="heron"))["result"][0]["id"] == kept["id"]

    asyncio.run(use())
    with Engram(tmp_path / "shared.engram") as memory:
        assert memory.counts().episodes == 1
