"""Load on a server process: many clients that store, search and judge, every reply checked.

    python benchmarks/socket_load.py --clients 200 --seconds 60 --provider local

prints one JSON object: requests, latencies and errors of each method, and the server's memory over
time. The clients share the machine with the server, so latencies are those of a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

# All that is stored is told apart: the deterministic embedder finds texts of one length alike.
SETTINGS = '[embedding]\nprovider = "{provider}"\n[deduplication]\nthreshold = 1.0\n'
PROVIDERS = ("deterministic", "local")
LONGEST_LINE = 1 << 24
START_SECONDS = 60
WORDS = """
deploy server cache timeout token login retry queue schema index query session memory thread socket
client broker worker config secret release branch review test build metric alert trace backup disk
shard replica cursor parser lexer compiler kernel driver packet router proxy restore
"""
VOCABULARY = WORDS.split()


class Told:
    """What came of the requests."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.errors: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.resident: list[tuple[float, float]] = []

    def report(self, seconds: float) -> dict[str, Any]:
        total = sum(map(len, self.seconds.values()))
        return {
            "requests": total,
            "per_second": round(total / seconds, 1),
            "methods": {name: _latencies(times) for name, times in sorted(self.seconds.items())},
            "errors": dict(self.errors),
            "wrong": dict(self.wrong),
            "resident_mb": self.resident,
        }


class Client:
    """One connection, and the memories that were stored by it."""

    def __init__(self, number: int, told: Told) -> None:
        self.name = f"client{number}"
        self._told = told
        self._chance = random.Random(number)
        self._stored: list[tuple[str, str]] = []
        self._sent = 0

    async def converse(self, path: Path, until: float, most: int) -> None:
        """Ask until a time has come or so many requests were answered."""
        reader, writer = await asyncio.open_unix_connection(path, limit=LONGEST_LINE)
        try:
            while self._sent < most and time.perf_counter() < until:
                await self._turn(reader, writer)
        except (OSError, ValueError) as error:
            self._told.wrong[f"connection: {type(error).__name__}"] += 1
        finally:
            writer.close()

    async def _turn(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = self._chance.random()
        if kind < 0.4 or not self._stored:
            context, params = self._memory()
            data = await self._ask(reader, writer, "memory_store", params)
            if data is not None:
                self._check("store", data["deduplicated"] is False and bool(data["id"]))
                self._stored.append((data["id"], context))
            return
        memory_id, context = self._chance.choice(self._stored)
        if kind < 0.85:
            data = await self._ask(reader, writer, "memory_search", {"query": context})
            if data is not None:
                ids = [hit["id"] for hit in data["results"]]
                self._check("search", memory_id in ids and data["count"] == len(ids) <= 10)
        else:
            score = round(self._chance.random(), 3)
            params = {"memory_id": memory_id, "score": score}
            data = await self._ask(reader, writer, "memory_judge", params)
            if data is not None:
                expected = {"score": score, "reason": "explicit score", "degraded": False}
                self._check("judge", data == expected)

    def _memory(self) -> tuple[str, dict[str, object]]:
        words = [" ".join(self._chance.choices(VOCABULARY, k=8)) for _ in range(3)]
        mark = f"{self.name} item{self._sent} {self._chance.randrange(16**8):08x}"
        context = f"{mark} {words[0]}"
        return context, {
            "context": context,
            "action": words[1],
            "result": f"{words[2]} {mark}",
            "tags": [self._chance.choice(VOCABULARY)],
        }

    async def _ask(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        method: str,
        params: Mapping[str, object],
    ) -> Any:
        """Return the data of the reply, None where it is an error."""
        self._sent += 1
        request_id = f"{self.name}-{self._sent}"
        line = json.dumps({"id": request_id, "method": method, "params": params})
        began = time.perf_counter()
        writer.write(line.encode() + b"\n")
        await writer.drain()
        said = await reader.readuntil(b"\n")
        self._told.seconds[method].append(time.perf_counter() - began)
        reply = json.loads(said)
        self._check("form", list(reply) == ["id", "ok", "data", "error"])
        self._check("id", reply["id"] == request_id)
        if not reply["ok"]:
            self._told.errors[reply["error"]["message"]] += 1
        return reply["data"]

    def _check(self, what: str, right: bool) -> None:
        if not right:
            self._told.wrong[what] += 1


async def load(path: Path, process_id: int, clients: range, seconds: float, most: int) -> Told:
    """Have clients ask a server all at once, and return what came of it.

    Args:
        path: Its socket.
        process_id: Its process, whose memory is watched.
        clients: Their numbers, from which all they say follows.
        seconds: For how long.
        most: Requests of one client, at most.
    """
    told = Told()
    began = time.perf_counter()
    watching = asyncio.create_task(_watch(process_id, told, began))
    talks = (Client(n, told).converse(path, began + seconds, most) for n in clients)
    await asyncio.gather(*talks)
    watching.cancel()
    told.resident.append((round(time.perf_counter() - began, 1), _resident(process_id)))
    return told


async def _watch(process_id: int, told: Told, began: float) -> None:
    while True:
        told.resident.append((round(time.perf_counter() - began, 1), _resident(process_id)))
        await asyncio.sleep(5)


def _resident(process_id: int) -> float:
    pages = int(Path(f"/proc/{process_id}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def _latencies(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    places = {name: ordered[min(int(len(ordered) * q), len(ordered) - 1)] for name, q in at.items()}
    return {"count": len(ordered)} | {f"{n}_ms": round(s * 1000, 1) for n, s in places.items()}


@asynccontextmanager
async def server(place: Path, provider: str) -> AsyncIterator[tuple[Path, int]]:
    """Run a server in a project of its own; yield its socket and its process."""
    folder = place / ".engram"
    folder.mkdir()
    (folder / "engram.toml").write_text(SETTINGS.format(provider=provider), encoding="utf-8")
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs yet
        [sys.executable, "-m", "engram", "server"],
        cwd=place,
        env={**os.environ, "HOME": str(place), "ENGRAM_PROJECT_DIR": str(place)},
    )
    socket = folder / "engram.sock"
    try:
        for _ in range(START_SECONDS * 20):
            if socket.exists() or process.poll() is not None:
                break
            await asyncio.sleep(0.05)
        yield socket, process.pid
        process.send_signal(signal.SIGTERM)
        if await asyncio.to_thread(process.wait, START_SECONDS) != 0:
            message = "the server did not end in good order"
            raise RuntimeError(message)
    finally:
        process.kill()
        process.wait()


async def measured(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        async with server(Path(place), options.provider) as (socket, process_id):
            began = time.perf_counter()
            told = await load(
                socket, process_id, range(options.clients), options.seconds, options.requests
            )
            seconds = time.perf_counter() - began
    return {"clients": options.clients, "provider": options.provider} | told.report(seconds)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--requests", type=int, default=10**9, help="of each client, at most")
    parser.add_argument("--provider", choices=PROVIDERS, default="local")
    return asyncio.run(measured(parser.parse_args(argv)))


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
