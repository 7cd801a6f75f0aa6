"""langchain-core is optional: the names are there without it, and say what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

NAMES = ["EngramRetriever", "EngramChatMessageHistory", "EngramVectorStore"]


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_without_langchain_core_a_name_says_what_to_install(name):
    said = run(
        "import sys; sys.modules['langchain_core'] = None\n"
        f"from engram.adapters.langchain import {name}\n"
        f"class Own({name}): pass\n"
        "for use in (lambda: Own(), lambda: NAME(engram=None), lambda: NAME.from_texts([])):\n"
        "    try: use()\n"
        "    except ImportError as error: print(error)\n".replace("NAME", name)
    )
    assert said.splitlines()[1] == (
        f"{name} needs a package that is not installed"
        " (run: pip install 'engram-embedded[langchain]')"
    )
    assert said.count("pip install 'engram-embedded[langchain]'") == 3


def test_importing_the_package_loads_no_framework_and_no_engine():
    loaded = run("import sys, engram, engram.adapters.langchain; print(*sys.modules)").split()
    assert not {"langchain_core", "pydantic", "numpy", "engram.engine"} & set(loaded)


def test_another_missing_package_is_not_taken_for_langchain():
    said = run(
        "import sys; sys.modules['numpy'] = None\n"
        "try:\n    from engram.adapters.langchain import EngramRetriever\n"
        "except ImportError as error: print(error.name)\n"
    )
    assert said.split() == ["numpy"]


def test_unknown_names_are_unknown():
    import engram.adapters.langchain as adapter

    with pytest.raises(AttributeError, match="EngramAgent"):
        _ = adapter.EngramAgent
