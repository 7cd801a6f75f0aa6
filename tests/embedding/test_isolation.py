from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from engram.embedding import LocalModel, OnnxEmbedder, library, resolve
from engram.errors import ModelMissing

HEAVY = ("onnxruntime", "tokenizers", "huggingface_hub")


def test_importing_and_resolving_load_no_runtime() -> None:
    program = f"""
import sys
from engram.embedding import OnnxEmbedder, resolve
resolve("all-MiniLM-L6-v2-int8").fingerprint
print(*(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_nothing_but_pull_opens_a_socket(
    packaged_local: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: object, **options: object) -> None:
        raise AssertionError

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    assert resolve(None).embed_query("a").shape == (384,)
    assert OnnxEmbedder(packaged_local).embed(["a", "b"]).shape == (2, 384)
    library.list_models()
    library.verify("all-MiniLM-L6-v2-int8")
    with pytest.raises(ModelMissing):
        resolve("bge-small-en-v1.5")
