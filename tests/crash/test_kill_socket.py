"""kill -9 of a server under load: whatever it acknowledged is found by searching afterwards.

`--kills N` sets how often; state accumulates from kill to kill.
"""

from __future__ import annotations

import random
import string
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engram_server import DETERMINISTIC, Server
from socket_server import PATIENCE

from engram import Engram
from engram.errors import ProcessLost
from engram.server.client import SocketClient

# To the deterministic embedder all texts of one length are much alike.
SETTINGS = f"{DETERMINISTIC}[deduplication]\nthreshold = 1.0\n"
CLIENTS = 5


class Load:
    """Clients that store, search and judge until the server is gone."""

    def __init__(self, path: Path, seed: int) -> None:
        self.acknowledged: dict[str, str] = {}
        self.wrong: list[object] = []
        self._count = threading.Semaphore(0)
        self._client = SocketClient(path)
        self._threads = [
            threading.Thread(target=self._ask, args=(random.Random(f"{seed} {n}"),))
            for n in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, stores: int) -> None:
        for _ in range(stores):
            assert self._count.acquire(timeout=PATIENCE)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        self._client.close()

    def _ask(self, chance: random.Random) -> None:
        with suppress(ProcessLost):
            while True:
                context = sentence(chance)
                stored = self._client.memory_store(context, sentence(chance), sentence(chance))
                self.acknowledged[stored["id"]] = context
                self._count.release()
                if not stored["indexed"] or stored["deduplicated"]:
                    self.wrong.append(stored)
                if chance.random() < 0.3:
                    found = self._client.memory_search(context)
                    if found["results"][0]["id"] != stored["id"]:
                        self.wrong.append(found)
                if chance.random() < 0.2:
                    self._client.memory_judge(stored["id"], score=chance.random())


def sentence(chance: random.Random) -> str:
    return " ".join("".join(chance.choices(string.ascii_lowercase, k=8)) for _ in range(5))


def reworded(text: str) -> str:
    """The same to the embedder, but for a trifle, in words of which none is the same."""
    letters = string.ascii_lowercase
    return " ".join(word[:-1] + letters[letters.index(word[-1]) - 1] for word in text.split())


def check_found(server: Server, memories: Mapping[str, str]) -> None:
    with SocketClient(server.socket) as client:
        for memory_id, context in memories.items():
            # Of its words alone: by meaning, others are nearer to so short a text.
            found = client.memory_search(context.split()[2], limit=100)
            assert memory_id in [hit["id"] for hit in found["results"]]
            found = client.memory_search(reworded(context))
            assert not found["degraded"]
            assert found["results"][0]["id"] == memory_id
        status = client.memory_status()
        assert status["memory_count"] == status["indexed_count"] == status["index_size"]


def test_killed_servers_lose_nothing_they_acknowledged(tmp_path, request):
    server = Server(tmp_path, SETTINGS)
    acknowledged: dict[str, str] = {}
    for seed in range(request.config.getoption("kills")):
        process = server.run()
        load = Load(server.socket, seed)
        try:
            load.wait(random.Random(seed).randrange(1, 60))
        finally:
            process.kill()
            process.communicate()
        load.join()
        assert load.wrong == []
        with Engram(server.store) as memory:
            assert memory.check() == []
            # Beyond what was acknowledged is at most what was under way.
            assert memory.counts().episodes >= len(acknowledged) + len(load.acknowledged)
        acknowledged |= load.acknowledged
        with server:
            check_found(server, load.acknowledged)
    with server:
        check_found(server, acknowledged)
        assert len(server.memories()) <= len(acknowledged) + CLIENTS * (seed + 1)
