"""Whole sessions of the SDK's client: a thousand memories, a restart, a key; and many at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from mcp_wire import ENGRAM, PROFILES, client, done

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


async def remembered(folder: Path, arguments: tuple[str, ...], count: int) -> str:
    """Remember that many things, use them, and return the id of the last."""
    async with client(folder, arguments) as session:
        told = [done(session, "remember", content=fact(number)) for number in range(count)]
        # Half of them at the same time.
        kept = await asyncio.gather(*told[: count // 2])
        kept += [await one for one in told[count // 2 :]]
        assert not any(one["quarantined"] for one in kept)
        ids = [one["id"] for one in kept]
        assert len(set(ids)) == count
        last = count - 1
        found = (await done(session, "recall", query=fact(last)))["result"]
        assert found[0]["id"] == ids[last]
        reason = await done(session, "why", memory_id=ids[last])
        assert (reason["content"], reason["provenance"]) == (fact(last), "user")
        assert reason["access_count"] == 1
        assert (await done(session, "forget", memory_id=ids[last - 1]))["deleted"]
        gone = await session.call_tool("why", {"memory_id": ids[last - 1]})
        assert gone.content[0].text.startswith("Error executing tool why: memory not found")
        stats = await done(session, "stats")
        assert stats["counts"]["episodic"] == count - 1
        assert not stats["session"]["untrusted"]
        return ids[last]


async def recalled(folder: Path, arguments: tuple[str, ...], count: int, memory_id: str) -> None:
    """Recall after a restart."""
    async with client(folder, arguments) as session:
        found = (await done(session, "recall", query=fact(count - 1), limit=10))["result"]
        assert found[0]["id"] == memory_id
        assert fact(count - 2) not in [one["content"] for one in found]
        stats = await done(session, "stats")
        assert stats["counts"]["episodic"] == count - 1
        assert not stats["session"]["untrusted"]
        # What was noted of the first session's recalls is in the file, too.
        assert (await done(session, "why", memory_id=memory_id))["access_count"] == 2


def test_a_hundred_memories_and_a_restart(tmp_path):
    memory_id = asyncio.run(remembered(tmp_path, ENGRAM, 100))
    asyncio.run(recalled(tmp_path, ENGRAM, 100, memory_id))


def test_a_thousand_memories_and_a_restart_on_an_encrypted_store(tmp_path):
    (tmp_path / "key").write_text("a passphrase of several words")
    (tmp_path / "key").chmod(0o600)
    arguments = (*ENGRAM, "--key-file", "key")
    memory_id = asyncio.run(remembered(tmp_path, arguments, 1000))
    asyncio.run(recalled(tmp_path, arguments, 1000, memory_id))
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "key"]
    assert files
    # Of at least five letters: shorter ones are in any megabytes of noise.
    for file in files:
        stored = file.read_bytes()
        assert not any(word.encode() in stored for word in (*ANIMALS, "survey", "Ticket")), file

    async def refused():
        async with client(tmp_path) as session:
            for _ in range(2):
                (block,) = (await session.call_tool("stats", {})).content
                assert "is not an engram store" in block.text

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
