"""The listener: clients, each with a line at a time, and none in another's way."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from engram.reporting import report
from engram.server import frames
from engram.server.failures import SOCKET, Failure
from engram.server.lines import PIECE, Lines, Room, StalledLineError

if TYPE_CHECKING:
    from engram.server.limits import Limits
    from engram.server.workers import Workers

__all__ = ["Listener"]

_BACK_OFF: Final = 1.0
"""Seconds until the next try after a client could not be accepted."""

_TURNS: Final = 32
"""Turns of the loop until one of the clients that are gone is noticed: it takes a few for each."""

_PEER: Final = struct.Struct("iII")
"""What the system says of a client: its process, user and group."""


class Listener:
    """Serves the clients of a socket.

    Args:
        workers: Who answers lines.
        limits: How large lines are and how many clients; how long a client may read nothing.
    """

    def __init__(self, workers: Workers, limits: Limits) -> None:
        self._workers = workers
        self._limits = limits
        self._lines = Room(limits.max_line_bytes)
        self._replies = Room(limits.max_line_bytes)
        # Whether a request of this client is under way.
        self._clients: dict[asyncio.Task[None], bool] = {}
        self._stopping = False

    async def serve(self, listening: socket.socket, stop: asyncio.Event, grace: float) -> None:
        """Serve clients until it is time to stop.

        Args:
            listening: The socket, not blocking; closed in the end.
            stop: Says so: no client is accepted any more, and no request begun.
            grace: Seconds for requests under way to be answered, before clients are disconnected.
        """
        endless = [asyncio.create_task(self._accept(listening))]
        if self._limits.upkeep_seconds:
            endless.append(asyncio.create_task(self._keep_up()))
        try:
            await stop.wait()
        finally:
            self._stopping = True
            for task in endless:
                task.cancel()
            await asyncio.wait(endless)
            listening.close()
            await self._part_with_clients(grace)

    async def _part_with_clients(self, grace: float) -> None:
        for client, busy in self._clients.items():
            if not busy:
                client.cancel()
        if self._clients:
            await asyncio.wait(self._clients, timeout=grace)
        for client in self._clients:
            client.cancel()
        if self._clients:
            await asyncio.wait(self._clients)

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(self._limits.upkeep_seconds)
            await self._workers.upkeep()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listening)
            except OSError as error:
                report(error)
                await asyncio.sleep(_BACK_OFF)
                continue
            if await self._is_full():
                client.close()
                continue
            task = asyncio.create_task(self._serve_client(client))
            self._clients[task] = False
            task.add_done_callback(self._clients.pop)
            # While clients wait, accepting one never gives the others a turn.
            await asyncio.sleep(0)

    async def _is_full(self) -> bool:
        """Return whether there are too many clients, those not counted that are gone."""
        for _ in range(_TURNS):
            if len(self._clients) < self._limits.max_connections:
                return False
            await asyncio.sleep(0)
        return True

    async def _serve_client(self, client: socket.socket) -> None:
        try:
            with client:
                if not _may_ask(client):
                    return
                reader, writer = await asyncio.open_unix_connection(sock=client, limit=PIECE)
                await self._converse(Lines(reader, self._lines, self._limits), writer)
        except (EOFError, OSError):  # it has no more to say, is gone, or reads nothing
            pass
        except Exception as error:  # noqa: BLE001 - that is no reason to fail the others
            report(error)

    async def _converse(self, lines: Lines, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type
        # The next line is not looked at before the last byte of this reply has left.
        writer.transport.set_write_buffer_limits(high=0)
        try:
            while not self._stopping:
                self._clients[task] = False
                line = await lines.next()
                self._clients[task] = True
                answering = self._workers.answer(line)
                del line  # it may be large, and the next one may be long in coming
                await self._reply(writer, *await answering)
        except StalledLineError as stalled:
            lines.close()
            request_id = stalled.request_id
            await self._reply(writer, request_id, frames.refusal(request_id, stalled))
        finally:
            lines.close()
            # What was sent has left this process: nothing is lost.
            writer.transport.abort()

    async def _reply(self, writer: asyncio.StreamWriter, request_id: str, reply: bytes) -> None:
        """Send a reply, which is kept for no longer than until it has left.

        Raises:
            OSError: The client takes it too slowly, or is gone.
        """
        size = max(0, len(reply) - PIECE)
        if not self._replies.take(size):
            size, reply = 0, frames.refusal(request_id, _crowded())
        try:
            writer.write(reply)
            length = len(reply)
            del reply
            await self._send(writer, length)
        finally:
            self._replies.give_back(size)

    async def _send(self, writer: asyncio.StreamWriter, size: int) -> None:
        """Wait until all of the bytes that were written have left.

        Raises:
            TimeoutError: The client has taken nothing for as long as a request may take, or takes
                too little in all.
            OSError: It is gone.
        """
        left = writer.transport.get_write_buffer_size()
        patience = self._limits.request_seconds
        async with asyncio.timeout(self._limits.transfer_seconds(size)):
            while left:
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await writer.drain()
                before, left = left, writer.transport.get_write_buffer_size()
                if left == before:
                    raise TimeoutError


def _crowded() -> Failure:
    text = "socket error: it was carried out, but clients leave too many long replies unread"
    return Failure(SOCKET, text)


def _may_ask(client: socket.socket) -> bool:
    """Return whether a client is of the same user, or root; where the system tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    told = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(told)
    return user in (0, os.geteuid())
