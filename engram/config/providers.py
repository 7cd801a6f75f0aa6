"""The variables of the environment that hold the keys of language models' providers."""

from __future__ import annotations

from typing import Final

KEY_VARIABLES: Final = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "qwen": ("DASHSCOPE_API_KEY",),
    "kimi": ("MOONSHOT_API_KEY",),
}
"""By provider; of several the first that is set counts. No other provider's is ever read."""
