"""What a benchmark ran on."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engram import __version__

__all__ = ["machine", "versions"]

_PACKAGES = ("apsw-sqlite3mc", "hnswlib", "numpy", "onnxruntime", "pyroaring", "tokenizers")
_MODEL_NAME = re.compile(r"^model name\s*: (.*)$", re.MULTILINE)


def machine() -> dict[str, object]:
    """Return the processor, its cores, the memory in 10^9 bytes and the operating system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def _processor() -> str:
    try:
        found = _MODEL_NAME.search(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of engram, Python and what the figures depend on."""
    found = {"engram": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
