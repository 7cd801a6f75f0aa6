"""The documented import path of `Engram`."""

from __future__ import annotations

from engram.engine import Engram

__all__ = ["Engram"]
