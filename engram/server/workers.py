"""Threads that carry out requests, each within a time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from engram.server import frames
from engram.server.failures import SOCKET, Failure
from engram.server.lines import PIECE
from engram.server.reporting import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.server.frames import Request

__all__ = ["LONG", "Limits", "Methods", "Workers"]

LONG: Final = frozenset(
    {
        "memory_consolidate",
        "memory_consolidate_apply",
        "memory_consolidate_preview",
        "memory_export",
        "memory_import",
        "memory_insights",
        "memory_migrate_apply",
        "memory_migrate_preview",
        "memory_reembed",
        "memory_train_generate",
    }
)
"""Methods whose work grows with the store, or waits for a language model or the trainer."""

_LONG_WORKERS: Final = 4
"""Threads for those, so that they never keep the others waiting."""

_Result = TypeVar("_Result")


class Methods(Protocol):
    """What carries out requests."""

    def call(self, method: str, params: object) -> object:
        """Return the result of a method, made of what JSON has forms for; in any thread.

        Raises:
            Failure: There is none.
        """

    def background(self) -> object:
        """Do one round of upkeep."""

    def close(self) -> None:
        """Let go of the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server allows.

    Attributes:
        workers: Requests that are carried out at the same time.
        request_seconds: What a request may take, and how long a client may leave its replies
            unread.
        long_seconds: What a request may take whose method is one of `LONG`.
        upkeep_seconds: Between two rounds of upkeep; 0 is no upkeep.
        max_line_bytes: Of a request.
        max_connections: Clients at the same time; more are disconnected at once.
    """

    workers: int = 8
    request_seconds: float = 30.0
    long_seconds: float = 600.0
    upkeep_seconds: float = 5.0
    max_line_bytes: int = 64 * 1024 * 1024
    max_connections: int = 1024


class Workers:
    """Threads, and the time that each request has in them.

    Args:
        methods: What carries out requests.
        limits: How many threads, and how much time.
    """

    def __init__(self, methods: Methods, limits: Limits) -> None:
        self._methods = methods
        self._limits = limits
        self._short = ThreadPoolExecutor(limits.workers, "engram-request")
        self._long = ThreadPoolExecutor(_LONG_WORKERS, "engram-long-request")
        self._upkeep = ThreadPoolExecutor(1, "engram-background")

    async def answer(self, line: bytearray | None) -> bytes:
        """Return the line that answers a line.

        Args:
            line: What the client sent; None for a line that is too long.
        """
        request_id = ""
        try:
            request = await self._read(line)
            request_id = request.id
            if request.method in LONG:
                return await self._within(
                    self._limits.long_seconds, self._long, self._carry_out, request
                )
            return await self._within(
                self._limits.request_seconds, self._short, self._carry_out, request
            )
        except frames.UnreadableLineError as error:
            return frames.refusal(error.request_id, error)
        except Failure as failure:
            return frames.refusal(request_id, failure)

    async def upkeep(self) -> None:
        """Do one round of upkeep, however long it takes; what fails is reported."""
        try:
            await asyncio.wrap_future(self._upkeep.submit(self._methods.background))
        except Exception as error:  # noqa: BLE001 - the next round may do better
            report(error)

    def close(self) -> None:
        """Take no more work, and wait for what is under way."""
        for pool in (self._short, self._long, self._upkeep):
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in (self._short, self._long, self._upkeep):
            pool.shutdown()

    async def _read(self, line: bytearray | None) -> Request:
        if line is None:
            message = "there is no room for a line so long"
            raise frames.UnreadableLineError(message)
        if len(line) <= PIECE:
            return frames.decode(line)
        # The others must not wait for that.
        return await self._within(self._limits.request_seconds, self._short, frames.decode, line)

    async def _within(
        self,
        seconds: float,
        pool: ThreadPoolExecutor,
        work: Callable[..., _Result],
        *arguments: object,
    ) -> _Result:
        """Return what a function returns in a pool.

        Raises:
            Failure: It took too long; where it had begun, it goes on unseen.
        """
        job = pool.submit(work, *arguments)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(job)
        except TimeoutError:
            outcome = "it was not begun" if job.cancel() else "it may still be carried out"
            message = f"socket error: no result within {seconds:g} s; {outcome}"
            raise Failure(SOCKET, message) from None

    def _carry_out(self, request: Request) -> bytes:
        try:
            return frames.encode(request.id, self._methods.call(request.method, request.params))
        except Failure as failure:
            return frames.refusal(request.id, failure)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets one answer
            report(error)
            return frames.refusal(
                request.id, Failure(SOCKET, "socket error: the request failed unexpectedly")
            )
