"""`EngramMemoryBlock`: long-term memory for LlamaIndex's `Memory`."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock
from pydantic import ConfigDict, Field

from engram.adapters.conversation import Conversation
from engram.adapters.llamaindex.messages import to_episode
from engram.engine import Engram  # noqa: TC001 - pydantic reads the annotations
from engram.retrieval import MAX_K

__all__ = ["EngramMemoryBlock"]

_SESSION = "session_id"


class EngramMemoryBlock(BaseMemoryBlock[str]):
    """Keeps what `Memory` lets go of, and brings back what answers the user's last message.

    Messages are kept as `EngramMemory` keeps them, in the conversation that is the `session_id` of
    the `Memory`. What comes back is the text of episodes, each on lines of its own with its day and
    its provenance. Everything runs on a worker thread.

    Attributes:
        engram: The memory; the block does not close it.
        k: How many episodes to bring back, 1 to 4096.
        recall_from: Whether to look in all that is remembered, or in this conversation alone.
        exclude_quarantined: Leave out what was written after untrusted content had been read: it
            would become part of the prompt.
        min_score: Leave out what scores lower; see `Engram.recall`.

    Raises:
        pydantic.ValidationError: An attribute is refused.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = "engram"
    description: str | None = "What was remembered of this and earlier conversations."
    engram: Engram = Field(repr=False, exclude=True)
    k: int = Field(default=5, ge=1, le=MAX_K)
    recall_from: Literal["memory", "session"] = "memory"
    exclude_quarantined: bool = True
    min_score: float | None = None

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Return what answers the last message of the user, "" where nothing does."""
        asked = [m.content for m in messages or () if m.role is MessageRole.USER and m.content]
        if not asked:
            return ""
        session = block_kwargs.get(_SESSION)
        return await asyncio.to_thread(self._recall, asked[-1], session)

    def _recall(self, query: str, session_id: str | None) -> str:
        tags = Conversation(self.engram, session_id).tags if self.recall_from == "session" else []
        found = self.engram.recall(
            query,
            self.k,
            min_score=self.min_score,
            tags=tags,
            exclude_quarantined=self.exclude_quarantined,
        )
        # Later lines of a text are indented, so that none can pass for an episode of its own.
        return "\n".join(
            f"- {one.episode.timestamp:%Y-%m-%d} ({one.episode.provenance}): "
            + one.episode.content.replace("\n", "\n  ")
            for one in found
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Remember messages, all or none."""
        await asyncio.to_thread(self._remember, messages)

    def _remember(self, messages: list[ChatMessage]) -> None:
        self.engram.observe_many(
            [
                to_episode(one, Conversation(self.engram, one.additional_kwargs.get(_SESSION)).tags)
                for one in messages
            ]
        )
