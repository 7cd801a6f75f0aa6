"""How importance fades: the documented place of `DecayConfig` and `compute_importance`."""

from __future__ import annotations

from engram.cognition.decay import DecayConfig, compute_importance

__all__ = ["DecayConfig", "compute_importance"]
