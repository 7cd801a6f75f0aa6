"""LangGraph's long-term memory in an engram store: `EngramStore`, a `BaseStore`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    PutOp,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from engram import arguments
from engram.errors import Closed, InvalidArgument, InvalidType
from engram.items import ItemMemory, ItemPut
from engram.items.keeping import LONGEST

if TYPE_CHECKING:
    import os

    from langgraph.store.base import IndexConfig, Op, Result, TTLConfig

    from engram.items import Item as Kept

__all__ = ["EngramStore"]

_MINUTE = 60.0
_WORKERS = 4
_EVERYTHING = "$"


class EngramStore(BaseStore):
    """LangGraph's `BaseStore` over one engram file: `builder.compile(store=EngramStore(path))`.

    Every item is an episode of the store, so `Engram` and the other faces recall what a graph has
    kept, and erase it. Values are found by meaning with the store's own embedder, without
    configuration. `get`, `search`, `put`, `delete`, `list_namespaces` and their async forms are
    LangGraph's own. Reads of a batch see what was there before its writes, which are one
    transaction; of two writes to one key the later counts.

    Args:
        store: A path, ":memory:", or an `ItemMemory`, which stays the caller's to close.
        index: Which fields of a value are searched, as `{"fields": [...]}`; None, or no fields, is
            the whole value, False is nothing unless a `put` names some. Blank texts are not
            searched. "dims" has to be the embedder's, where it is given; "embed" is refused: the
            store has one embedder for every face, which `embedder` and `embedder_model` choose.
        ttl: LangGraph's settings for items that expire. What has expired is never returned,
            whatever `omit_expired` says, and every write erases it, so `sweep_interval_minutes` has
            nothing to set.
        **options: Those of `Engram` for a path: `embedder_model`, `embedder`, `agent_id`, `key`,
            `durability`, `busy_timeout`, `clock` and so on.

    Raises:
        InvalidArgument, InvalidType: An argument is refused.
        CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy, ModelMismatch: The store cannot be
            opened.
    """

    supports_ttl = True
    __slots__ = ("_fields", "_items", "_owned", "_workers", "ttl_config")

    def __init__(
        self,
        store: str | os.PathLike[str] | ItemMemory = ":memory:",
        *,
        index: IndexConfig | bool | None = None,
        ttl: TTLConfig | None = None,
        **options: Any,
    ) -> None:
        self._fields, dims = _indexed(index)
        self.ttl_config = _ttl(ttl)
        self._owned = not isinstance(store, ItemMemory)
        _check_options(options, opens=self._owned)
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="engram-store")
        self._items = store if isinstance(store, ItemMemory) else ItemMemory(store, **options)
        try:
            if dims is not None:
                self._items.check_dim(dims)
        except BaseException:
            self.close()
            raise

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what LangGraph's operations say; see the class.

        Args:
            ops: Operations.

        Returns:
            For each what it read; None for a write.

        Raises:
            InvalidNamespaceError: LangGraph does not allow a label.
            InvalidArgument, InvalidType: An operation is refused; nothing is written.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed, CorruptStore: As for `ItemMemory`.
        """
        listed = _listed(ops)
        for op in listed:
            if not isinstance(op, (GetOp, SearchOp, PutOp, ListNamespacesOp)):
                message = f"ops hold a {type(op).__name__}, which is no operation that is known"
                raise InvalidArgument(message)
            validate_op_namespace(op)
        puts = {(tuple(op.namespace), op.key): op for op in listed if isinstance(op, PutOp)}
        kept = [self._put(op) for op in puts.values() if op.value is not None]
        results = [self._read(op) for op in listed]
        gone = [name for name, op in puts.items() if op.value is None]
        if puts:
            self._items.write(kept, gone)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, on a thread.

        Once it has begun it is finished, even where whoever awaits it is cancelled.

        Args:
            ops: Operations.

        Raises:
            InvalidNamespaceError, InvalidArgument, InvalidType, ModelMissing, ModelMismatch, Busy,
                StoreFull, Closed, CorruptStore: As for `batch`.
        """
        listed = _listed(ops)
        loop, context = asyncio.get_running_loop(), copy_context()
        try:
            done = loop.run_in_executor(self._workers, context.run, self.batch, listed)
        except RuntimeError as error:
            # Threads that were told to end take nothing more.
            message = "this EngramStore is closed"
            raise Closed(message, "open a new one") from error
        return await done

    def sweep_ttl(self) -> int:
        """Erase what has expired, and return how many items that were.

        Raises:
            Busy, StoreFull, Closed: The store cannot be written; nothing is erased.
        """
        return self._items.sweep()

    def close(self) -> None:
        """Wait for what runs, and close the store if this opened it; twice is harmless."""
        self._workers.shutdown()
        if self._owned:
            self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def _put(self, op: PutOp) -> ItemPut:
        if not isinstance(op.value, Mapping):
            message = f"value must be a mapping, not {type(op.value).__name__}"
            raise InvalidType(message)
        # Before anything is taken out of it: what JSON has no form for would fail there.
        arguments.json_object(op.value, "value")
        ttl = None if op.ttl is None else _minutes(op.ttl, "ttl") * _MINUTE
        return ItemPut(tuple(op.namespace), op.key, op.value, self._texts(op), ttl)

    def _texts(self, op: PutOp) -> tuple[str, ...]:
        """Return what of a value is searched, each text once; nothing is found by a blank one."""
        if op.index is False:
            return ()
        paths = self._fields if op.index is None else _paths(op.index, "index")
        found = (text for path in paths for text in get_text_at_path(op.value, path))
        return tuple(dict.fromkeys(text for text in found if text.strip()))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._items.get(tuple(op.namespace), op.key, prolong=op.refresh_ttl)
            return None if found is None else Item(**_members(found))
        if isinstance(op, SearchOp):
            results = self._items.search(
                tuple(op.namespace_prefix),
                query=op.query,
                filter=op.filter,
                limit=op.limit,
                offset=op.offset,
                prolong=op.refresh_ttl,
            )
            return [SearchItem(**_members(one), score=one.score) for one in results]
        if isinstance(op, ListNamespacesOp):
            return self._items.namespaces_that_match(
                [(one.match_type, tuple(one.path)) for one in op.match_conditions or ()],
                max_depth=op.max_depth,
                limit=op.limit,
                offset=op.offset,
            )
        return None


def _members(one: Kept) -> dict[str, Any]:
    return {
        "namespace": one.namespace,
        "key": one.key,
        "value": one.value,
        "created_at": one.created_at,
        "updated_at": one.updated_at,
    }


def _check_options(options: Mapping[str, object], *, opens: bool) -> None:
    if options and not opens:
        message = "options were given, and a store that is open"
        raise InvalidArgument(message, "pass them where it is opened")
    if unknown := options.keys() - (signature(ItemMemory).parameters.keys() - {"path"}):
        message = f"unexpected keyword argument {min(unknown)!r}"
        raise InvalidType(message)


def _listed(ops: object) -> list[Op]:
    if not isinstance(ops, Iterable):
        message = f"ops must be a list of operations, not {type(ops).__name__}"
        raise InvalidType(message)
    return list(ops)


def _indexed(index: IndexConfig | bool | None) -> tuple[list[str | list[str]], int | None]:
    """Return the paths that are searched, and the dimension that is asked for.

    Raises:
        InvalidArgument, InvalidType: The setting is refused.
    """
    if index is None or index is True:
        return [_EVERYTHING], None
    if index is False:
        return [], None
    if not isinstance(index, Mapping):
        message = f"index must be a mapping, a bool or None, not {type(index).__name__}"
        raise InvalidType(message)
    if unknown := index.keys() - {"dims", "fields", "embed"}:
        message = f"index has {len(unknown)} settings that are none of dims, embed, fields"
        raise InvalidArgument(message)
    if index.get("embed") is not None:
        message = "index names an embedding of its own"
        raise InvalidArgument(
            message, "pass embedder= or embedder_model=, which every face of the store uses"
        )
    dims = index.get("dims")
    fields = index.get("fields")
    return (
        _paths(fields, "index['fields']") or [_EVERYTHING],
        None if dims is None else arguments.integer(dims, "index['dims']", 1, 2**31),
    )


def _paths(fields: object, argument: str) -> list[str | list[str]]:
    named = arguments.names(fields, argument)
    return [path if path == _EVERYTHING else tokenize_path(path) for path in named]


def _minutes(value: object, argument: str) -> float:
    return arguments.number(value, argument, 0.0, LONGEST / _MINUTE)


def _ttl(given: TTLConfig | None) -> TTLConfig:
    """Return LangGraph's settings for items that expire, checked.

    Raises:
        InvalidArgument, InvalidType: One of them is refused.
    """
    config: TTLConfig = {"refresh_on_read": True, "omit_expired": True, "default_ttl": None}
    known = {*config, "sweep_interval_minutes"}
    if given is None:
        return config
    if not isinstance(given, Mapping):
        message = f"ttl must be a mapping or None, not {type(given).__name__}"
        raise InvalidType(message)
    if not given.keys() <= known:
        message = f"ttl must have no settings but {', '.join(sorted(known))}"
        raise InvalidArgument(message)
    if "refresh_on_read" in given:
        config["refresh_on_read"] = arguments.flag(given["refresh_on_read"], "refresh_on_read")
    if given.get("default_ttl") is not None:
        config["default_ttl"] = _minutes(given["default_ttl"], "default_ttl")
    return config
