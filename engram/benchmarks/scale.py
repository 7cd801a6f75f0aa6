"""The documented import path of what is measured at one size."""

from __future__ import annotations

from engram.bench.point import ScalePoint

__all__ = ["ScalePoint"]
