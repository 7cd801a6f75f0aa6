"""A store that is opened late: the client is answered first."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from engram.errors import Closed, EngramError
from engram.mcp.options import say
from engram.presence import Presence
from engram.server.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Closeable", "Opening"]


class Closeable(Protocol):
    """What a profile's tools work on."""

    def close(self) -> None:
        """Let go of it; never fails."""


Opened = TypeVar("Opened", bound=Closeable)


class Opening(Generic[Opened]):
    """Opens what tools work on: in the background, or when the first call needs it.

    Safe to use from any thread.

    Args:
        how: Imports what is heavy, opens the store and returns what works on it.
        file: Where the store is, of which nothing is read or kept once it was taken away; None is
            nowhere, or somebody else sees to it.
    """

    def __init__(self, how: Callable[[], Opened], file: Path | None = None) -> None:
        self._how = how
        self._file = file
        self._presence: Presence | None = None
        self._opened: Opened | None = None
        self._started = self._closed = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Open it in the background; a failure is said, and the next call tries again."""
        if not self._started:
            self._started = True
            threading.Thread(target=self._try, name="engram-opening", daemon=True).start()

    def _try(self) -> None:
        try:
            self.get()
        except (EngramError, Failure) as error:
            say(f"the store cannot be opened: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, calls meet it again
            say(f"the store cannot be opened: {type(error).__name__}")

    def get(self) -> Opened:
        """Return what the tools work on; waits for whoever is opening it.

        Raises:
            Closed: The server is ending, or the store's file was removed or replaced.
            EngramError, ImportError, OSError: It cannot be opened; another call tries again.
        """
        with self._lock:
            if self._closed:
                message = "the server is ending"
                raise Closed(message)
            if self._opened is None:
                self._opened = self._how()
                self._presence = None if self._file is None else Presence(self._file)
            self.check()
            return self._opened

    def check(self) -> None:
        """Refuse to acknowledge what went into a file that was taken away meanwhile.

        Raises:
            Closed: The store's file was removed or replaced.
        """
        if self._presence is not None:
            self._presence.check()

    def close(self) -> None:
        """Close it if it is open; nobody opens it any more."""
        with self._lock:
            self._closed = True
            if self._opened is not None:
                self._opened.close()
