"""`python -m engram` is the `engram` command."""

from __future__ import annotations

from engram.cli import main

if __name__ == "__main__":
    main()
