"""Which implementation is selected, and that both look the same from outside."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import engram._native
from engram._native import boundary

FOLDER = Path(boundary.__file__).parent
KERNELS = {
    "blend": ["blend"],
    "decay": ["decay"],
    "hamming": ["hamming_nearest", "sign_bits"],
    "pages": ["check_pages", "check_rows", "page_sums", "read_rows"],
    "postings": ["bm25", "find_terms", "row_frequencies"],
    "scan": ["top_k"],
    "sketch": ["coarse_nearest", "code_candidates", "decode", "encode", "query_codes"],
    "spreading": ["spread"],
    "tokens": ["invert", "merge"],
}
MODULE_OF = {name: module for module, names in KERNELS.items() for name in names}


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }


def run(code: str, **environment: str) -> str:
    completed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return (completed.stdout + completed.stderr).strip()


@pytest.mark.parametrize("module", KERNELS)
def test_the_stub_declares_what_the_twin_defines(module: str) -> None:
    stub, twin = functions(FOLDER / f"{module}.pyi"), functions(FOLDER / "twins" / f"{module}.py")
    assert list(stub) == list(twin)
    assert sorted(stub) == KERNELS[module]
    for name, declared in stub.items():
        assert declared.returns is not None
        assert ast.unparse(declared.args) == ast.unparse(twin[name].args)
        assert ast.unparse(declared.returns) == ast.unparse(twin[name].returns or declared)


@pytest.mark.parametrize("module", KERNELS)
def test_the_kernel_exports_what_the_twin_exports(module: str) -> None:
    native = importlib.import_module(f"engram._native.{module}")
    twin = importlib.import_module(f"engram._native.twins.{module}")
    assert native.__file__ is not None
    assert not native.__file__.endswith(".py")
    assert native.__all__ == twin.__all__ == KERNELS[module]
    for name in native.__all__:
        ours, theirs = getattr(native, name), getattr(twin, name)
        parameters = inspect.signature(theirs).parameters
        assert list(inspect.signature(ours).parameters) == list(parameters)
        assert theirs.__doc__ == f"NumPy twin of `engram._native.{module}.{name}`."
        assert all(f"    {parameter}: " in ours.__doc__ for parameter in parameters)


def test_the_package_exports_the_compiled_kernels() -> None:
    assert engram._native.NATIVE
    assert sorted(engram._native.__all__) == sorted(["NATIVE", *MODULE_OF])
    for name, module in MODULE_OF.items():
        assert getattr(engram._native, name).__module__ == f"engram._native.{module}"


def test_the_environment_selects_the_twins() -> None:
    code = """
import sys
import engram._native as n
print(n.NATIVE, *(getattr(n, name).__module__ for name in sorted(n.__all__) if name != "NATIVE"))
loaded = {name.removeprefix("engram._native.") for name in sys.modules}
print(*loaded & KERNELS)
""".replace("KERNELS", repr(set(KERNELS)))
    twins = " ".join(f"engram._native.twins.{MODULE_OF[name]}" for name in sorted(MODULE_OF))
    assert run(code, ENGRAM_NATIVE="0").splitlines() == [f"False {twins}"]
    assert run(code, ENGRAM_NATIVE="1").startswith("True engram._native.blend")


def test_a_missing_extension_says_how_to_go_on() -> None:
    code = """
import sys
sys.modules["engram._native.scan"] = None
try:
    import engram._native
except ImportError as error:
    print(error)
"""
    message = run(code, ENGRAM_NATIVE="1")
    assert "rebuild" in message
    assert "ENGRAM_NATIVE=0" in message
    assert run(code, ENGRAM_NATIVE="0") == ""
