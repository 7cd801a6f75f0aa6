"""Importing engram is cheap: no model, no index, no network library, no adapter."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = [
    "onnxruntime",
    "tokenizers",
    "hnswlib",
    "huggingface_hub",
    "click",
    "rich",
    "asyncio",
    "multiprocessing",
    "http",
    "urllib.request",
    "socket",
    "mcp",
    "langchain_core",
]


def modules_after(code: str) -> set[str]:
    script = f"import sys; {code}; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    ["import engram", "import engram; engram.Engram().close()",
     "import engram; m = engram.Engram(); m.recall('x'); m.list_agents(); m.count()"],
)  # fmt: skip
def test_no_heavy_module_is_loaded(code):
    loaded = modules_after(code) - modules_after("import numpy, sqlite3")
    assert loaded & set(HEAVY) == set()
    assert "engram" in loaded
    assert ("engram.engine" in loaded) == ("Engram" in code)
