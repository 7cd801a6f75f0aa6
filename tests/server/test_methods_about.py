"""What the server says about itself, and why it does not start."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from damage import damage
from engram_server import DETERMINISTIC, RefusedError, Server, record, texts
from stand_ins import WordEmbedder

from engram.embedding import DeterministicEmbedder
from engram.experience import ExperienceMemory, ExperienceStatus
from engram.server.failures import Failure
from engram.server.service import Service
from engram.server.settings import load
from engram.server.status import hints as said_hints


def test_the_status_counts(server):
    empty = server.ask("memory_status")
    assert (empty["memory_count"], empty["indexed_count"], empty["index_size"]) == (0, 0, 0)
    assert (empty["pending_judgments"], empty["waiting"], empty["facts"]) == (0, 0, 0)
    assert empty["training"] is None
    for number in range(3):
        server.ask("memory_store", **texts(number))
    full = server.given("memory_status", "ignored")
    assert (full["memory_count"], full["indexed_count"], full["index_size"]) == (3, 3, 3)
    assert full["episodes"] == 3


def hints(server: Server) -> str:
    return "\n".join(server.ask("memory_status")["hints"])


def test_hints_say_what_is_worth_doing(start, tmp_path):
    server = start(DETERMINISTIC, ENGRAM_MODELS_PATH=str(tmp_path))
    assert "llm.provider" in hints(server)
    assert "memory_train_generate" not in hints(server)
    memories = [record(f"m{number}", number) for number in range(20)]
    server.ask("memory_import", version=1, memories=memories)
    assert "holds no models" in hints(server)
    models = Path(server.ask("memory_config")["effective"]["models_path"])
    assert models.parent == tmp_path
    (tmp_path / "ranking_model.onnx").write_bytes(b"")
    assert "holds no models" in hints(server), "those of others say nothing"
    model = models / "ranking_model.onnx"
    model.parent.mkdir()
    model.write_bytes(b"")
    os.utime(model, (0, 0))
    assert "older than the store" in hints(server)
    os.utime(model, (2**33, 2**33))
    assert "memory_train_generate" not in hints(server)
    assert "memory_judge" not in hints(server)
    server.ask("memory_search", query="c1", limit=11)
    assert "memory_judge" in hints(server)


def test_a_status_needs_no_file_to_look_at(start, tmp_path):
    server = start(DETERMINISTIC, ENGRAM_MODELS_PATH=str(tmp_path))
    memories = [record(f"m{number}", number) for number in range(20)]
    server.ask("memory_import", version=1, memories=memories)
    models = Path(server.ask("memory_config")["effective"]["models_path"])
    models.mkdir()
    (models / "gone.onnx").symlink_to(tmp_path / "nowhere")
    assert "holds no models" in hints(server)
    (models / "ranking_model.onnx").write_bytes(b"")
    settings = load({"HOME": str(server.home)}, server.root)
    with Service(settings) as service:
        status = ExperienceStatus(20, 20, 0, 20, 0, 20, 0, 0)
        gone = dataclasses.replace(settings, store_path=tmp_path / "gone.db")
        assert service.call("memory_status", {})["memory_count"] == 20
        assert all("older" not in hint for hint in said_hints(status, gone))


def test_a_missing_key_is_worth_a_hint(start):
    openai = f'{DETERMINISTIC}[llm]\nprovider = "openai"\n'
    assert "no API key" in hints(start(openai))
    assert "llm" not in hints(start(openai, ENGRAM_OPENAI_API_KEY="SECRET"))
    assert "llm" not in hints(start(f'{DETERMINISTIC}[llm]\nprovider = "ollama"\nmodel = "m"\n'))


def test_the_configuration_is_shown_without_keys(start):
    server = start(
        f'{DETERMINISTIC}[llm]\nprovider = "openai"\nmodel = "m"\n[search]\nrrf_k = 50\n',
        ENGRAM_OPENAI_API_KEY="SECRET",
        ENGRAM_VOYAGE_API_KEY="SECRET",
    )
    data = server.ask("memory_config")
    assert data == server.ask("memory_config", action="get")
    assert data["database"] == {"path": None}
    assert data["embedding"]["provider"] == "deterministic"
    assert data["embedding"]["has_api_key"] is True
    assert data["llm"] == {"provider": "openai", "model": "m", "has_api_key": True}
    assert data["server"]["socket_path"] is None
    assert data["server"]["reindex_interval_secs"] == 3600
    assert data["hnsw"] == {
        "max_connections": 16,
        "ef_construction": 200,
        "ef_search": 40,
        "dimension": 1024,
    }
    assert data["consolidation"]["stale_days"] == 90
    assert data["search"]["rrf_k"] == 50
    assert data["effective"]["store_path"] == str(server.store)
    assert data["effective"]["socket_path"] == str(server.socket)
    assert "SECRET" not in json.dumps(data)
    assert '"api_key"' not in json.dumps(data)
    server.ask("memory_store", **texts(1))
    embedding = server.ask("memory_config")["embedding"]
    assert (embedding["model"], embedding["dimension"]) == ("deterministic", 1024)


def test_the_configuration_needs_no_sound_store(tmp_path):
    (tmp_path / ".engram").mkdir()
    (tmp_path / ".engram/engram.toml").write_text(DETERMINISTIC)
    with Service(load({"HOME": str(tmp_path)}, tmp_path)) as service:
        service.call("memory_store", texts(1))
        damage(service._memory, "UPDATE model SET name = CAST(x'ff41' AS TEXT)")
        with pytest.raises(Failure, match="sqlite error"):
            service.call("memory_search", {"query": "x"})
        data = service.call("memory_config", {})
    assert data["effective"]["store_path"] == str(tmp_path / ".engram/engram.db")
    assert (data["embedding"]["model"], data["embedding"]["dimension"]) == (None, None)
    assert data["embedding"]["provider"] == "deterministic"


def test_without_keys_there_are_none(shared):
    data = shared.ask("memory_config")
    assert (data["embedding"]["has_api_key"], data["llm"]["has_api_key"]) == (False, False)


def test_the_configuration_is_read_only(shared):
    with pytest.raises(RefusedError) as refusal:
        shared.ask("memory_config", action="set")
    assert refusal.value.message == "[6008] config is read-only"
    with pytest.raises(RefusedError, match=r"^\[6007\] dispatch error: invalid config action"):
        shared.ask("memory_config", action="SECRET")


def test_what_waits_is_embedded_on_request(server):
    nothing = server.ask("memory_reembed")
    assert (nothing["total"], nothing["succeeded"], nothing["failed"]) == (0, 0, 0)
    server.ask("memory_store", **texts(1))
    for params in ({}, {"force": True}, ["any"]):
        assert server.given("memory_reembed", params) == {
            "total": 1,
            "succeeded": 1,
            "failed": 0,
            "model": "deterministic",
        }


def test_what_waits_is_counted_as_lists_show_it(server):
    twins = [record(f"twin-{number}", 1) for number in range(3)]
    server.ask("memory_import", version=1, memories=[*twins, record("other", 2)])
    assert server.ask("memory_consolidate_apply")["merged"] == 2
    assert server.ask("memory_reembed")["total"] == 2


def started(place: Path, settings: str = DETERMINISTIC, **variables: str) -> Server:
    return Server(place, settings, variables)


@pytest.mark.parametrize(
    ("settings", "variables", "expected"),
    [
        ("[search]\nrrf_k = 0\n", {}, "[6022] invalid configuration: search.rrf_k"),
        ("[search\n", {}, "[6002] config parse error: "),
        ('[embedding]\nprovider = "voyage"\n', {}, "[6003] invalid provider: "),
        ('[embedding]\nmodel = "no-such-model"\n', {}, "[6003] invalid provider: "),
        (
            f"{DETERMINISTIC}dimension = 384\n",
            {},
            "[6022] invalid configuration: embedding.dimension",
        ),
        (DETERMINISTIC, {"ENGRAM_DB_PATH": "/dev/null/x.db"}, "[6012] init failed: "),
        (DETERMINISTIC, {"ENGRAM_KEY_FILE": "/nowhere"}, "[6022] invalid configuration: "),
        ("", {"ENGRAM_THREADS": "many"}, "[6022] invalid configuration: "),
        (DETERMINISTIC, {"ENGRAM_SOCKET_PATH": f"/tmp/{'s' * 100}"}, "[6012] init failed: "),
    ],
)
def test_why_a_server_does_not_start(tmp_path, settings, variables, expected):
    assert started(tmp_path, settings, **variables).refusal().startswith(expected)


def model_folder(place: Path, **files: bytes) -> Path:
    folder = place / "model"
    folder.mkdir()
    contents = {"model.onnx": b"no model", "tokenizer.json": b"{}", "config.json": b"{}"}
    for name, content in (contents | files).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("dimension", [b"{}", b'{"hidden_size": 8}'])
def test_a_damaged_model_is_told_at_the_start(tmp_path, dimension):
    folder = model_folder(tmp_path, **{"config.json": dimension})
    refusal = started(tmp_path, f'[embedding]\nmodel = "{folder}"\n').refusal()
    assert refusal.startswith("[6003] invalid provider: ")


def test_a_model_of_a_store_that_is_not_here_is_told_at_the_start(tmp_path):
    server = started(tmp_path, "")
    embedder = DeterministicEmbedder()
    embedder.name, embedder.fingerprint = "BAAI/bge-large-en-v1.5", "somewhere else"
    with ExperienceMemory(server.store, embedder=embedder) as memory:
        memory.store(**texts(1))
    assert server.refusal().startswith("[6003] invalid provider: ")


def test_a_store_of_a_programs_own_embedder_is_not_served(tmp_path):
    server = started(tmp_path, "")
    with ExperienceMemory(server.store, embedder=WordEmbedder()) as memory:
        memory.store(**texts(1))
    assert server.refusal().startswith("[6020] embedding model mismatch: ")


def test_a_file_that_is_no_store_is_left_alone(tmp_path):
    server = started(tmp_path)
    server.store.write_bytes(b"something else" * 1000)
    assert server.refusal().startswith("[6012] init failed: ")
    assert server.store.read_bytes() == b"something else" * 1000


def test_the_model_of_a_store_does_not_change_unseen(tmp_path):
    with started(tmp_path) as server:
        server.ask("memory_store", **texts(1))
    assert started(tmp_path, "").refusal().startswith("[6020] embedding model mismatch: ")
    packaged = '[embedding]\nmodel = "all-MiniLM-L6-v2-int8"\n'
    assert started(tmp_path, packaged).refusal().startswith("[6020] embedding model mismatch: ")


def test_an_encrypted_store(tmp_path):
    secret = tmp_path / "key"
    secret.write_text("a passphrase\n")
    with started(tmp_path, ENGRAM_KEY_FILE=str(secret)) as server:
        server.ask("memory_store", **texts(1))
        assert server.ask("memory_config")["effective"]["encrypted"] is True
    assert texts(1)["action"].encode() not in server.store.read_bytes()
    for other in ("", "another passphrase\n"):
        (tmp_path / "other").write_text(other)
        (tmp_path / "other").chmod(0o600)
        variables = {"ENGRAM_KEY_FILE": str(tmp_path / "other")} if other else {}
        said = started(tmp_path, **variables).refusal()
        assert said.startswith("[6012] init failed: ")
        assert "ENGRAM_KEY_FILE" in said
    with started(tmp_path, ENGRAM_KEY_FILE=str(secret)) as server:
        assert len(server.memories()) == 1


def test_one_agent_sees_its_own_memories(tmp_path):
    agent = f'{DETERMINISTIC}[server]\nagent = "{{}}"\n'
    with started(tmp_path, agent.format("ana")) as server:
        server.ask("memory_store", **texts(1))
    with started(tmp_path, agent.format("ben")) as server:
        assert server.memories() == {}
    with started(tmp_path) as server:
        assert len(server.memories()) == 1
