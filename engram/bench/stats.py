"""Latencies, summed up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["WARM_UPS", "LatencyStats", "call_times"]

WARM_UPS = 5
"""Calls before those that are timed."""

_Argument = TypeVar("_Argument")


@dataclass
class LatencyStats:
    """How long calls took.

    Attributes:
        p50_ms: The median, in milliseconds.
        p99_ms: The 99th percentile, interpolated linearly between samples.
        mean_ms: The mean.
        throughput_per_sec: Calls a second, one after another.
        p95_ms: The 95th percentile.
    """

    p50_ms: float
    p99_ms: float
    mean_ms: float
    throughput_per_sec: float
    p95_ms: float = 0.0

    @classmethod
    def from_samples(cls, samples: Sequence[float]) -> LatencyStats:
        """Sum up at least one duration; durations are in milliseconds."""
        p50, p95, p99 = np.percentile(samples, (50, 95, 99)).tolist()
        mean = float(np.mean(samples))
        return cls(p50, p99, mean, 1000.0 / mean if mean > 0 else 0.0, p95)


def call_times(
    call: Callable[[_Argument], object], arguments: Iterable[_Argument], warm_ups: int = WARM_UPS
) -> LatencyStats:
    """Call with each argument in turn and sum up the times of all but the first calls."""
    samples = []
    for argument in arguments:
        started = time.perf_counter()
        call(argument)
        samples.append(1000.0 * (time.perf_counter() - started))
    return LatencyStats.from_samples(samples[warm_ups:])
