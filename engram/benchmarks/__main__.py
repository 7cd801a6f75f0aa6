"""`python -m engram.benchmarks` is the `engram-bench` command."""

from __future__ import annotations

from engram.bench import main

if __name__ == "__main__":
    main()
