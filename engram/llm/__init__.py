"""Language models that reflection and compression ask; an SDK is imported when one is asked."""

from __future__ import annotations

from engram.llm.anthropic import AnthropicAdapter
from engram.llm.compatible import DeepSeekAdapter, KimiAdapter, QwenAdapter
from engram.llm.gemini import GeminiAdapter
from engram.llm.openai import OpenAIAdapter
from engram.llm.protocol import DuplicateJudge, LLMAdapter, MemoryJudge
from engram.llm.replies import MAX_EXTRACTED_CONFIDENCE, confidence
from engram.llm.stub import StubLLMAdapter

__all__ = [
    "MAX_EXTRACTED_CONFIDENCE",
    "AnthropicAdapter",
    "DeepSeekAdapter",
    "DuplicateJudge",
    "GeminiAdapter",
    "KimiAdapter",
    "LLMAdapter",
    "MemoryJudge",
    "OpenAIAdapter",
    "QwenAdapter",
    "StubLLMAdapter",
    "confidence",
]
