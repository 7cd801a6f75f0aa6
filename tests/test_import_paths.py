"""Every import path the documents promise leads to the one implementation."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import engram

PROMISED = {
    "engram.core": ["Engram", "ReflectionThread"],
    "engram.importance": ["DecayConfig"],
    "engram.async_engram": ["AsyncEngram"],
    "engram.working_memory": ["WorkingMemory", "WorkingMemoryItem"],
    "engram.models": ["Episode", "SearchResult", "ObserveInput", "Fact"],
    "engram.llm": ["AnthropicAdapter", "OpenAIAdapter", "GeminiAdapter", "DeepSeekAdapter",
                   "QwenAdapter", "KimiAdapter", "StubLLMAdapter"],
}  # fmt: skip
EVENTS = ["SCHEMA", "SOURCE", "EVENT_SEVERITY", "ENV_EVENTS_PATH", "AGENT_ID_PATTERN",
          "AGENT_ID_MAX_LENGTH", "is_canonical_agent_id", "resolve_events_path", "canonicalize",
          "chain_hash", "EventLog"]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in PROMISED.items() for name in names]
)
def test_the_documented_module_has_the_public_name(module, name):
    found = getattr(importlib.import_module(module), name)
    assert found is getattr(engram, name)
    assert name in engram.__all__


@pytest.mark.parametrize("name", engram.__all__)
def test_every_public_name_can_be_had(name):
    assert getattr(engram, name) is not None


def test_the_exchange_format_has_its_module():
    assert importlib.import_module("engram.export").EXPORT_VERSION == 1


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(engram, "no_such_name")  # noqa: B009 - a name no type checker accepts


@pytest.mark.parametrize("name", EVENTS)
def test_the_event_module_has(name):
    module = importlib.import_module("engram.events")
    assert name in module.__all__
    assert hasattr(module, name)


@pytest.mark.parametrize(
    ("module", "ours"),
    [
        ("engram.mcp_server", "engram.mcp"),
        ("engram.benchmarks.cli", "engram.bench"),
        ("engram.cli", "engram.cli"),
        ("engram.__main__", "engram.cli"),
    ],
)
def test_an_entry_point_is_ours(module, ours):
    main = importlib.import_module(module).main
    assert main is importlib.import_module(ours).main
    assert inspect.signature(main).parameters["argv"].default is None


@pytest.mark.parametrize("module", ["engram", "engram.benchmarks", "engram.mcp_server"])
def test_a_module_runs_its_command(module):
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, input=b"")
    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr
    assert done.stdout or done.stderr


@pytest.mark.parametrize("module", ["engram", "engram.mcp_server", "engram.llm"])
def test_importing_brings_no_optional_package(module):
    optional = "mcp anthropic openai google.genai langchain_core llama_index"
    script = f"import sys, {module}; print(*set({optional.split()}) & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_the_faces_beside_engram_load_on_first_use():
    script = (
        "import sys, engram\n"
        "print('engram.aio' in sys.modules, 'engram.working_memory' in sys.modules,"
        " 'engram.events' in sys.modules)\n"
        "engram.AsyncEngram, engram.WorkingMemory\n"
        "print('engram.aio' in sys.modules, 'engram.working_memory' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["True True"]
    assert done.stdout.startswith("False False False"), done.stderr
