"""Erasing many episodes, or what concerns a person, and shrinking the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram import arguments
from engram.engine.forgetting import Forgetting
from engram.errors import InvalidArgument, NotFound
from engram.models import ForgetResult

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 200


class Erasure(Forgetting):
    """The calls that erase many memories at once."""

    def forget_many(self, episode_ids: Iterable[str]) -> int:
        """Erase episodes as `forget` does, all or none, in one transaction.

        Ids of no episode, or of another agent's, are passed over. Others cannot write meanwhile,
        for about a second per 5,000 episodes.

        Args:
            episode_ids: Their public ids, in any order.

        Returns:
            How many of them there were.

        Raises:
            InvalidArgument, InvalidType: An id is refused; nothing is erased.
            Busy, StoreFull, Closed: The store cannot be written; nothing is erased.
        """
        uids = dict.fromkeys(arguments.names(episode_ids, "episode_ids"))
        with self._store.writing():
            found = (self._store.episodes.key(uid, self._agent) for uid in uids)
            keys = [key for key in found if key is not None]
            erased = self._store.remove_episodes(keys, self._now()) if keys else []
        self._forgotten(erased)
        return len(keys)

    def forget_entity(self, name: str, *, content_sweep: bool = False) -> ForgetResult:
        """Erase all that is somebody's, in every agent's memory, whatever this instance's scope.

        Spellings that differ in case, in composed characters or in white space are one name, and
        an entity's name and its aliases stand for each other. In one transaction go:

        * episodes that have one of the names among their actors, summaries of those and insights
          drawn from them, and experiences that were merged into one of them;
        * facts whose subject or object is one of the names, and facts all of whose sources go;
          what an erased fact had superseded opens again;
        * the entity, its aliases and its edges;
        * the text of logged queries that returned an erased episode or contain a name.

        When this returns, the erased bytes are in no file of the store, for which parts of the
        index that held them are made anew and a store of up to 256 MiB is rebuilt.
        `ForgetResult.wiped` is False where it is larger, or where another connection was in the way
        for longer than the busy timeout; `compact` does it then. Backups and exports made before
        are files of their own.

        Args:
            name: The name, or an alias of it.
            content_sweep: Erase too what only mentions a name: episodes with it as a word of their
                text, metadata, paths, tags (a session's among them) or actors; facts with it in
                subject, object or project;
                experiences with it in their project, sources or times; session checkpoints, check
                observations, entries of a memory's history, steps of consolidations and what a
                trainer said with it as a word of any of their texts.

        Returns:
            What was removed from where; zeros for an unknown name.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            Busy, Closed: The store cannot be written; nothing is erased.
        """
        entity = arguments.text(name, "name")
        if not entity.strip():
            message = "name must not be blank"
            raise InvalidArgument(message)
        sweep = arguments.flag(content_sweep, "content_sweep")
        with self._store.writing():
            erased = self._store.erasure.erase(entity, self._now(), content_sweep=sweep)
        for kind, ids in (("episodic", erased.episodes), ("semantic", erased.facts)):
            self._emit(
                "memory_forgotten",
                [{"memory_id": uid, "kind": kind, "entity": entity} for uid in ids],
            )
        return ForgetResult(
            entity=entity,
            episodes_deleted=len(erased.episodes),
            facts_deleted=len(erased.facts),
            episode_ids=erased.episodes,
            fact_ids=erased.facts,
            removed=erased.removed,
            wiped=self.wipe(),
        )

    def forget_evidence(self, evidence_id: str) -> None:
        """Erase a check observation that a `Ledger` keeps, and its history, whatever the scope.

        What cites it has lost a source from then on. Its bytes go as after `forget`.

        Args:
            evidence_id: Its public id, which begins with "evidence-".

        Raises:
            NotFound: No check observation has this id.
            InvalidArgument, InvalidType: The id is refused.
            Busy, Closed: The store cannot be written.
        """
        uid = arguments.label(evidence_id, "evidence_id", _LONGEST)
        with self._store.writing():
            if not self._store.remove_observation(uid, self._now()):
                message = "there is no such check observation"
                raise NotFound(message, "it may have been erased")

    def compact(self) -> None:
        """Rebuild the file so that it takes no more room than its contents.

        Erased text is gone before that (see `forget`); this gives its room back. The index is
        brought up to date. Other connections may be open and read on. Costs time,
        and for as long as it runs memory, in the size of the store.

        Raises:
            Busy: Another connection writes for longer than the busy timeout; nothing changed.
            StoreFull: The disk has no room for the rebuilt pages; nothing changed.
        """
        self._scrub()
        self._store.compact()
        self._maintain()
