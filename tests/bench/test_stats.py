from __future__ import annotations

import numpy as np
import pytest

from engram.bench.stats import LatencyStats, call_times
from engram.benchmarks.latency import LatencyStats as Documented


def test_percentiles_are_interpolated():
    stats = LatencyStats.from_samples([4.0, 1.0, 3.0, 2.0])
    assert stats.p50_ms == 2.5
    assert stats.p95_ms == pytest.approx(3.85)
    assert stats.p99_ms == pytest.approx(3.97)
    assert stats.mean_ms == 2.5
    assert stats.throughput_per_sec == 400.0


def test_one_sample_is_every_percentile():
    assert LatencyStats.from_samples([7.0]) == LatencyStats(7.0, 7.0, 7.0, 1000 / 7.0, 7.0)


def test_no_time_has_no_throughput():
    assert LatencyStats.from_samples([0.0, 0.0]).throughput_per_sec == 0.0


def test_percentiles_agree_with_numpy():
    samples = np.random.default_rng(1).exponential(size=237).tolist()
    stats = LatencyStats.from_samples(samples)
    assert stats.p95_ms == pytest.approx(np.percentile(samples, 95))
    assert stats.p50_ms <= stats.p95_ms <= stats.p99_ms


def test_the_documented_name():
    assert Documented is LatencyStats
    assert LatencyStats(1.0, 2.0, 3.0, 4.0).p95_ms == 0


def test_warm_ups_are_called_and_not_counted(monkeypatch):
    ticks = iter([0.0, 9.0, 9.0, 9.001, 10.0, 10.003])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    called: list[str] = []
    stats = call_times(called.append, ["a", "b", "c"], warm_ups=1)
    assert called == ["a", "b", "c"]
    assert stats.mean_ms == pytest.approx(2.0)
