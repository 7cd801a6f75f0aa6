"""What a saved benchmark says about its machine: enough to repeat it, nothing about its owner."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from engram._version import __version__

# The distribution that brings each package whose version moves the numbers.
DISTRIBUTIONS = {"numpy": "numpy", "apsw": "apsw-sqlite3mc", "onnxruntime": "onnxruntime"}
COMMIT = ("id", "time", "dirty")


def installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Replaced rather than trimmed: a new key of pytest-benchmark must not slip in."""
    cpu = machine_info.get("cpu") or {}
    machine_info.clear()
    machine_info.update(
        cpu=cpu.get("brand_raw", platform.machine()),
        cores=os.cpu_count(),
        system=platform.system(),
        machine=platform.machine(),
        python=platform.python_version(),
        versions={
            "engram": __version__,
            **{name: installed(distribution) for name, distribution in DISTRIBUTIONS.items()},
        },
    )


def pytest_benchmark_update_commit_info(commit_info: dict[str, Any]) -> None:
    kept = {key: commit_info[key] for key in COMMIT if key in commit_info}
    commit_info.clear()
    commit_info.update(kept)


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Without the time of every round: the statistics say it in a hundredth of the size."""
    for benchmark in output_json["benchmarks"]:
        benchmark["stats"].pop("data", None)
