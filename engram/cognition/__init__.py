"""What happens to memories after they were written: fading, reflection, compression."""

from __future__ import annotations
