"""Facts: what the agent believes, with two time axes."""

from __future__ import annotations

from engram.engine.session import Session


class FactMemory(Session):
    """The calls about facts."""
