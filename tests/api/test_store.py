"""Stores that are not there, come later, go, are replaced, or are somebody else's too."""

from __future__ import annotations

import pytest
from stand_ins import WordEmbedder
from workers import observation

from engram import Engram
from engram.ledger import Ledger

NEEDY = {
    "status": {},
    "recall": {"project_id": "/p"},
    "session_resume": {"project_id": "/p"},
    "resume": {"project_id": "/p"},
    "session_checkpoint": {"project_id": "/p", "task": "t", "summary": "s"},
    "checkpoint": {"project_id": "/p", "task": "t", "action": "clear"},
    "search": {"query": "x"},
    "search_explain": {"query": "x"},
    "evidence_put": observation("/p"),
    "evidence_get": {"project_id": "/p", "id": "x"},
    "evidence_list": {"project_id": "/p"},
    "dormant_review": {},
    "dormant_inspect": {"event_id": "x"},
    "dormant_feedback": {"event_id": "x", "category": "useful"},
}


def made(path, *contents: str, project: str = "/p") -> list[str]:
    with Engram(path, embedder=WordEmbedder()) as memory:
        return [memory.remember(content, project=project) for content in contents]


def contents(worker, project: str = "/p") -> list[str]:
    rows = worker.result("recall", project_id=project)["memories"]
    return [row["content"] for row in rows]


def check_all_fail(worker, *, but: str = "") -> None:
    for operation, params in NEEDY.items():
        if operation != but:
            assert worker.code(operation, **params) == "operation_failed", operation
    worker.result("operations")
    worker.result("config_show")


def test_without_a_store_what_needs_one_fails(path, start):
    worker = start()
    check_all_fail(worker, but="status")
    assert worker.result("status")["initialized"] is False
    assert not path.exists()


def test_an_empty_file_awaits_a_store(path, start):
    path.touch()
    worker = start()
    check_all_fail(worker, but="status")
    assert worker.result("status")["initialized"] is False
    assert path.read_bytes() == b""
    assert {entry.name for entry in path.parent.iterdir()} == {"engram.yaml", path.name}


@pytest.mark.parametrize(
    "content", [b"not a database", b"SQLite format 3\0" + b"x" * 4080], ids=len
)
def test_a_file_that_is_no_store_stays_as_it_is(path, start, content):
    path.write_bytes(content)
    check_all_fail(start())
    assert path.read_bytes() == content
    assert {entry.name for entry in path.parent.iterdir()} == {"engram.yaml", path.name}


def test_a_folder_is_no_store(path, start):
    path.mkdir()
    check_all_fail(start())


def test_the_home_of_nobody_has_no_store(config, start):
    config.write_text("db_path: ~nobody-here/memory.engram\n", encoding="utf-8")
    check_all_fail(start(), but="status")


def test_names_of_files_are_utf_8_whatever_the_locale(config, start, tmp_path):
    path = tmp_path / "é日.engram"
    with Engram(path) as memory:
        uid = memory.remember("The ferry to Kos leaves at noon", project="/é日")
    config.write_text(f"db_path: {path}\n", encoding="utf-8")
    worker = start(LC_ALL="C", PYTHONUTF8="0")
    for operation in ("recall", "resume"):
        answer = worker.result(operation, project_id="/日/../é日")
        assert answer["project_path"] == "/é日"
        assert [row["id"] for row in answer["memories"]] == [uid]
    worker.result("checkpoint", project_id="/é日", task="t", summary="s")
    query = "When does the ferry to Kos leave?"
    assert [row["id"] for row in worker.result("search", query=query)] == [uid]
    assert worker.code("recall", project_id="~é日/x") == "invalid_params"


def test_another_kind_of_store_is_not_there(config, path, start):
    made(path, "one")
    config.write_text(
        config.read_text() + "storage_backend: postgres\npostgres_dsn: canary\n", encoding="utf-8"
    )
    worker = start()
    check_all_fail(worker)
    assert worker.code("recall", project_id="relative") == "invalid_params"


def test_a_store_made_after_the_start_is_found(path, start):
    worker = start()
    assert worker.result("status")["initialized"] is False
    made(path, "one")
    status = worker.result("status")
    assert (status["initialized"], status["memories"]["total"]) == (True, 1)
    assert contents(worker) == ["one"]


def test_a_store_that_goes_is_gone_and_another_one_is_found(path, start, tmp_path):
    made(path, "one")
    worker = start()
    assert contents(worker) == ["one"]
    removed(path)
    check_all_fail(worker, but="status")
    assert worker.result("status")["initialized"] is False
    assert not path.exists()
    made(path, "two", "three")
    assert sorted(contents(worker)) == ["three", "two"]
    made(tmp_path / "other.engram", "four")
    removed(path)
    (tmp_path / "other.engram").rename(path)
    assert contents(worker) == ["four"]
    assert worker.result("status")["memories"]["total"] == 1


