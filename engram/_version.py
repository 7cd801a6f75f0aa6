"""The version of the distribution, read by the build and by the package."""

from __future__ import annotations

__version__ = "0.1.0"
