"""GPT, and every server that speaks OpenAI's Chat Completions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

from engram.config.providers import KEY_VARIABLES
from engram.llm.chat import ChatAdapter, Request, missing_key, refusal
from engram.llm.prompts import FACT_OBJECT
from engram.llm.replies import Reply, token_count

if TYPE_CHECKING:
    from typing import Unpack

    from engram.llm.chat import CallOptions

__all__ = ["OpenAIAdapter"]

_FACTS_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "facts", "strict": True, "schema": FACT_OBJECT},
}


class OpenAIAdapter(ChatAdapter):
    """GPT, or any OpenAI-compatible server (`pip install 'engram-embedded[openai]'`).

    Facts are asked for with a JSON schema. A server that refuses one is asked without it, and
    from then on.

    Args:
        model: The model's name.
        base_url: Where the API is, such as `http://localhost:11434/v1` for Ollama; None reads
            `OPENAI_BASE_URL`, else it is OpenAI's.
        api_key: The key; None reads `OPENAI_API_KEY`. A server at another address may need none.
        options: `timeout`, `retries`, `max_tokens` and `temperature`; see `CallOptions`.

    Raises:
        InvalidArgument: An option has a value that is refused.
        InvalidType: An option has the wrong type.
    """

    _module = "openai"
    _extra = "openai"
    _provider: ClassVar[str] = "openai"
    _keyless: ClassVar[bool] = True

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        base_url: str | None = None,
        api_key: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        super().__init__(model, base_url, api_key, **options)
        self._schema_refused = False

    def _connect(self, sdk: Any) -> Any:
        base_url = self._base_url or os.environ.get("OPENAI_BASE_URL") or None
        [variable] = KEY_VARIABLES[self._provider]
        key = self._api_key or os.environ.get(variable)
        if not key and base_url and self._keyless:
            key = "none"  # the SDK insists on one; local servers ignore it
        if not key:
            raise missing_key(variable)
        return sdk.OpenAI(
            api_key=key,
            base_url=base_url,
            timeout=self._timeout,
            max_retries=self._retries,
        )

    def _send(self, client: Any, request: Request) -> Reply:
        # OpenAI's reasoning models refuse the old name of the limit, other servers ignore the new.
        own = client.base_url.host == "api.openai.com"
        arguments = {
            "model": self.model_name,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ],
            "max_completion_tokens" if own else "max_tokens": request.max_tokens,
            **self._temperature,
        }
        completion = self._complete(client, arguments, request.structured)
        if not completion.choices:
            raise refusal(reason="no_choices")
        choice = completion.choices[0]
        if choice.finish_reason not in ("stop", "length", None):
            raise refusal(choice.finish_reason)
        if getattr(choice.message, "refusal", None):
            raise refusal(reason="refusal")
        usage = completion.usage
        return Reply(
            text=choice.message.content or "",
            tokens=token_count(usage and usage.total_tokens),
            complete=choice.finish_reason != "length",
        )

    def _complete(self, client: Any, arguments: dict[str, Any], structured: bool) -> Any:
        create = client.chat.completions.create
        if not structured or self._schema_refused:
            return create(**arguments)
        sdk = self._sdk()
        try:
            return create(**arguments, response_format=_FACTS_FORMAT)
        except (sdk.BadRequestError, sdk.UnprocessableEntityError):
            # If it was for another reason, the server says so again.
            completion = create(**arguments)
        self._schema_refused = True
        return completion
