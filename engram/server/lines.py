"""Lines of a connection, read in bounded memory however many clients there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

__all__ = ["PIECE", "Lines", "Room"]

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


class Lines:
    """The lines that a client sends, one after the other.

    Args:
        stream: What it sends.
        room: Shared by all clients.
    """

    def __init__(self, stream: asyncio.StreamReader, room: Room) -> None:
        self._stream = stream
        self._room = room
        # What was read beyond the last line: from `_at` on.
        self._piece = b""
        self._at = 0
        self._taken = 0

    async def next(self) -> bytearray | None:
        """Return the next line without its newline; None for one that there is no room for.

        That one is read to its end, and the next line is a good one again. What is after the last
        newline is a line as well, unless nothing is there. A line takes room until the next one
        is asked for.

        Raises:
            EOFError: There are no more.
            OSError: The client is gone.
        """
        self.close()
        line = bytearray()
        fits, begun, ended = True, False, False
        while not ended:
            if self._at == len(self._piece):
                self._piece, self._at = await self._stream.read(PIECE), 0
                if not self._piece:
                    break
            begun = True
            part, ended = self._part()
            fits = fits and self._fits(len(line) + len(part))
            if fits:
                line += part
            elif line:
                line = bytearray()
                self.close()
        if not begun:
            raise EOFError
        return line if fits else None

    def close(self) -> None:
        """Give back the room of the last line."""
        self._room.give_back(self._taken)
        self._taken = 0

    def _fits(self, length: int) -> bool:
        """Return whether there is room for a line of so many bytes, of which the last are new."""
        new = max(0, length - PIECE) - self._taken
        if length > self._room.max_line_bytes or not self._room.take(new):
            return False
        self._taken += new
        return True

    def _part(self) -> tuple[bytes, bool]:
        """Return what the piece has of the line, and whether the line ends there."""
        start, end = self._at, self._piece.find(b"\n", self._at)
        self._at = len(self._piece) if end < 0 else end + 1
        return self._piece[start : None if end < 0 else end], end >= 0
