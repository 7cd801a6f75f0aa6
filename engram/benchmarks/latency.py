"""The documented import path of the summed-up latencies."""

from __future__ import annotations

from engram.bench.stats import LatencyStats

__all__ = ["LatencyStats"]
