"""`engram models`: list, pull, verify."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engram.embedding import library

PACKAGED = "all-MiniLM-L6-v2-int8"


def test_list(run):
    done = run("models", "list")
    assert (done.code, done.err) == (0, "")
    (packaged,) = [line for line in done.lines if f" {PACKAGED} " in line]
    assert packaged.split() == [PACKAGED, "384", "Apache-2.0", "package,", "checked"]
    documents = {
        model["name"]: model for model in run("models", "list", "--json").document["models"]
    }
    assert "BAAI/bge-small-en-v1.5" in documents
    assert documents[PACKAGED].pop("path").endswith("model.onnx")
    assert documents[PACKAGED] == {
        "name": PACKAGED,
        "kind": "embedding",
        "dim": 384,
        "licence": "Apache-2.0",
        "present": True,
        "source": "package",
        "verified": True,
    }
    reranker = documents["BAAI/bge-reranker-base"]
    assert (reranker["kind"], reranker["dim"], reranker["licence"]) == ("cross_encoder", 0, "MIT")
    (line,) = [line for line in done.lines if " BAAI/bge-reranker-base " in line]
    assert line.split()[:3] == ["BAAI/bge-reranker-base", "-", "MIT"]


@pytest.mark.parametrize("names", [[], [PACKAGED]])
def test_verify(run, names):
    done = run("models", "verify", *names)
    assert (done.code, done.err) == (0, "")
    at = done.lines.index(PACKAGED)
    assert [line.split()[0] for line in done.lines[at + 1 : at + 3]] == ["ok", "ok"]
    document = run("models", "verify", *names, "--json").document
    assert document["ok"] is True
    (packaged,) = [model for model in document["models"] if model["name"] == PACKAGED]
    assert {tuple(sorted(file)) for file in packaged["files"]} == {
        ("actual", "expected", "ok", "path")
    }


def test_verify_fails_on_a_changed_file(run, monkeypatch):
    verify = library.verify
    monkeypatch.setattr(
        library, "verify", lambda name: [replace(file, ok=False) for file in verify(name)]
    )
    done = run("models", "verify", PACKAGED)
    assert done.code == 1
    assert done.lines[1].startswith("  CHANGED  ")
    assert done.err.startswith(f"error: not the files they should be: {PACKAGED} (")


def test_unknown_and_missing_models_are_errors(run, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for variable in ("ENGRAM_MODEL_DIR", "HF_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    for command in ("verify", "pull"):
        assert run("models", command, "nope", "--json").error["code"] == "invalid_argument"
        done = run("models", command, PACKAGED.upper(), "--json")
        assert done.code == (0 if command == "verify" else 1)
    done = run("models", "pull", "BAAI/bge-small-en-v1.5")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: HF_HUB_OFFLINE is set")


def test_pull_tells_where_the_model_is(run, monkeypatch):
    local = library.locate(library.registered(PACKAGED))
    given = []
    monkeypatch.setattr(library, "pull", lambda *arguments: given.append(arguments) or local)
    done = run("models", "pull", PACKAGED)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{PACKAGED} is in {local.onnx.parent}\n"
    assert given == [(PACKAGED, None)]
    document = run("models", "pull", PACKAGED, "--json").document
    assert document == {"name": PACKAGED, "source": "package", "path": str(local.onnx)}


def test_without_a_command_there_is_help(run):
    done = run("models")
    assert done.code == 2
    assert "list" in done.err
