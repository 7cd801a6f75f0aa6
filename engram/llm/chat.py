"""What all adapters share: when to call, how much to ask for, and which errors come out."""

from __future__ import annotations

import importlib
import math
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from engram.errors import (
    EngramError,
    InvalidArgument,
    InvalidType,
    LLMCallError,
    LLMReplyError,
    MissingExtra,
)
from engram.llm.prompts import (
    DUPLICATE_SYSTEM,
    FACT_SYSTEM,
    JUDGE_SYSTEM,
    SUMMARY_SYSTEM,
    duplicate_prompt,
    fact_prompt,
    judge_prompt,
    summary_prompt,
)
from engram.llm.replies import parse_duplicates, parse_facts, parse_judgement, parse_summary

if TYPE_CHECKING:
    from typing import Unpack

    from engram.llm.replies import Reply
    from engram.models import Episode
    from engram.storage.triplets import Experience

__all__ = ["CallOptions", "ChatAdapter", "Request", "missing_key", "refusal"]

FACT_TOKENS = 1024
SUMMARY_TOKENS = 512
JUDGEMENT_TOKENS = 512
DUPLICATE_TOKENS = 16
TOKENS_PER_OBSERVATION = 160
"""About three facts with their keys; a window that needs more is asked for in halves."""

_HINTS = {
    400: "the server refuses the request: check the model's name and limits, or temperature=None",
    401: "check the API key",
    403: "check what the API key may do",
    404: "check the model's name and base_url",
    429: "wait, or raise retries",
}


class CallOptions(TypedDict, total=False):
    """What every adapter takes beside its model, address and key.

    Attributes:
        timeout: Seconds to wait for one answer; default 120. Each retry waits as long again.
        retries: How often a call that was refused for load, or failed, is made again, with
            exponential backoff; default 2.
        max_tokens: The most tokens one reply may have; default 8192. It also sets how many
            observations one call holds: one per 160 tokens.
        temperature: Default 0. None sends none, for models that refuse it.
    """

    timeout: float
    retries: int
    max_tokens: int
    temperature: float | None


@dataclass(frozen=True)
class Request:
    """One question to a model.

    Attributes:
        system: What the model is told first.
        prompt: The instruction and the observations.
        max_tokens: The most tokens the reply may have.
        structured: The answer is a list of facts, so a schema can be asked for.
    """

    system: str
    prompt: str
    max_tokens: int
    structured: bool


