"""How long an MCP client waits: for the handshake, for a write, for a search.

python benchmarks/bench_mcp.py [--profile engram|memory] [--rounds N] [--memories N]

Cold is after all files of the installed packages were put out of the system's cache, as far as a
user may do that. Without bytecode is what the very first start after an installation may be.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

OPTIONS = {
    "engram": ["--db", "agent.engram", "--agent-id", "bench", "--provenance", "user"],
    "memory": ["--profile", "memory", "--db", "project.engram"],
}
PLACES = ("kitchen", "harbour", "archive", "workshop", "garden", "station", "library", "attic")


def text(number: int) -> str:
    return f"Item {number} was moved to the {PLACES[number % 8]}, on shelf {number * 31 % 997}."


def write(profile: str, number: int) -> tuple[str, dict[str, object]]:
    if profile == "engram":
        return "remember", {"content": text(number)}
    return "memory_store", {
        "context": text(number),
        "action": f"Signed by {number}.",
        "result": text(number)[::-1],
    }


def search(profile: str, number: int) -> tuple[str, dict[str, object]]:
    return "recall" if profile == "engram" else "memory_search", {"query": text(number)}


def connected(profile: str, folder: Path, **variables: str) -> Client:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "engram.mcp_server", *OPTIONS[profile]],
        cwd=folder,
        env={"HOME": str(folder), "PYTHONSAFEPATH": "1", **variables},
    )
    return Client(stdio_client(started, errlog=subprocess.DEVNULL))


async def handshake(profile: str, folder: Path, **variables: str) -> float:
    """Seconds from the start of the process to the list of its tools."""
    begun = time.perf_counter()
    async with connected(profile, folder, **variables) as client:
        await client.list_tools()
        return time.perf_counter() - begun


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await call()
    return time.perf_counter() - begun


def put_out() -> None:
    """Have the system forget what it read of Python and its packages."""
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platlib")}:
        for file in Path(folder).rglob("*"):
            if file.suffix in (".py", ".pyc", ".so") and file.is_file():
                opened = os.open(file, os.O_RDONLY)
                os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(opened)


async def measured(profile: str, rounds: int, memories: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        await handshake(profile, folder)
        show("handshake, warm", [await handshake(profile, folder) for _ in range(rounds)])
        cold = []
        for _ in range(max(3, rounds // 4)):
            put_out()
            cold.append(await handshake(profile, folder))
        show("handshake, cold", cold)
        bare = []
        for number in range(3):
            bytecode = {"PYTHONPYCACHEPREFIX": str(folder / f"none-{number}")}
            bare.append(await handshake(profile, folder, **bytecode))
        show("handshake, without bytecode", bare)
        async with connected(profile, folder) as client:

            async def call(one: tuple[str, dict[str, object]]) -> None:
                result = await client.call_tool(*one)
                assert not result.is_error, result.content

            show("first write, loads the model", [await timed(lambda: call(write(profile, 0)))])
            writes = [await timed(lambda n=n: call(write(profile, n))) for n in range(1, memories)]
            show(f"write, of {memories}", writes)
            searches = [
                await timed(lambda n=n: call(search(profile, n * 7 % memories)))
                for n in range(min(200, memories))
            ]
            show("search", searches)


def show(what: str, seconds: list[float]) -> None:
    best, median = min(seconds), statistics.median(seconds)
    print(f"{what:32} median {median * 1000:9.1f} ms   best {best * 1000:9.1f} ms", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=list(OPTIONS), default="engram")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--memories", type=int, default=1000)
    given = parser.parse_args()
    asyncio.run(measured(given.profile, given.rounds, given.memories))
