"""Read the command line of `engram-mcp` in this process."""

from __future__ import annotations

from collections.abc import Sequence

from click.testing import CliRunner, Result

from engram.mcp.options import Options, command


def started(arguments: Sequence[str], **variables: str) -> Options | None:
    """What the server would be started with; None where that is refused with exit code 2."""
    done, seen = _read(arguments, variables)
    assert done.exit_code == (0 if seen else 2), done.output
    return seen[0] if seen else None


def refused(arguments: Sequence[str], *, code: int = 2, **variables: str) -> str:
    """What is said about a command line that it does not start with."""
    done, seen = _read(arguments, variables)
    assert (done.exit_code, seen) == (code, []), done.output
    return done.output


def _read(arguments: Sequence[str], variables: dict[str, str]) -> tuple[Result, list[Options]]:
    seen: list[Options] = []
    return CliRunner().invoke(command(seen.append), arguments, env=variables), seen
