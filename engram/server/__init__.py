"""The Unix-socket face: one JSON object per line, for many clients at once."""

from __future__ import annotations
