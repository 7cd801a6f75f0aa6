"""A store that all faces have open at once."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from contract.faces.face import Face
from contract.faces.registry import FACES

from engram import Engram


class Place:
    """A folder with a store; faces are opened when they are asked for and stay open.

    Args:
        folder: An empty folder, or that of a place that is closed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "work/.engram/engram.db"
        self.store.parent.mkdir(parents=True, exist_ok=True)
        self.config = folder / "engram.yaml"
        self.config.write_text(
            f"db_path: {self.store}\nretrieval: {{min_confidence: 0.0}}\n", encoding="utf-8"
        )
        self._stack = ExitStack()
        self._opened: dict[tuple[type[Face], str | None, str], Face] = {}
        # Who sees everything, and makes the store that some faces want to find.
        self.operator = self._stack.enter_context(Engram(self.store))

    def face(self, name: str, agent: str | None = None) -> Any:
        """Return a face; one process serves all tests of it."""
        return self._face(FACES[name], agent, "read")

    def writer(self, name: str, agent: str | None = None) -> Any:
        """Return the face, or the library where the face only reads.

        Where it looks after a session, it is one that has read nothing.
        """
        face = FACES[name] if FACES[name].writes else FACES["python"]
        return self._face(face, agent, "written" if face.sessions else "read")

    def _face(self, face: type[Face], agent: str | None, session: str) -> Any:
        which = face, agent, session
        if which not in self._opened:
            opened = self._opened[which] = face(self, agent)
            self._stack.callback(opened.close)
        return self._opened[which]

    def contents(self) -> tuple[object, ...]:
        """What is told apart when something was written."""
        counts = self.operator.counts()
        return (counts.episodes, counts.facts)

    def close(self) -> None:
        self._stack.close()
