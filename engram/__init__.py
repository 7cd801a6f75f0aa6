"""Embedded memory for AI agents: episodes in one SQLite file, found by meaning, words and time."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from engram._version import __version__

if TYPE_CHECKING:
    from engram.aio import AsyncEngram
    from engram.cognition.decay import DecayConfig
    from engram.cognition.reflection import ReflectionThread
    from engram.engine import Engram
    from engram.ledger import Ledger
    from engram.llm import (
        AnthropicAdapter,
        DeepSeekAdapter,
        GeminiAdapter,
        KimiAdapter,
        OpenAIAdapter,
        QwenAdapter,
        StubLLMAdapter,
    )
    from engram.models import (
        Certificate,
        CompressionRun,
        Episode,
        EpisodePage,
        Fact,
        FactResult,
        Filters,
        ForgetResult,
        ObserveInput,
        ReflectionRun,
        SearchResult,
    )
    from engram.retrieval.blending import Blending
    from engram.retrieval.search import SearchHit
    from engram.working_memory import WorkingMemory, WorkingMemoryItem

__all__ = [
    "AnthropicAdapter",
    "AsyncEngram",
    "Blending",
    "Certificate",
    "CompressionRun",
    "DecayConfig",
    "DeepSeekAdapter",
    "Engram",
    "Episode",
    "EpisodePage",
    "Fact",
    "FactResult",
    "Filters",
    "ForgetResult",
    "GeminiAdapter",
    "KimiAdapter",
    "Ledger",
    "ObserveInput",
    "OpenAIAdapter",
    "QwenAdapter",
    "ReflectionRun",
    "ReflectionThread",
    "SearchHit",
    "SearchResult",
    "StubLLMAdapter",
    "WorkingMemory",
    "WorkingMemoryItem",
    "__version__",
]

# Loaded at first use: the engine brings NumPy and SQLite, and a command that only prints its help
# needs neither.
_LAZY = {
    "AsyncEngram": "engram.aio",
    "Ledger": "engram.ledger",
    "Certificate": "engram.models",
    "CompressionRun": "engram.models",
    "Episode": "engram.models",
    "EpisodePage": "engram.models",
    "Fact": "engram.models",
    "FactResult": "engram.models",
    "Filters": "engram.models",
    "ForgetResult": "engram.models",
    "ObserveInput": "engram.models",
    "ReflectionRun": "engram.models",
    "SearchResult": "engram.models",
    "DecayConfig": "engram.cognition.decay",
    "Engram": "engram.engine",
    "Blending": "engram.retrieval.blending",
    "SearchHit": "engram.retrieval.search",
    "ReflectionThread": "engram.cognition.reflection",
    "AnthropicAdapter": "engram.llm",
    "DeepSeekAdapter": "engram.llm",
    "GeminiAdapter": "engram.llm",
    "KimiAdapter": "engram.llm",
    "OpenAIAdapter": "engram.llm",
    "QwenAdapter": "engram.llm",
    "StubLLMAdapter": "engram.llm",
    "WorkingMemory": "engram.working_memory",
    "WorkingMemoryItem": "engram.working_memory",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
