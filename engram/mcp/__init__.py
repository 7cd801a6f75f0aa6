"""`engram-mcp`: memory as tools for an MCP client, over stdin and stdout.

`options` reads how it is started, `process` is the process that serves, `opening` opens the store
once the client was answered, `calls` makes tools of functions. A profile is a set of tools over one
store, see `profile.Profile`.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Serve until the client is gone, and exit.

    Exit codes: 0 the client said no more, 1 a failure, 2 a wrong command line, 143 and 130 ended by
    a signal, or because the client is gone.

    Args:
        argv: The arguments without the program's name; None takes those of the process.
    """
    # Read the options before anything heavy is imported: help and refusals come at once.
    from engram.mcp.options import command  # noqa: PLC0415
    from engram.mcp.process import serve  # noqa: PLC0415

    command(serve).main(sys.argv[1:] if argv is None else argv, prog_name="engram-mcp")
