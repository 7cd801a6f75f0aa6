"""The tools that write an agent's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from engram.errors import InvalidArgument, NotFound
from engram.mcp import parameters as given
from engram.mcp import results
from engram.mcp.parameters import check_scope, moment
from engram.mcp.trust import check_claim
from engram.provenance import TRUSTED_PROVENANCE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engram import Engram
    from engram.mcp.opening import Opening
    from engram.mcp.options import Options
    from engram.mcp.trust import Session

__all__ = ["SESSION", "Writing"]

SESSION: Final = "engram-mcp"
"""The source of a fact that rests on no episode and that the server vouches for."""


class Writing:
    """The tools `remember` and `forget`.

    Args:
        store: The memory.
        session: What the session is trusted with.
        options: How the server was started.
    """

    def __init__(self, store: Opening[Engram], session: Session, options: Options) -> None:
        self._store = store
        self._session = session
        self._agent = options.agent_id

    def remember(
        self,
        content: given.Content = None,
        kind: given.WrittenKind = "episodic",
        agent_id: given.Identity = None,
        subject: given.Subject = None,
        predicate: given.Predicate = None,
        object: given.Value = None,  # noqa: A002 - the documented name
        provenance: given.Claim = None,
        shared: given.Shared = False,
        read_untrusted: given.ReadUntrusted = False,
        timestamp: given.Happened = None,
        tags: given.Labels = None,
        actors: given.Participants = None,
        source: given.Source = None,
    ) -> results.Written:
        """Store a memory; what is refused leaves no trace, in the store or in the session."""
        check_scope(agent_id, self._agent)
        when = moment(timestamp, "timestamp")
        triple = {"subject": subject, "predicate": predicate, "object": object}
        _check_texts({**triple, "content": content, "tags": tags, "actors": actors})
        if kind == "episodic":
            _must_lack(kind, {**triple, "shared": shared, "source": source})
            check_claim(provenance)
            return self._episode(content, when, tags, actors, provenance, read_untrusted)
        if kind == "semantic":
            others = {"content": content, "provenance": provenance, "tags": tags, "actors": actors}
            _must_lack(kind, others)
            return self._fact(triple, when, source, shared, read_untrusted)
        message = "kind must be episodic or semantic"
        if kind == "procedural":
            message = "kind 'procedural' is not supported: there is no procedural memory"
        raise InvalidArgument(message)

    def _episode(
        self,
        content: str | None,
        when: datetime | None,
        tags: list[str] | None,
        actors: list[str] | None,
        claim: str | None,
        read_untrusted: bool,
    ) -> results.Written:
        if not content or not content.strip():
            message = "an episodic memory needs content"
            raise InvalidArgument(message)
        memory = self._store.get()
        mark = self._session.writing("remember", claim, read_untrusted=read_untrusted)
        uid = memory.observe(
            content,
            actors=actors,
            tags=tags,
            timestamp=when,
            provenance=mark.provenance,
            quarantined=mark.quarantined,
        )
        self._store.check()
        return results.written(uid, "episodic", self._agent, mark.provenance, mark.quarantined)

    def _fact(
        self,
        triple: dict[str, str | None],
        when: datetime | None,
        source: str | None,
        shared: bool,
        read_untrusted: bool,
    ) -> results.Written:
        subject, predicate, value = ((part or "").strip() and part for part in triple.values())
        if not (subject and predicate and value):
            message = "a semantic memory needs subject, predicate and object"
            raise InvalidArgument(message)
        memory = self._store.get()
        if source is not None:
            # Refused before the session hears of it; that it is there still, the store sees to.
            memory.get(source)
        mark = self._session.writing("remember", read_untrusted=read_untrusted)
        vouched = source is None and mark.provenance == TRUSTED_PROVENANCE
        uid = memory.assert_fact(
            subject,
            predicate,
            value,
            source=SESSION if vouched else None,
            source_episode=source,
            source_provenance=mark.provenance if vouched or source is not None else None,
            shared=shared,
            quarantined=mark.quarantined,
            valid_from=when,
        )
        self._store.check()
        # As it is stored: its source may be quarantined. One that is forgotten already is nobody's.
        _, quarantined = memory.trust_of([uid]).get(uid, mark)
        return results.written(uid, "semantic", self._agent, None, quarantined, shared=shared)

    def forget(self, memory_id: given.MemoryId) -> results.Removed:
        """Erase an episode or a fact."""
        memory = self._store.get()
        kind: Literal["episodic", "semantic"] = "episodic"
        try:
            memory.forget(memory_id)
        except NotFound:
            kind = "semantic"
            try:
                memory.forget_fact(memory_id)
            except NotFound:
                raise results.not_found() from None
        self._store.check()
        return {"id": memory_id, "kind": kind, "deleted": True}


def _check_texts(texts: Mapping[str, str | list[str] | None]) -> None:
    """Refuse what cannot be stored; the store would, when the session has heard of the write.

    Raises:
        InvalidArgument: A text has lone surrogates.
    """
    from engram import arguments  # noqa: PLC0415 - the client is answered before it loads

    for name, value in texts.items():
        if isinstance(value, list):
            arguments.names(value, name)
        elif value is not None:
            arguments.text(value, name)


def _must_lack(kind: str, others: Mapping[str, object]) -> None:
    """Refuse what a kind of memory has no place for.

    Raises:
        InvalidArgument: Something of it was given.
    """
    for name, value in others.items():
        if value is not None and value is not False:
            message = f"a memory of kind {kind!r} takes no {name}"
            raise InvalidArgument(message)
