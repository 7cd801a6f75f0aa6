"""Every face there is, by the name that tests and the page have for it."""

from __future__ import annotations

from contract.faces.command import CommandFace
from contract.faces.face import Face
from contract.faces.library import AsyncFace, PythonFace
from contract.faces.processes import JsonlFace, SocketFace

FACES: dict[str, type[Face]] = {
    "python": PythonFace,
    "async": AsyncFace,
    "jsonl": JsonlFace,
    "socket": SocketFace,
    "command": CommandFace,
}
