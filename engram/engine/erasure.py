"""Erasing what concerns a person, and shrinking the file."""

from __future__ import annotations

from engram import arguments
from engram.engine.session import Session
from engram.errors import InvalidArgument, NotFound
from engram.models import ForgetResult

_LONGEST = 200


class Erasure(Session):
    """The calls that erase."""

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
                text, metadata or paths, or as a tag; facts with it in subject, object or project;
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
