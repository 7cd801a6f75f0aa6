"""Frameworks are optional: the adapters' names are there without them, and say what to install."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

FRAMEWORKS = {"langchain": "langchain_core", "langgraph": "langgraph", "llamaindex": "llama_index"}
adapters = pytest.mark.parametrize("adapter", FRAMEWORKS)


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(adapter: str) -> list[str]:
    return importlib.import_module(f"engram.adapters.{adapter}").__all__


@adapters
def test_without_its_framework_a_name_says_what_to_install(adapter):
    said = run(
        f"import sys; sys.modules['{FRAMEWORKS[adapter]}'] = None\n"
        f"import engram.adapters.{adapter} as adapter\n"
        "for name in adapter.__all__:\n"
        "    kept = getattr(adapter, name)\n"
        "    class Own(kept): pass\n"
        "    for use in (Own, lambda: kept(engram=None), lambda: kept.from_texts([])):\n"
        "        try: use()\n"
        "        except ImportError as error: print(error)\n"
    )
    assert said.splitlines() == [
        f"{one} needs a package that is not installed"
        f" (run: pip install 'engram-embedded[{adapter}]')"
        for name in names(adapter)
        for one in ("Own", name, name)
    ]


@adapters
def test_importing_the_package_loads_no_framework_and_no_engine(adapter):
    loaded = run(f"import sys, engram, engram.adapters.{adapter}; print(*sys.modules)").split()
    assert not {FRAMEWORKS[adapter], "pydantic", "numpy", "engram.engine"} & set(loaded)


@adapters
@pytest.mark.parametrize("missing", ["numpy", "engram.arguments"])
def test_something_else_that_is_missing_is_not_taken_for_it(adapter, missing):
    said = run(
        f"import sys; sys.modules[{missing!r}] = None\n"
        f"import engram.adapters.{adapter} as adapter\n"
        "try: getattr(adapter, adapter.__all__[0])\n"
        "except ImportError as error: print(error.name)\n"
    )
    assert said.split() == [missing]


@pytest.mark.parametrize(
    ("adapter", "module"),
    [
        ("langchain", "langchain_core.chat_history"),
        ("langgraph", "langgraph.store.base"),
        ("llamaindex", "llama_index.core.memory"),
    ],
)
def test_a_framework_that_is_too_old_is_not_taken_for_a_missing_one(adapter, module):
    said = run(
        f"import sys, types; sys.modules[{module!r}] = types.ModuleType({module!r})\n"
        f"import engram.adapters.{adapter} as adapter\n"
        "try: getattr(adapter, adapter.__all__[0])\n"
        "except ImportError as error: print(error.name)\n"
    )
    assert said.split() == [module]


@adapters
def test_unknown_names_are_unknown(adapter):
    with pytest.raises(AttributeError, match="EngramAgent"):
        _ = importlib.import_module(f"engram.adapters.{adapter}").EngramAgent
