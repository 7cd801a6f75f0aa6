"""The trainer: reads a store of experiences and prints what it learned, one JSON object a line."""

from __future__ import annotations
