"""Claude, through Anthropic's Messages API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engram.config.providers import KEY_VARIABLES
from engram.llm.chat import ChatAdapter, Request, missing_key, refusal
from engram.llm.prompts import FACT_OBJECT
from engram.llm.replies import Reply, token_count

if TYPE_CHECKING:
    from typing import Unpack

    from engram.llm.chat import CallOptions

__all__ = ["AnthropicAdapter"]

# A tool, not `output_config`: every Claude since 3 and every proxy knows tools.
_RECORD_FACTS = {
    "tools": [
        {
            "name": "record_facts",
            "description": "Record the facts found in the observations.",
            "input_schema": FACT_OBJECT,
        }
    ],
    "tool_choice": {"type": "tool", "name": "record_facts"},
}
MAX_WAIT = 60
"""Seconds a server may ask to wait before a retry."""
_FINISHED = ("end_turn", "tool_use", "stop_sequence", None)
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")


class AnthropicAdapter(ChatAdapter):
    """Claude, asked with the `anthropic` SDK (`pip install 'engram-embedded[anthropic]'`).

    Args:
        model: The model's name.
        base_url: Where the API is; None reads `ANTHROPIC_BASE_URL`, else it is Anthropic's.
        api_key: The key; None reads `ANTHROPIC_API_KEY`.
        options: `timeout`, `retries`, `max_tokens` and `temperature`; see `CallOptions`.

    Raises:
        InvalidArgument: An option has a value that is refused.
        InvalidType: An option has the wrong type.
    """

    _module = "anthropic"
    _extra = "anthropic"

    def __init__(
        self,
        model: str = "claude-haiku-4-5-20251001",
        base_url: str | None = None,
        api_key: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        super().__init__(model, base_url, api_key, **options)

    def _connect(self, sdk: Any) -> Any:
        client = sdk.Anthropic(
            api_key=self._api_key,
            base_url=self._base_url,
            timeout=self._timeout,
            max_retries=self._retries,
            http_client=sdk.DefaultHttpxClient(event_hooks={"response": [_limit_wait]}),
        )
        # The SDK would say so only at the first call, in words about headers.
        if not (client.api_key or client.auth_token or getattr(client, "credentials", None)):
            client.close()
            raise missing_key(*KEY_VARIABLES["anthropic"])
        return client

    def _send(self, client: Any, request: Request) -> Reply:
        message = client.messages.create(
            model=self.model_name,
            max_tokens=request.max_tokens,
            system=request.system,
            messages=[{"role": "user", "content": request.prompt}],
            # In the body: version 2 of the SDK has no argument for it any more.
            extra_body=self._temperature,
            **(_RECORD_FACTS if request.structured else {}),
        )
        if message.stop_reason not in _FINISHED + _CUT_OFF:
            raise refusal(message.stop_reason)
        return Reply(
            text=_text(message.content),
            tokens=token_count(message.usage.input_tokens)
            + token_count(message.usage.output_tokens),
            complete=message.stop_reason not in _CUT_OFF,
        )


def _limit_wait(response: Any) -> None:
    """Drop a wait that the SDK would obey for up to 49 days; it then backs off by itself."""
    for name, most in (("retry-after-ms", 1000 * MAX_WAIT), ("retry-after", MAX_WAIT)):
        try:
            bearable = float(response.headers.get(name, 0)) <= most
        except ValueError:
            bearable = False  # a date
        if not bearable:
            del response.headers[name]


def _text(blocks: list[Any]) -> str:
    for block in blocks:
        if block.type == "tool_use":
            return json.dumps(block.input)
    # A proxy may have dropped the tool.
    return "".join(block.text for block in blocks if block.type == "text")
