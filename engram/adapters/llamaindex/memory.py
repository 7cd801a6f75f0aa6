"""`EngramMemory`: the messages of a conversation, and what is known beside them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Self

from llama_index.core.base.llms.types import ChatMessage  # noqa: TC002 - pydantic
from llama_index.core.memory.types import BaseMemory
from pydantic import ConfigDict, Field, PrivateAttr

from engram.adapters.conversation import Conversation
from engram.adapters.llamaindex.messages import from_episode, recalled, to_episode
from engram.engine import Engram
from engram.errors import InvalidArgument, InvalidType
from engram.retrieval import MAX_K

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EngramMemory"]

_MOST = 100_000


class EngramMemory(BaseMemory):
    """A chat memory whose messages are episodes, so that every recall finds them.

    It begins with the newest messages of its conversation. A message comes back exactly as it was
    put, tool calls and all. Its provenance is "user" for what the person said, "tool" for what a
    tool returned and "external" for the rest. Async methods run on a worker thread.

    Attributes:
        engram_path: The store to open; ":memory:" lives with the instance. Not looked at where
            `engram` is given.
        k: How many messages `get` returns, 1 to 4096.
        session_id: The conversation; its messages are tagged `session:<session_id>`. None is the
            conversation of all messages that belong to no session.
        agent_id: Whose memory it is, where it opens the store itself.
        recall_from: Where `get` looks for what answers a text: in all that is remembered, or in
            this conversation alone.
        limit: How many of the newest messages it begins with, 1 to 100,000.

    Args:
        engram: A memory that is open already; it stays so.
        key: Passphrase of an encrypted store.

    Raises:
        pydantic.ValidationError, InvalidArgument, InvalidType: An argument is refused.
        CannotOpen, NotAStore: The store cannot be opened. Other errors are those of `Engram`.
    """

    model_config = ConfigDict(extra="forbid")

    engram_path: str = ":memory:"
    k: int = Field(default=5, ge=1, le=MAX_K)
    session_id: str | None = None
    agent_id: str | None = None
    recall_from: Literal["memory", "session"] = "memory"
    limit: int = Field(default=1000, ge=1, le=_MOST)

    _engram: Engram = PrivateAttr()
    _owned: bool = PrivateAttr(default=False)
    _conversation: Conversation = PrivateAttr()
    _history: list[ChatMessage] = PrivateAttr(default_factory=list)

    def __init__(
        self,
        engram_path: str = ":memory:",
        k: int = 5,
        *,
        engram: Engram | None = None,
        key: str | None = None,
        **data: Any,
    ) -> None:
        data |= {"engram_path": str(engram_path), "k": k}
        super().__init__(**data)
        if engram is None:
            self._owned = True
            self._engram = Engram(self.engram_path, agent_id=self.agent_id, key=key)
        elif not isinstance(engram, Engram):
            message = f"engram must be an Engram, not {type(engram).__name__}"
            raise InvalidType(message)
        elif self.agent_id is not None or key is not None:
            message = "engram was given together with agent_id or key"
            raise InvalidArgument(message, "open the Engram with them")
        else:
            self._engram = engram
        try:
            self._conversation = Conversation(self._engram, self.session_id)
            newest = islice(self._conversation.messages(self.limit), self.limit)
            self._history = [from_episode(episode) for episode in newest][::-1]
        except BaseException:
            self.close()
            raise

    @classmethod
    def class_name(cls) -> str:
        """Return the name by which LlamaIndex knows the class."""
        return "EngramMemory"

    @classmethod
    def from_defaults(
        cls,
        chat_history: Sequence[ChatMessage] | None = None,
        llm: object = None,
        **kwargs: Any,
    ) -> Self:
        """Return a memory.

        Args:
            chat_history: Messages to begin with, instead of those in the store, as by `set`.
            llm: Ignored.
            **kwargs: Arguments of the class.

        Raises:
            pydantic.ValidationError, InvalidArgument, InvalidType, CannotOpen, NotAStore: As for
                the class.
        """
        memory = cls(**kwargs)
        if chat_history:
            memory.set(list(chat_history))
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, if this opened it; closing twice is harmless."""
        if self._owned:
            self._engram.close()

    def get(
        self,
        input: str | None = None,  # noqa: A002 - the documented name
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """Return what answers a text best, or the end of the conversation.

        Args:
            input: The text. The `k` best messages come back, best first, and what else is
                remembered as messages of the user; `provenance` and `quarantined` among their
                `additional_kwargs` say how far to trust each. None, or a blank text: the last `k`
                messages of the conversation.
            **kwargs: Ignored.

        Raises:
            ModelMissing, ModelMismatch, Closed, Busy, CorruptStore: As for `Engram.recall`.
        """
        if input is None or not input.strip():
            return self._history[-self.k :]
        tags = self._conversation.tags if self.recall_from == "session" else []
        found = self._engram.recall(input, self.k, tags=tags)
        return [recalled(result.episode) for result in found]

    def get_all(self) -> list[ChatMessage]:
        """Return the conversation, oldest first; a list of the caller's own."""
        return list(self._history)

    def put(self, message: ChatMessage) -> None:
        """Remember a message.

        Raises:
            InvalidArgument, InvalidType: It is no message, or holds what JSON has no form for.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As for `Engram.observe`; nothing
                is kept.
        """
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Remember messages, all or none, in one transaction.

        Raises:
            InvalidArgument, InvalidType, ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As
                for `put`.
        """
        tags = self._conversation.tags
        self._engram.observe_many([to_episode(message, tags) for message in messages])
        self._history += messages

    def set(self, messages: list[ChatMessage]) -> None:
        """Go on as if these were the conversation; what the store has is left as it is."""
        self._history = list(messages)

    def reset(self) -> None:
        """Begin anew; the store keeps everything, and another instance shows it."""
        self._history = []

    def erase(self) -> int:
        """Erase the conversation from the store, all or none; return how many messages it had.

        There is no way back: text, vectors and full-text entries are overwritten, as by
        `Engram.forget`.
        """
        self._history = []
        return self._conversation.erase()
