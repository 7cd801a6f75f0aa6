"""The documented import path of the entry point of `engram-bench`."""

from __future__ import annotations

from engram.bench import main

__all__ = ["main"]
