"""Moving memories between files."""

from __future__ import annotations

from engram.engine.session import Session


class Transfer(Session):
    """The calls that copy a store or part of it."""
