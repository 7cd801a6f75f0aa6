"""The memory of this process."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["process_memory"]

_SUMS = Path("/proc/self/smaps_rollup")
_LINE = re.compile(r"^(Rss|Anonymous): +(\d+) kB$", re.MULTILINE)


def process_memory() -> tuple[float | None, float | None]:
    """Return the resident and the anonymous memory of this process, in 10^6 bytes.

    Pages of files, which the system may take back, are the difference. Linux tells both; elsewhere
    `psutil` tells the first if it is installed.
    """
    try:
        sums = {name: int(size) * 1024 / 1e6 for name, size in _LINE.findall(_SUMS.read_text())}
    except OSError:
        return _resident(), None
    return sums["Rss"], sums["Anonymous"]


def _resident() -> float | None:
    try:
        import psutil  # noqa: PLC0415 - an extra, and not needed on Linux
    except ImportError:
        return None
    return float(psutil.Process().memory_info().rss) / 1e6
