"""The SDKs are optional: importing needs none, and a missing one is named when it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from llm_wires import episodes

import engram
from engram.errors import MissingExtra
from engram.llm import LLMAdapter, StubLLMAdapter

HEAVY = [
    "anthropic",
    "openai",
    "google.genai",
    "httpx",
    "numpy",
    "http",
    "socket",
    "urllib.request",
]
ADAPTERS = {
    "AnthropicAdapter": ("anthropic", "anthropic"),
    "OpenAIAdapter": ("openai", "openai"),
    "GeminiAdapter": ("google.genai", "gemini"),
    "DeepSeekAdapter": ("openai", "openai"),
    "QwenAdapter": ("openai", "openai"),
    "KimiAdapter": ("openai", "openai"),
}


@pytest.mark.parametrize(
    "code",
    [
        "import engram.llm",
        "import engram; engram.OpenAIAdapter(); engram.AnthropicAdapter(); engram.GeminiAdapter()",
    ],
)
def test_importing_and_making_adapters_loads_nothing_heavy(code):
    script = f"import sys; {code}; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split()) & set(HEAVY)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_missing_sdk_is_named_at_first_use(name, monkeypatch):
    module, extra = ADAPTERS[name]
    monkeypatch.setitem(sys.modules, module, None)
    adapter = getattr(engram, name)(api_key="key")
    assert isinstance(adapter, LLMAdapter)
    for call in (adapter.extract_facts, adapter.summarise):
        with pytest.raises(MissingExtra, match=rf"pip install 'engram-embedded\[{extra}\]'") as e:
            call(episodes(1))
        assert isinstance(e.value, ImportError)
    adapter.close()


def test_the_stub_answers_what_it_was_given():
    facts = [{"subject": "a", "predicate": "b", "object": "c", "sources": [1]}]
    stub = engram.StubLLMAdapter(facts=facts, tokens=7, summary="All in one.")
    assert isinstance(stub, LLMAdapter)
    assert stub.model_name == "stub"
    for _ in range(2):
        found, tokens = stub.extract_facts(episodes(1))
        assert (found, tokens) == (facts, 7)
        found[0]["sources"].append(2)
        found.clear()
    assert stub.summarise(episodes(1)) == ("All in one.", 7)
    assert StubLLMAdapter().extract_facts([]) == ([], 0)
    assert StubLLMAdapter().summarise([]) == ("Stub summary.", 0)
