"""Lines of a connection, read in bounded memory however many clients there are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from engram.server.frames import UnreadableLineError, id_at_start

if TYPE_CHECKING:
    from engram.server.limits import Limits

__all__ = ["PIECE", "Lines", "Room", "StalledLineError"]

PIECE: Final = 65_536
"""Bytes read at once, and what a line may have whatever others keep the server busy with."""

_LARGEST_AT_ONCE: Final = 4
"""How many lines of the largest size there is room for at the same time."""


class Room:
    """What the server keeps of lines that are not answered yet, or of replies not read yet.

    That is of all clients together. Only what a line has beyond its first `PIECE` bytes counts:
    nobody is in the way of small ones.

    Args:
        max_line_bytes: What one line that is read may have, its newline not counted.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self.max_line_bytes = max_line_bytes
        self._most = _LARGEST_AT_ONCE * max_line_bytes
        self._taken = 0

    def take(self, size: int) -> bool:
        """Return whether there was room for so many bytes, which are then taken.

        There is for any number that is alone.
        """
        if self._taken and self._taken + size > self._most:
            return False
        self._taken += size
        return True

    def give_back(self, size: int) -> None:
        """Let go of so many bytes."""
        self._taken -= size


class StalledLineError(UnreadableLineError):
    """A client keeps room for a line that it does not go on with."""


class Lines:
    """The lines that a client sends, one after the other.

    Args:
        stream: What it sends.
        room: Shared by all clients.
        limits: How long it may take for a line that takes room.
    """

    def __init__(self, stream: asyncio.StreamReader, room: Room, limits: Limits) -> None:
        self._stream = stream
        self._room = room
        self._limits = limits
        # What was read beyond the last line: from `_at` on.
        self._piece = b""
        self._at = 0
        self._taken = 0
        # When the line began to take room, on the loop's clock.
        self._since = 0.0

    async def next(self) -> bytearray | UnreadableLineError:
        """Return the next line without its newline; or why it was not kept.

        That one is read to its end, and the next line is a good one again. What is after the last
        newline is a line as well, unless nothing is there. A line takes room until the next one
        is asked for.

        Raises:
            EOFError: There are no more.
            StalledLineError: The client takes too long; it is not worth another line.
            OSError: The client is gone.
        """
        self.close()
        line = bytearray()
        refused: UnreadableLineError | None = None
        length, begun, ended = 0, False, False
        while not ended:
            if self._at == len(self._piece):
                self._piece, self._at = await self._more(line), 0
                if not self._piece:
                    break
            begun = True
            part, ended = self._part()
            length += len(part)
            refused = self._refused(length, refused)
            if refused is None:
                line += part
            elif line:
                line = bytearray()
                self.close()
        if not begun:
            raise EOFError
        return line if refused is None else refused

    def close(self) -> None:
        """Give back the room of the last line."""
        self._room.give_back(self._taken)
        self._taken = 0

    async def _more(self, line: bytearray) -> bytes:
        """Return what comes next, the line being so far.

        Raises:
            StalledLineError: The line takes room, and nothing comes for as long as a request may
                take, or too little in all.
        """
        if not self._taken:
            return await self._stream.read(PIECE)
        soon = asyncio.get_running_loop().time() + self._limits.request_seconds
        enough = self._since + self._limits.transfer_seconds(len(line))
        try:
            async with asyncio.timeout_at(min(soon, enough)):
                return await self._stream.read(PIECE)
        except TimeoutError:
            message = "the rest of the line did not come in time"
            raise StalledLineError(message, id_at_start(line)) from None

    def _refused(
        self, length: int, before: UnreadableLineError | None
    ) -> UnreadableLineError | None:
        """Take room for a line of so many bytes, of which the last are new; or say why not."""
        if length > self._room.max_line_bytes:
            return UnreadableLineError(f"the line has more than {self._room.max_line_bytes} bytes")
        if before is not None:
            return before
        new = max(0, length - PIECE) - self._taken
        if not self._room.take(new):
            return UnreadableLineError("there is no room for a line so long now: send it later")
        if new and not self._taken:
            self._since = asyncio.get_running_loop().time()
        self._taken += new
        return None

    def _part(self) -> tuple[bytes, bool]:
        """Return what the piece has of the line, and whether the line ends there."""
        start, end = self._at, self._piece.find(b"\n", self._at)
        self._at = len(self._piece) if end < 0 else end + 1
        return self._piece[start : None if end < 0 else end], end >= 0
