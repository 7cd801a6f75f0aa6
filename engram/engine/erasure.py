"""Erasing what concerns a person, and shrinking the file."""

from __future__ import annotations

from engram.engine.session import Session


class Erasure(Session):
    """The calls that erase."""