def removed(path) -> None:
    for file in path.parent.glob(path.name + "*"):
        if file.is_file():
            file.unlink()


def test_two_processes_see_each_others_writes_at_once(store, start, project):
    one, two = start(), start()
    for number in range(5):
        writer, reader = (one, two) if number % 2 else (two, one)
        writer.result("checkpoint", project_id=project, task="t", summary=f"s{number}")
        [row] = reader.result("resume", project_id=project, task="t")["checkpoints"]
        assert row["summary"] == f"s{number}"
        name = f"e{number}"
        given = observation(project, evidence_id=name)
        identity = writer.result("evidence_put", **given)["id"]
        assert (
            reader.result("evidence_get", project_id=project, id=identity)["state"] == "supported"
        )
        [uid] = made(store, f"memory {number}", project=project)
        assert contents(reader, project) == contents(writer, project)
        assert len(contents(reader, project)) == 1
        with Ledger(store) as ledger:
            ledger.hide(uid)
        assert contents(reader, project) == contents(writer, project) == []


def test_a_search_finds_what_another_process_wrote(path, start):
    with Engram(path) as memory:
        memory.remember("Pancakes need two eggs")
        worker = start()
        query = "When does the ferry to Kos leave?"
        assert worker.result("search", query=query) == []
        uid = memory.remember("The ferry to Kos leaves at noon")
        assert [row["id"] for row in worker.result("search", query=query)] == [uid]
    with Ledger(path) as ledger:
        ledger.invalidate(uid)
    assert worker.result("search", query=query) == []


def test_what_was_saved_outlives_a_kill(store, start, project):
    worker = start()
    worker.result("checkpoint", project_id=project, task="t", summary="s")
    identity = worker.result("evidence_put", **observation(project))["id"]
    worker.process.kill()
    worker = start()
    assert len(worker.result("resume", project_id=project)["checkpoints"]) == 1
    assert worker.result("evidence_get", project_id=project, id=identity)["eligible"]


def test_a_writer_does_not_stop_reads(store, start, project):
    with Engram(store, embedder=WordEmbedder()) as memory, memory._store.writing():
        worker = start()
        worker.result("status")
        worker.result("recall", project_id=project)
        worker.result("evidence_list", project_id=project)
        worker.result("dormant_review")


def test_a_writer_does_not_stop_what_has_nothing_to_write(store, start, project):
    worker = start()
    given = observation(project)
    receipt = worker.result("evidence_put", **given)
    with Engram(store, embedder=WordEmbedder()) as memory, memory._store.writing():
        assert worker.result("evidence_put", **given) == receipt
        assert worker.code("evidence_put", **{**given, "outcome": "unknown"}) == "invalid_params"
        assert worker.code("dormant_inspect", event_id="nobody") == "invalid_params"
        judged = {"event_id": "nobody", "category": "useful"}
        assert worker.code("dormant_feedback", **judged) == "invalid_params"
        clear = {"project_id": project, "task": "none", "action": "clear"}
        assert worker.result("checkpoint", **clear)["deleted"] is False


def test_an_encrypted_store_is_read_with_its_key_alone(path, start, project, tmp_path):
    with Engram(path, embedder=WordEmbedder(), key="secret") as memory:
        memory.remember("tea", project=project)
    key = tmp_path / "key"
    key.write_text("secret\n")
    key.chmod(0o600)
    check_all_fail(start())
    worker = start(options=["--key-file", str(key)])
    assert contents(worker, project) == ["tea"]
    worker.result("checkpoint", project_id=project, task="t", summary="canary")
    assert b"canary" not in path.read_bytes() + path.with_name(f"{path.name}-wal").read_bytes()


def test_a_store_that_was_damaged_is_searched_again_once_it_is_mended(path, start):
    with Engram(path) as memory:  # a model that the process has too
        memory.observe("the tea is in the pot")
    good = path.read_bytes()
    worker = start()
    [hit] = worker.result("search", query="the tea is in the pot")
    worker.result("status")
    with path.open("r+b") as file:
        file.write(b"x" * len(good))
    assert worker.code("search", query="where is the tea?") == "operation_failed"
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    with path.open("r+b") as file:
        file.write(good)
        file.truncate(len(good))
    assert worker.result("search", query="where is the tea?")[0]["id"] == hit["id"]
