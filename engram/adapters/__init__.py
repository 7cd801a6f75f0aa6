"""Engram as a part of agent frameworks; each module needs the extra of its name."""
