"""Other faces and items: what they erase or hide is gone here too, and they show no empty text."""

from __future__ import annotations

import pytest
from engram_server import RefusedError, Server
from tool_client import AGENT, InnerClient
from workers import Worker

from engram.cli import main
from engram.items import ItemMemory, ItemPut

NAMES = [(("a",), "bare"), (("a",), "tea")]
PUTS = [ItemPut(("a",), "bare", {"n": 1}), ItemPut(("a",), "tea", {"n": 2}, ["tea time"])]


def there(items) -> list[str]:
    found = [one.key for one in items.search()][::-1]
    assert [one.key for one in items.get_many(NAMES) if one is not None] == found
    return found


def test_the_socket_erases_items(tmp_path_factory):
    with (
        Server(tmp_path_factory.mktemp("s")) as server,
        ItemMemory(server.store, embedder_model="deterministic") as items,
    ):
        ids = items.put(PUTS)
        assert server.ask("memory_export")["memories"] == []
        found = server.ask("memory_search", query="tea time")["results"]
        assert [one["context"] for one in found] == ["tea time"]
        for uid, left in zip(ids, (["tea"], []), strict=True):
            assert server.ask("memory_delete", id=uid) == {"deleted": uid}
            assert there(items) == left
            with pytest.raises(RefusedError, match="not found"):
                server.ask("memory_delete", id=uid)
        assert items.check() == []


def test_a_tool_erases_items(path):
    with (
        ItemMemory(path, embedder_model="deterministic", agent_id=AGENT) as items,
        InnerClient(db=str(path), agent_id=AGENT) as client,
    ):
        ids = items.put(PUTS)
        assert [one["content"] for one in client.result("recent")["memories"]] == ["tea time"]
        assert [one["content"] for one in client.result("recall", query="tea")] == ["tea time"]
        for uid, left in zip(ids, (["tea"], []), strict=True):
            client.result("forget", memory_id=uid)
            assert there(items) == left


def test_a_command_hides_items_and_lines_show_no_empty_text(path, tmp_path, capsys):
    config = tmp_path / "engram.yaml"
    config.write_text(f"db_path: {path}\nann: {{enabled: false}}\n", encoding="utf-8")

    def command(*words):
        with pytest.raises(SystemExit) as ended:
            main(["--config", str(config), *words])
        assert ended.value.code == 0
        capsys.readouterr()

    def found():
        return [one["content"] for one in worker.result("search", query="tea time")]

    with ItemMemory(path, embedder_model="deterministic") as items, Worker(config) as worker:
        ids = items.put(PUTS)
        assert found() == ["tea time"]
        for uid in ids:
            command("forget", uid)
        assert (there(items), found()) == ([], [])
        for uid in ids:
            command("restore", uid)
        assert (there(items), found()) == (["bare", "tea"], ["tea time"])
