"""Providers that speak OpenAI's Chat Completions at their own address, with their own key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.llm.openai import OpenAIAdapter

if TYPE_CHECKING:
    from typing import Unpack

    from engram.llm.chat import CallOptions

__all__ = ["DeepSeekAdapter", "KimiAdapter", "QwenAdapter"]


class DeepSeekAdapter(OpenAIAdapter):
    """DeepSeek (`pip install 'engram-embedded[openai]'`).

    Args:
        model: The model's name.
        api_key: The key; None reads `DEEPSEEK_API_KEY`, and no other variable.
        base_url: Where the API is.
        options: `timeout`, `retries`, `max_tokens` and `temperature`; see `CallOptions`.

    Raises:
        InvalidArgument: An option has a value that is refused.
        InvalidType: An option has the wrong type.
    """

    _provider = "deepseek"
    _keyless = False

    def __init__(
        self,
        model: str = "deepseek-chat",
        api_key: str | None = None,
        *,
        base_url: str = "https://api.deepseek.com/v1",
        **options: Unpack[CallOptions],
    ) -> None:
        super().__init__(model, base_url, api_key, **options)


class QwenAdapter(OpenAIAdapter):
    """Qwen, on Alibaba Cloud's DashScope (`pip install 'engram-embedded[openai]'`).

    Args:
        model: The model's name.
        api_key: The key; None reads `DASHSCOPE_API_KEY`, and no other variable.
        base_url: Where the API is; other regions have their own.
        options: `timeout`, `retries`, `max_tokens` and `temperature`; see `CallOptions`.

    Raises:
        InvalidArgument: An option has a value that is refused.
        InvalidType: An option has the wrong type.
    """

    _provider = "qwen"
    _keyless = False

    def __init__(
        self,
        model: str = "qwen-max",
        api_key: str | None = None,
        *,
        base_url: str = "https://dashscope.aliyuncs.com/compatible-mode/v1",
        **options: Unpack[CallOptions],
    ) -> None:
        super().__init__(model, base_url, api_key, **options)


class KimiAdapter(OpenAIAdapter):
    """Kimi, from Moonshot AI (`pip install 'engram-embedded[openai]'`).

    The default model holds 8,192 tokens, prompt and reply together, so `max_tokens` is 2048
    unless given.

    Args:
        model: The model's name.
        api_key: The key; None reads `MOONSHOT_API_KEY`, and no other variable.
        base_url: Where the API is; other regions have their own.
        options: `timeout`, `retries`, `max_tokens` and `temperature`; see `CallOptions`.

    Raises:
        InvalidArgument: An option has a value that is refused.
        InvalidType: An option has the wrong type.
    """

    _provider = "kimi"
    _keyless = False

    def __init__(
        self,
        model: str = "moonshot-v1-8k",
        api_key: str | None = None,
        *,
        base_url: str = "https://api.moonshot.cn/v1",
        **options: Unpack[CallOptions],
    ) -> None:
        options.setdefault("max_tokens", 2048)
        super().__init__(model, base_url, api_key, **options)
