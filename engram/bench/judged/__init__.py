"""Recall quality on sets of questions whose evidence is known."""

from __future__ import annotations

__all__: list[str] = []
