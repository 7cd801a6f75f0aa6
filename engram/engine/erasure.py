"""Erasing what concerns a person, and shrinking the file."""

from __future__ import annotations

from engram.engine.session import Session


class Erasure(Session):
    """The calls that erase."""

    def compact(self) -> None:
        """Rebuild the file so that it takes no more room than its contents.

        Erased text is gone before that (see `forget`); this gives its room back. Other connections
        may be open and read on. Costs time, and for as long as it runs memory, in the size of the
        store.

        Raises:
            Busy: Another connection writes for longer than the busy timeout; nothing changed.
            StoreFull: The disk has no room for the rebuilt pages; nothing changed.
        """
        self._store.compact()
