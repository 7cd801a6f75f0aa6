"""The documented import path of `Engram` and `ReflectionThread`."""

from __future__ import annotations

from engram.cognition.reflection import ReflectionThread
from engram.engine import Engram

__all__ = ["Engram", "ReflectionThread"]
