"""Threads that carry out requests, each within a time."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from engram.reporting import report
from engram.server import frames
from engram.server.failures import SOCKET, Failure
from engram.server.frames import UnreadableLineError
from engram.server.lines import PIECE

if TYPE_CHECKING:
    from engram.server.frames import Request
    from engram.server.limits import Limits

__all__ = ["Methods", "Workers"]

_LONG_WORKERS: Final = 4
"""Threads for long requests, so that they never keep the others waiting."""

_READERS: Final = 2
"""Threads that read the lines of large requests, which takes time in which others are answered."""

_Result = TypeVar("_Result")


class Methods(Protocol):
    """What carries out requests."""

    def call(self, method: str, params: object) -> object:
        """Return the result of a method, made of what JSON has forms for; in any thread.

        Raises:
            Failure: There is none.
        """

    def is_long(self, method: str, params: object) -> bool:
        """Return whether a request may take long; at once."""

    def background(self) -> object:
        """Do one round of upkeep."""

    def close(self) -> None:
        """Let go of the store."""


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
        self._reading = ThreadPoolExecutor(_READERS, "engram-reading")
        self._upkeep = ThreadPoolExecutor(1, "engram-background")

    async def answer(self, line: bytearray | UnreadableLineError) -> tuple[str, bytes]:
        """Return the id of the request in a line, and the line that answers it.

        Args:
            line: What the client sent, or why it is not here.
        """
        request_id = ""
        try:
            if isinstance(line, UnreadableLineError):
                raise line
            if len(line) <= PIECE:
                request = frames.decode(line)
            else:
                request_id = frames.id_at_start(line)
                request = await self._read(line)
            request_id = request.id
            if self._methods.is_long(request.method, request.params):
                seconds, pool = self._limits.long_seconds, self._long
            else:
                seconds, pool = self._limits.request_seconds, self._short
            return request_id, await self._in_time(seconds, pool, request)
        except UnreadableLineError as error:
            return error.request_id, frames.refusal(error.request_id, error)
        except Failure as failure:
            return request_id, frames.refusal(request_id, failure)

    async def upkeep(self) -> None:
        """Do one round of upkeep, however long it takes; what fails is reported."""
        try:
            await asyncio.wrap_future(self._upkeep.submit(self._methods.background))
        except Exception as error:  # noqa: BLE001 - the next round may do better
            report(error)

    def close(self) -> None:
        """Take no more work, and wait for what is under way."""
        pools = (self._short, self._long, self._reading, self._upkeep)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in pools:
            pool.shutdown()

    async def _read(self, line: bytearray) -> Request:
        """Return the request in a large line.

        Raises:
            Failure: There is none, or reading it took too long.
        """
        job = self._reading.submit(frames.decode, line)
        try:
            return await _result(job, self._limits.long_seconds)
        except TimeoutError:
            job.cancel()
            message = "socket error: the line was not read in time; nothing was done"
            raise Failure(SOCKET, message) from None

    async def _in_time(self, seconds: float, pool: ThreadPoolExecutor, request: Request) -> bytes:
        """Return the reply to a request that is carried out in a pool.

        Raises:
            Failure: It took too long; where it had begun, it goes on unseen.
        """
        job = pool.submit(self._carry_out, request)
        try:
            return await _result(job, seconds)
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


async def _result(job: Future[_Result], seconds: float) -> _Result:
    """Return what a job returns.

    Raises:
        TimeoutError: It has not ended within these seconds.
    """
    async with asyncio.timeout(seconds):
        return await asyncio.wrap_future(job)
