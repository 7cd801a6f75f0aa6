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
        self._opened: dict[tuple[str, str | None], Face] = {}
        # Who sees everything, and makes the store that some faces want to find.
        self.operator = self._stack.enter_context(Engram(self.store))

    def face(self, name: str, agent: str | None = None) -> Any:
        """Return a face; one process serves all tests of it."""
        if (name, agent) not in self._opened:
            face = FACES[name](self, agent)
            self._stack.callback(face.close)
            self._opened[name, agent] = face
        return self._opened[name, agent]

    def writer(self, name: str, agent: str | None = None) -> Any:
        """Return the face itself, or the library where the face only reads."""
        return self.face(name if FACES[name].writes else "python", agent)

    def contents(self) -> tuple[object, ...]:
        """What is told apart when something was written."""
        counts = self.operator.counts()
        return (counts.episodes, counts.facts)

    def close(self) -> None:
        self._stack.close()
