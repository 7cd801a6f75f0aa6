from __future__ import annotations

from pathlib import Path

import pytest
from bare_database import BareDatabase


@pytest.fixture
def bare(tmp_path: Path) -> BareDatabase:
    """An empty database of the reference server."""
    return BareDatabase(tmp_path / "memories.db")