class ChatAdapter(ABC):
    """A language model behind a provider's SDK.

    The SDK is imported and its client made at the first call; one client serves all threads. A
    window of many episodes is several calls. A reply that the token limit cut off is asked for
    again with the whole of `max_tokens`, then in halves. If any of the calls fails in the end,
    the whole extraction fails, and the caller keeps nothing of it.

    Args:
        model: The model's name, as the provider spells it.
        base_url: Where the API is; None is the provider's own address.
        api_key: The key; None reads the documented environment variable.
        options: See `CallOptions`.

    Raises:
        InvalidArgument: An option has a value that is refused.
        InvalidType: An option has the wrong type, or does not exist.
    """

    _module: ClassVar[str]
    _extra: ClassVar[str]

    def __init__(
        self,
        model: str,
        base_url: str | None,
        api_key: str | None,
        **options: Unpack[CallOptions],
    ) -> None:
        if unknown := options.keys() - CallOptions.__annotations__.keys():
            message = f"unexpected keyword argument {min(unknown)!r}"
            raise InvalidType(message)
        self.model_name = model
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = _number("timeout", options.get("timeout", 120.0))
        if self._timeout == 0:
            message = "timeout must be greater than 0"
            raise InvalidArgument(message)
        self._retries = _integer("retries", options.get("retries", 2), low=0)
        self._max_tokens = _integer("max_tokens", options.get("max_tokens", 8192), low=1)
        temperature = options.get("temperature", 0.0)
        # Spread into the SDK's call, so that None sends no such field.
        self._temperature = (
            {} if temperature is None else {"temperature": _number("temperature", temperature)}
        )
        self._connected: Any = None
        self._lock = threading.Lock()

    def extract_facts(self, episodes: list[Episode]) -> tuple[list[dict[str, Any]], int]:
        """Return the facts the episodes state, and the tokens that cost.

        Returns:
            Dicts with `subject`, `predicate`, `object`, `confidence` (0 to 0.95) and `sources`
            (numbers of the episodes, from 1, ascending; empty where the model names none of
            several); and the tokens of all calls.

        Raises:
            LLMReplyError: A reply is cut off even for one episode, refused, or not in the form
                asked for.
            LLMCallError: A call failed, after its retries.
            MissingExtra: The SDK is not installed.
            InvalidArgument: There is no API key.
        """
        facts: list[dict[str, Any]] = []
        tokens = 0
        size = max(1, self._max_tokens // TOKENS_PER_OBSERVATION)
        for first in range(0, len(episodes), size):
            found, cost = self._extract(episodes[first : first + size], first)
            facts += found
            tokens += cost
        return facts, tokens

    def summarise(self, episodes: list[Episode]) -> tuple[str, int]:
        """Return one paragraph that says what the episodes say, and the tokens that cost.

        Raises:
            LLMReplyError: The reply is cut off, refused or blank.
            LLMCallError: The call failed, after its retries.
            MissingExtra: The SDK is not installed.
            InvalidArgument: There is no API key, or no episode.
        """
        if not episodes:
            message = "episodes must not be empty"
            raise InvalidArgument(message)
        reply, tokens = self._ask(SUMMARY_SYSTEM, summary_prompt(episodes), SUMMARY_TOKENS)
        if not reply.complete:
            raise _cut_off()
        return parse_summary(reply.text), tokens

    def judge_memory(self, query: str, text: str) -> tuple[float, str]:
        """Return how useful a memory is for a query, 0 to 1, and why.

        Args:
            query: What was asked; a blank one asks how useful the memory is at all.
            text: What the memory says.

        Raises:
            LLMReplyError: The reply is cut off, refused, or not in the form asked for.
            LLMCallError: The call failed, after its retries.
            MissingExtra: The SDK is not installed.
            InvalidArgument: There is no API key.
        """
        reply, _ = self._ask(JUDGE_SYSTEM, judge_prompt(query, text), JUDGEMENT_TOKENS)
        if not reply.complete:
            raise _cut_off()
        return parse_judgement(reply.text)

    def are_duplicates(self, first: Experience, second: Experience) -> tuple[bool, int]:
        """Say whether two experiences say the same, and return the tokens that cost.

        Raises:
            LLMReplyError: The model refuses to answer.
            LLMCallError: The call failed, after its retries.
            MissingExtra: The SDK is not installed.
            InvalidArgument: There is no API key.
        """
        prompt = duplicate_prompt(first, second)
        reply, tokens = self._ask(DUPLICATE_SYSTEM, prompt, DUPLICATE_TOKENS)
        return parse_duplicates(reply.text), tokens

    def close(self) -> None:
        """Close the connections to the provider; the next call opens new ones."""
        with self._lock:
            connected, self._connected = self._connected, None
        if connected is not None:
            connected.close()

    @abstractmethod
    def _connect(self, sdk: Any) -> Any:
        """Return a new client of the SDK."""

    @abstractmethod
    def _send(self, client: Any, request: Request) -> Reply:
        """Ask the model once; the SDK's own errors may pass."""

    def _extract(self, episodes: list[Episode], first: int) -> tuple[list[dict[str, Any]], int]:
        limit = max(FACT_TOKENS, TOKENS_PER_OBSERVATION * len(episodes))
        reply, tokens = self._ask(FACT_SYSTEM, fact_prompt(episodes), limit, structured=True)
        if reply.complete:
            return parse_facts(reply.text, first, len(episodes)), tokens
        if len(episodes) == 1:
            raise _cut_off()
        middle = len(episodes) // 2
        before, cost_before = self._extract(episodes[:middle], first)
        after, cost_after = self._extract(episodes[middle:], first + middle)
        return before + after, tokens + cost_before + cost_after

    def _ask(
        self, system: str, prompt: str, limit: int, *, structured: bool = False
    ) -> tuple[Reply, int]:
        """Return a reply and what it cost; a cut-off one is asked for again with all tokens."""
        limit = min(limit, self._max_tokens)
        reply = self._call(Request(system, prompt, limit, structured))
        tokens = reply.tokens
        if not reply.complete and 2 * limit <= self._max_tokens:
            reply = self._call(Request(system, prompt, self._max_tokens, structured))
            tokens += reply.tokens
        return reply, tokens

    def _call(self, request: Request) -> Reply:
        client = self._client()
        try:
            return self._send(client, request)
        except EngramError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever an SDK, or what it got, may raise
            failure = self._failure(error)
        # Outside the handler: SDK errors quote the request, the reply and parts of the key, so
        # none may hang on ours as its context.
        raise failure

    def _failure(self, error: Exception) -> LLMCallError:
        status = getattr(error, "status_code", getattr(error, "code", None))
        if not isinstance(status, int):
            status = 0
        answered = f" (HTTP status {status})" if status else ""
        name = type(error).__name__
        hint = "raise timeout" if "Timeout" in name else _HINTS.get(status, "")
        return LLMCallError(f"the call to the {self._extra} API failed: {name}{answered}", hint)

    def _client(self) -> Any:
        with self._lock:
            if self._connected is None:
                self._connected = self._connect(self._sdk())
            return self._connected

    def _sdk(self) -> Any:
        try:
            return importlib.import_module(self._module)
        except ImportError as error:
            message = f"{type(self).__name__} needs a package that is not installed"
            hint = f"run: pip install 'engram-embedded[{self._extra}]'"
            raise MissingExtra(message, hint) from error


def refusal(reason: object) -> LLMReplyError:
    """Return the error for a reply that ended for another reason than being finished."""
    # Providers name reasons in one word; anything else is not repeated.
    word = str(reason)
    named = f": {word}" if len(word) <= 40 and word.replace("_", "").isalnum() else ""
    return LLMReplyError(f"the model gave no answer{named}")


def missing_key(variable: str) -> InvalidArgument:
    """Return the error for an adapter without an API key."""
    return InvalidArgument("there is no API key", f"pass api_key or set {variable}")


def _cut_off() -> LLMReplyError:
    return LLMReplyError("the model's reply was cut off at the token limit", "raise max_tokens")


def _number(argument: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"{argument} must be a number, not {type(value).__name__}"
        raise InvalidType(message)
    if not math.isfinite(value) or value < 0:
        message = f"{argument} must be finite and not negative"
        raise InvalidArgument(message)
    return value


def _integer(argument: str, value: int, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"{argument} must be an int, not {type(value).__name__}"
        raise InvalidType(message)
    if value < low:
        message = f"{argument} must be at least {low}"
        raise InvalidArgument(message)
    return value
