"""`engram-bench`: what engram costs, in time, memory, disk and tokens, and what recall finds."""

from __future__ import annotations

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Run one benchmark and exit with its code.

    Args:
        argv: The arguments without the program's name; None takes those of the process.
    """
    # Child processes that are measured import modules of this package, and no command.
    from engram.bench.commands import engram_bench  # noqa: PLC0415
    from engram.cli import run  # noqa: PLC0415

    run(engram_bench, "engram-bench", argv)
