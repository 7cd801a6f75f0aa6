"""`python -m engram.training` is the `engram-trainer` command."""

from __future__ import annotations

from engram.training import main

if __name__ == "__main__":
    main()
