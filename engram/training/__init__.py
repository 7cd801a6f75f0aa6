"""The trainer: reads a store of experiences and prints what it learned, one JSON object a line."""

from __future__ import annotations

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Run the trainer and exit with its code.

    Args:
        argv: The arguments without the program's name; None takes those of the process.
    """
    # Those who only read what it says need no command line.
    from engram.training.command import train  # noqa: PLC0415

    train.main(argv, prog_name="engram-trainer")
