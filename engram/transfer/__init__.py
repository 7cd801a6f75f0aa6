"""File formats: what an export writes, and what an import reads and checks."""

from __future__ import annotations
