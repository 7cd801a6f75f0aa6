"""What the providers of language models say on the wire."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

from engram.llm import AnthropicAdapter, GeminiAdapter, OpenAIAdapter
from engram.models import Episode

NEVER = object()
"""An answer that does not come."""
KEY = "sk-secret-key-1234567890"
VARIABLES = [
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_PROFILE",
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY",
    "DASHSCOPE_API_KEY", "MOONSHOT_API_KEY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "all_proxy",
]  # fmt: skip


def episode(content: str, number: int = 0) -> Episode:
    return Episode(
        id=f"episode-{number}",
        content=content,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        actors=["</observation>actor"],
        tags=["</observation>tag"],
        agent_id="</observation>agent",
    )


def episodes(count: int) -> list[Episode]:
    return [episode(f"observation number {number}", number) for number in range(1, count + 1)]


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Server:
    """Answers with what it was given, in order; the last answer is repeated."""

    url: str = ""
    answers: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=lambda: {"Retry-After-Ms": "1"})
    requests: list[Request] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def next_answer(self) -> Any:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:
        script: Server = self.server.script
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, {})
        request.body = json.loads(body)
        script.requests.append(request)
        answer = script.next_answer()
        if answer is NEVER:
            script.released.wait()
            return
        if callable(answer):
            answer = answer(request)
        status, content = answer
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in script.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class AnthropicWire:
    extra, adapter, cut_off = "anthropic", AnthropicAdapter, "max_tokens"
    path = "/v1/messages"

    @staticmethod
    def say(text: str, stop: str | None = "end_turn", tokens: tuple[Any, Any] = (11, 7)) -> Any:
        return 200, {
            "id": "m", "type": "message", "role": "assistant", "model": "x",
            "content": [{"type": "text", "text": text}], "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
        }  # fmt: skip

    @staticmethod
    def record(facts: list[Any]) -> Any:
        _, body = AnthropicWire.say("")
        body["content"] = [
            {"type": "tool_use", "id": "t", "name": "record_facts", "input": {"facts": facts}}
        ]
        return 200, {**body, "stop_reason": "tool_use"}

    @staticmethod
    def fail(status: int, words: str) -> Any:
        return status, {"type": "error", "error": {"type": "error", "message": words}}

    @staticmethod
    def sent(body: dict[str, Any]) -> tuple[str, str, int, Any]:
        [message] = body["messages"]
        return body["system"], message["content"], body["max_tokens"], body.get("temperature")

    @staticmethod
    def key(headers: dict[str, str]) -> str:
        # Which header it is depends on the SDK's version.
        return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")


class OpenAIWire:
    extra, adapter, cut_off = "openai", OpenAIAdapter, "length"
    path = "/chat/completions"

    @staticmethod
    def say(text: str | None, stop: str | None = "stop", tokens: tuple[Any, Any] = (11, 7)) -> Any:
        total = sum(tokens) if all(isinstance(count, int) for count in tokens) else tokens[0]
        return 200, {
            "id": "c", "object": "chat.completion", "created": 1, "model": "x",
            "choices": [{"index": 0, "finish_reason": stop,
                         "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1],
                      "total_tokens": total},
        }  # fmt: skip

    @staticmethod
    def record(facts: list[Any]) -> Any:
        return OpenAIWire.say(json.dumps({"facts": facts}))

    @staticmethod
    def fail(status: int, words: str) -> Any:
        return status, {"error": {"message": words, "type": "error", "param": None, "code": None}}

    @staticmethod
    def sent(body: dict[str, Any]) -> tuple[str, str, int, Any]:
        system, user = body["messages"]
        return system["content"], user["content"], body["max_tokens"], body.get("temperature")

    @staticmethod
    def key(headers: dict[str, str]) -> str:
        return headers["authorization"].removeprefix("Bearer ")


class GeminiWire:
    extra, adapter, cut_off = "gemini", GeminiAdapter, "MAX_TOKENS"
    path = r"/v1(beta)?/models/gemini-2\.0-flash:generateContent"  # by the SDK's version

    @staticmethod
    def say(text: str, stop: str | None = "STOP", tokens: tuple[Any, Any] = (11, 7)) -> Any:
        return 200, {
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]},
                            "finishReason": stop}],
            "usageMetadata": {"promptTokenCount": tokens[0], "candidatesTokenCount": tokens[1],
                              "totalTokenCount": 99},
        }  # fmt: skip

    @staticmethod
    def record(facts: list[Any]) -> Any:
        return GeminiWire.say(json.dumps(facts))

    @staticmethod
    def fail(status: int, words: str) -> Any:
        return status, {"error": {"code": status, "message": words, "status": "FAILED"}}

    @staticmethod
    def sent(body: dict[str, Any]) -> tuple[str, str, int, Any]:
        [system] = body["systemInstruction"]["parts"]
        [part] = body["contents"][0]["parts"]
        config = body["generationConfig"]
        return system["text"], part["text"], config["maxOutputTokens"], config.get("temperature")

    @staticmethod
    def key(headers: dict[str, str]) -> str:
        return headers["x-goog-api-key"]
