"""A store whose file is removed or replaced: nothing is acknowledged that would be lost."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pytest
from engram_server import DETERMINISTIC, RefusedError, texts

from engram.errors import Closed
from engram.server.failures import Failure
from engram.server.methods import METHODS
from engram.server.service import Service
from engram.server.settings import load
from engram.times import utc_now

GONE = (
    "[1001] database unavailable: the store's file was removed or replaced (start the server again)"
)
PARAMS = {
    "memory_store": texts(1),
    "memory_search": {"query": "x"},
    "memory_judge": {"memory_id": "x"},
    "memory_import": {"version": 1, "memories": []},
    "memory_consolidate_undo": {"run_id": "x"},
}


@pytest.mark.parametrize("replaced", [False, True])
def test_every_method_is_refused(start, replaced):
    server = start()
    one = server.ask("memory_store", **texts(2))["id"]
    copy = server.store.with_name("copy")
    shutil.copyfile(server.store, copy)
    if replaced:
        copy.rename(server.store)
    else:
        server.store.unlink()
    for name in METHODS:
        params = PARAMS.get(name, {"id": one})
        with pytest.raises(RefusedError) as refused:
            server.given(name, params)
        assert refused.value.message == GONE
    assert server.store.exists() is replaced


def test_what_was_under_way_meanwhile_is_not_acknowledged(tmp_path: Path):
    (tmp_path / ".engram").mkdir()
    (tmp_path / ".engram/engram.toml").write_text(DETERMINISTIC)
    settings = load({"HOME": str(tmp_path)}, tmp_path)
    gone = False

    def clock() -> datetime:
        if gone:
            settings.store_path.unlink(missing_ok=True)
        return utc_now()

    with Service(settings, clock=clock) as service:
        assert service.call("memory_store", texts(1))["indexed"]
        gone = True
        with pytest.raises(Failure) as failed:
            service.call("memory_store", texts(2))
        assert failed.value.message == GONE
        with pytest.raises(Closed):
            service.background()
