"""The documented import path of `AsyncEngram`."""

from __future__ import annotations

from engram.aio import AsyncEngram

__all__ = ["AsyncEngram"]
