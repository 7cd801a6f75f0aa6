"""The documented import path of the MCP server's entry point."""

from __future__ import annotations

from engram.mcp import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
