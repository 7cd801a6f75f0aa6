"""How many threads an embedder may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

from engram.errors import InvalidArgument

__all__ = ["THREADS_VARIABLE", "thread_count", "usable_cpus"]

THREADS_VARIABLE = "ENGRAM_THREADS"

_MOST_BY_DEFAULT = 4
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


def thread_count() -> int:
    """Return `ENGRAM_THREADS`, or else the usable CPUs, at most four of them.

    Raises:
        InvalidArgument: `ENGRAM_THREADS` is set and no positive whole number.
    """
    wanted = os.environ.get(THREADS_VARIABLE, "")
    if not wanted:
        return min(_MOST_BY_DEFAULT, usable_cpus())
    if not (wanted.isascii() and wanted.isdigit()) or int(wanted) < 1:
        message = f"{THREADS_VARIABLE} must be a positive whole number"
        raise InvalidArgument(message)
    return int(wanted)


def usable_cpus(cgroups: Path = _CGROUPS, own_cgroup: Path = _OWN_CGROUP) -> int:
    """Return the CPUs this process may use: its affinity mask, cut by its control group's quota.

    Args:
        cgroups: Where the control groups are mounted (version 2 or 1).
        own_cgroup: The file that says which group this process is in.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    limits = [_quota(_words(path / "cpu.max")) for path in _groups(cgroups, own_cgroup)]
    old = cgroups / "cpu"
    limits.append(_quota(_words(old / "cpu.cfs_quota_us") + _words(old / "cpu.cfs_period_us")))
    return max(1, int(min(cpus, *limits)))


def _groups(cgroups: Path, own_cgroup: Path) -> list[Path]:
    """Return this process's group of version 2 and every group around it."""
    own = next((word[3:] for word in _words(own_cgroup) if word.startswith("0::")), "/")
    inner = cgroups / own.lstrip("/")
    return [group for group in (inner, *inner.parents) if group.is_relative_to(cgroups)]


def _quota(limit: list[str]) -> float:
    """Return the CPUs that "microseconds per period" grant; infinity where nothing is limited."""
    try:
        quota, period = (int(word) for word in limit)
    except ValueError:  # "max", or the file is not there
        return math.inf
    return quota / period if quota > 0 and period > 0 else math.inf


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return []
