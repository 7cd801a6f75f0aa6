"""What happens to memories after they were written."""

from __future__ import annotations

from engram.engine.session import Session


class Cognition(Session):
    """The calls that fade, reflect on, compress and prune memories."""
