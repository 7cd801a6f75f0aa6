from __future__ import annotations

import pytest
from small_segments import LIMITS


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in LIMITS:
        monkeypatch.setattr(module, name, value)
