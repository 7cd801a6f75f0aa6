"""The language model a command is told to ask."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from engram.cli.failures import LanguageModelError
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engram.llm import LLMAdapter

    _Function = TypeVar("_Function", bound=Callable[..., object])

__all__ = ["asked", "language_model", "llm_options"]

_ADAPTERS = {
    "anthropic": "AnthropicAdapter",
    "openai": "OpenAIAdapter",
    "gemini": "GeminiAdapter",
    "deepseek": "DeepSeekAdapter",
    "qwen": "QwenAdapter",
    "kimi": "KimiAdapter",
}
# The packages whose errors are the service's or the network's, not ours.
_SERVICES = frozenset({"anthropic", "openai", "google", "httpx", "httpcore"})


def llm_options(command: _Function) -> _Function:
    """Add the options that `language_model` takes."""
    names = "|".join(_ADAPTERS)
    for option in (
        click.option("--base-url", metavar="URL", help="Where its API is, if not its maker's."),
        click.option("--model", metavar="NAME", help="Its model; each has a default."),
        click.option("--llm", metavar=f"[{names}]", help="The language model to ask."),
    ):
        command = option(command)
    return command


def language_model(name: str | None, model: str | None, base_url: str | None) -> LLMAdapter | None:
    """Return the adapter of a language model, None when none is named; nothing is asked yet.

    Raises:
        InvalidArgument: There is none of this name, or options are given without one.
    """
    given = {"model": model, "base_url": base_url}
    options = {key: value for key, value in given.items() if value is not None}
    if name is None:
        if options:
            message = "--model and --base-url go with --llm"
            raise InvalidArgument(message)
        return None
    if name not in _ADAPTERS:
        message = f"unknown --llm {name!r}"
        raise InvalidArgument(message, f"it is one of {', '.join(_ADAPTERS)}")
    from engram import llm  # noqa: PLC0415

    adapter: LLMAdapter = getattr(llm, _ADAPTERS[name])(**options)
    return adapter


@contextmanager
def asked(adapter: LLMAdapter | None) -> Iterator[None]:
    """Name the service in what goes wrong with it.

    Raises:
        LanguageModelError: The adapter's SDK or the service gave up; the text of its error, which
            can quote what was sent, is left out.
    """
    try:
        yield
    except Exception as error:
        if adapter is None or type(error).__module__.partition(".")[0] not in _SERVICES:
            raise
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        what = type(error).__name__ + (f", status {status}" if isinstance(status, int) else "")
        message = f"the language model {adapter.model_name} gave no answer ({what})"
        raise LanguageModelError(message, "nothing was lost: run it again") from error
