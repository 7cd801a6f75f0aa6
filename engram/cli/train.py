"""`engram train`: the trainer, for those who have `engram` at hand."""

from __future__ import annotations

from engram.training.command import train

__all__ = ["train"]
