"""Gemini, through Google's Gen AI SDK."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from engram.config.providers import KEY_VARIABLES
from engram.llm.chat import ChatAdapter, Request, missing_key, refusal
from engram.llm.prompts import FACT_ARRAY
from engram.llm.replies import Reply, token_count

if TYPE_CHECKING:
    from typing import Unpack

    from engram.llm.chat import CallOptions

__all__ = ["GeminiAdapter"]

_VARIABLES = KEY_VARIABLES["gemini"]
# Seconds to wait before the first retry; before each later one twice as long, up to a limit, and
# a random part more. The other SDKs have these figures built in.
FIRST_DELAY = 0.5
MAX_DELAY = 8.0
JITTER = 0.5


class GeminiAdapter(ChatAdapter):
    """Gemini, asked with the `google-genai` SDK (`pip install 'engram-embedded[gemini]'`).

    Args:
        model: The model's name.
        api_key: The key; None reads `GOOGLE_API_KEY`, else `GEMINI_API_KEY`.
        base_url: Where the API is; None is Google's address.
        options: `timeout`, `retries`, `max_tokens` and `temperature`; see `CallOptions`.

    Raises:
        InvalidArgument: An option has a value that is refused.
        InvalidType: An option has the wrong type.
    """

    _module = "google.genai"
    _extra = "gemini"

    def __init__(
        self,
        model: str = "gemini-2.0-flash",
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        super().__init__(model, base_url, api_key, **options)

    def _connect(self, sdk: Any) -> Any:
        http_options = {
            "base_url": self._base_url,
            "timeout": math.ceil(1000 * self._timeout),
            "retry_options": {
                "attempts": self._retries + 1,
                "initial_delay": FIRST_DELAY,
                "max_delay": MAX_DELAY,
                "jitter": JITTER,
            },
        }
        try:
            return sdk.Client(api_key=self._api_key, http_options=http_options)
        except ValueError:
            # What the SDK says when it finds neither a key nor a project, but not only then.
            if self._api_key or any(os.environ.get(variable) for variable in _VARIABLES):
                raise
            raise missing_key(variable=_VARIABLES[0]) from None

    def _send(self, client: Any, request: Request) -> Reply:
        config: dict[str, Any] = {
            "system_instruction": request.system,
            "max_output_tokens": request.max_tokens,
            **self._temperature,
        }
        if request.structured:
            config |= {"response_mime_type": "application/json", "response_schema": FACT_ARRAY}
        answer = client.models.generate_content(
            model=self.model_name, contents=request.prompt, config=config
        )
        if not answer.candidates:
            feedback = answer.prompt_feedback
            raise refusal(feedback.block_reason.value if feedback else "no_candidates")
        candidate = answer.candidates[0]
        reason = getattr(candidate.finish_reason, "value", None)
        if reason not in ("STOP", "MAX_TOKENS", None):
            raise refusal(reason)
        usage = answer.usage_metadata
        parts = (candidate.content and candidate.content.parts) or []
        return Reply(
            text="".join(part.text for part in parts if part.text and not part.thought),
            tokens=token_count(usage and usage.prompt_token_count)
            + token_count(usage and usage.candidates_token_count),
            complete=reason != "MAX_TOKENS",
        )
