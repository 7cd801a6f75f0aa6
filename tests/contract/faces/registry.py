"""Every face there is, by the name that tests and the page have for it."""

from __future__ import annotations

from contract.faces.command import CommandFace
from contract.faces.face import Face
from contract.faces.langgraph_store import LangGraphFace
from contract.faces.library import AsyncFace, PythonFace
from contract.faces.mcp_servers import McpFace, McpProjectFace
from contract.faces.processes import JsonlFace, SocketFace

FACES: dict[str, type[Face]] = {
    "python": PythonFace,
    "async": AsyncFace,
    "jsonl": JsonlFace,
    "socket": SocketFace,
    "mcp": McpFace,
    "mcp_project": McpProjectFace,
    "langgraph": LangGraphFace,
    "command": CommandFace,
}
