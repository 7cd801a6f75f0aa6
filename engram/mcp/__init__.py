"""`engram-mcp`: the MCP server; not there yet."""

from __future__ import annotations

import sys
from typing import NoReturn


def main(argv: list[str] | None = None) -> NoReturn:
    """Say on stderr that this command is not there yet, and exit with 1."""
    sys.stderr.write("engram-mcp: not there yet: this version has no MCP server\n")
    sys.exit(1)
