"""An hnswlib graph over one agent's vectors, which cannot fail the one who asks.

hnswlib raises when a search finds fewer rows than were asked for, loads files with flipped bytes
in silence and can crash on them, and has no binary packages. Here a search returns what there is, a
file is compared with its checksums before hnswlib sees any of it, and without hnswlib `available`
says so. A graph is never changed: newer rows are the caller's to scan, forgotten ones its to skip.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import threading
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from engram._native import page_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["ProximityGraph", "available"]

# The parameters that were measured: more links or a wider construction cost more than they find.
_LINKS: Final = 16
_EF_CONSTRUCTION: Final = 100
_SEED: Final = 100

# Rows between two looks at `stop`: some tens of milliseconds.
_STEP: Final = 128

_PAGE: Final = 4096
_PREFIX: Final = struct.Struct("<8sIIQ")  # magic, format, length of the description, sum of sums
_SUM: Final = struct.Struct("<Q")  # of the header's page with zeros here, at the end of the page
_MAGIC: Final = b"engrHNSW"
_FORMAT: Final = 1
_IDENTITY_LIMIT: Final = 512
_ARRAYS: Final = {
    "label_lookup_external": np.uint64,
    "label_lookup_internal": np.uint32,
    "element_levels": np.int32,
    "data_level0": np.int8,
    "link_lists": np.int8,
}


def available() -> bool:
    """Whether hnswlib is installed and loads; without it, scans answer alone."""
    try:
        importlib.import_module("hnswlib")
    except ImportError:
        return False
    return True


class ProximityGraph:
    """A graph of near neighbours by dot product.

    Made by `build` or `load`. Threads may search it at the same time.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        # hnswlib keeps ef in the index: held from setting it to the end of the search that needs
        # it, so that one thread's answer does not depend on what another one asks for.
        self._searching = threading.Lock()

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return int(self._index.dim)

    def __len__(self) -> int:
        return int(self._index.element_count)

    @classmethod
    def build(
        cls,
        dim: int,
        labels: NDArray[np.int64],
        batches: Iterator[NDArray[np.float32]],
        *,
        stop: Callable[[], bool],
    ) -> ProximityGraph | None:
        """Insert vectors one after the other, which makes the same graph each time.

        Takes O(m·log m) time in one thread, about 0.2 ms a row at 100,000 rows of 384 numbers, with
        the GIL released but for moments.

        Args:
            dim: The length of a vector.
            labels: int64 [m], distinct and not negative; what `nearest` returns for each vector.
            batches: The vectors in the order of `labels`, float32 [*, dim] at a time.
            stop: Asked often; when it returns True the work is given up.

        Returns:
            The graph, or None if it was given up.

        Raises:
            ValueError: There are more or fewer vectors than labels.
        """
        index = importlib.import_module("hnswlib").Index(space="ip", dim=dim)
        index.init_index(
            max_elements=max(1, len(labels)),
            M=_LINKS,
            ef_construction=_EF_CONSTRUCTION,
            random_seed=_SEED,
        )
        done = 0
        for batch in batches:
            for first in range(0, len(batch), _STEP):
                if stop():
                    return None
                rows = batch[first : first + _STEP]
                if done + len(rows) > len(labels):
                    break
                index.add_items(rows, labels[done : done + len(rows)], num_threads=1)
                done += len(rows)
        if done != len(labels) or len(index.get_ids_list()) != done:
            message = f"batches must hold one vector for each of {len(labels)} distinct labels"
            raise ValueError(message)
        return cls(index)

    def nearest(self, query: NDArray[np.float32], limit: int, ef: int) -> NDArray[np.int64]:
        """Return the labels of the vectors with the largest dot products that the search finds.

        Fewer than `limit` come back where there are fewer, and where the graph of many equal
        vectors has fallen into parts: a caller that needs all of them scans then.

        Args:
            query: float32 [dim], finite.
            limit: How many labels to return at most.
            ef: How many rows the search keeps in sight; more find better ones. Raised to `limit`.

        Returns:
            int64 [r], the nearest first.
        """
        most = min(limit, len(self))
        ef = max(ef, most)
        if most < 1:
            return np.empty(0, np.int64)
        found = self._search(query, most, ef)
        if found is not None:
            return found
        # A search gives up before it holds ef rows only when it has seen all it can reach, so a
        # larger ef finds no more: look for the number that there is.
        found = np.empty(0, np.int64)
        missed = most
        while missed - len(found) > 1:
            middle = (len(found) + missed) // 2
            part = self._search(query, middle, ef)
            if part is None:
                missed = middle
            else:
                found = part
        return found

    def _search(self, query: NDArray[np.float32], k: int, ef: int) -> NDArray[np.int64] | None:
        with self._searching:
            self._index.set_ef(ef)
            try:
                labels, _ = self._index.knn_query(query, k=k, num_threads=1)
            except RuntimeError:  # it found fewer than k
                return None
        found: NDArray[np.int64] = labels[0].astype(np.int64)
        return found

    def save(self, path: Path, identity: bytes) -> None:
        """Write the graph to a file, which appears whole or not at all.

        The file holds the vectors in the clear. Takes O(m) time and, meanwhile, a second copy of
        the graph, which hnswlib makes while it holds the GIL.

        Args:
            path: Where to; a file that is there is replaced.
            identity: What the graph was made from; at most 512 bytes.

        Raises:
            ValueError: `identity` is too long.
            OSError: The file cannot be written.
        """
        if len(identity) > _IDENTITY_LIMIT:
            message = f"identity must have at most {_IDENTITY_LIMIT} bytes, not {len(identity)}"
            raise ValueError(message)
        (state,) = self._index.__getstate__()
        parts = [np.ascontiguousarray(state.pop(name), kind) for name, kind in _ARRAYS.items()]
        description = {
            "identity": identity.hex(),
            "lengths": [len(part) for part in parts],
            "state": state,
        }
        temporary = path.with_name(path.name + "-part")
        try:
            with open(temporary, "wb", opener=_privately) as file:
                _write(file, json.dumps(description).encode(), parts)
            # Not flushed to the disk before: what a power failure leaves fails its checksums.
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: Path, identity: bytes) -> ProximityGraph | None:
        """Read a graph that `save` wrote, if it is whole and was made from the same.

        Every byte is compared with its checksum before hnswlib reads one. Takes O(m) time.

        Args:
            path: The file.
            identity: What the graph has to be made from.

        Returns:
            The graph, or None if there is no such file or anything about it is not as it should be.
        """
        try:
            data = np.memmap(path, np.uint8, mode="r")
        except (OSError, ValueError):  # not there; empty
            return None
        state = _verified(data, identity)
        if state is None:
            return None
        try:
            kind = importlib.import_module("hnswlib").Index
            index = kind.__new__(kind)  # setting a state constructs it, as unpickling does
            index.__setstate__((state,))
        except (ImportError, RuntimeError):  # another version of hnswlib wrote it
            return None
        return cls(index)


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _write(file: BinaryIO, description: bytes, parts: list[NDArray[Any]]) -> None:
    """Write a header of one page, and each part from the beginning of a page."""
    file.seek(_PAGE)
    sums = []
    for part in parts:
        content = part.view(np.uint8)
        whole = len(content) // _PAGE * _PAGE
        rest = _padded(content[whole:])
        for pages in (content[:whole], rest):
            sums.append(page_sums(pages))
            file.write(pages.data)
    header = np.zeros(_PAGE, np.uint8)
    prefix = _PREFIX.pack(_MAGIC, _FORMAT, len(description), _sum_of_sums(np.concatenate(sums)))
    text = np.frombuffer(prefix + description, np.uint8)
    header[: len(text)] = text
    header[-_SUM.size :] = np.frombuffer(_SUM.pack(int(page_sums(header)[0])), np.uint8)
    file.seek(0)
    file.write(header.data)


def _verified(data: NDArray[np.uint8], identity: bytes) -> dict[str, Any] | None:
    """The state that a file's bytes hold, or None if any of them is wrong."""
    if len(data) < _PAGE or len(data) % _PAGE:
        return None
    header = np.array(data[:_PAGE])
    (expected,) = _SUM.unpack(header[-_SUM.size :].tobytes())
    header[-_SUM.size :] = 0
    magic, form, length, total = _PREFIX.unpack(header[: _PREFIX.size].tobytes())
    if page_sums(header)[0] != expected or (magic, form) != (_MAGIC, _FORMAT):
        return None
    description = json.loads(header[_PREFIX.size : _PREFIX.size + length].tobytes())
    if description["identity"] != identity.hex():
        return None
    body = data[_PAGE:]
    if _sum_of_sums(page_sums(body)) != total:
        return None
    state: dict[str, Any] = description["state"]
    for (name, kind), count in zip(_ARRAYS.items(), description["lengths"], strict=True):
        size = count * np.dtype(kind).itemsize
        state[name] = body[:size].view(kind)
        body = body[-(-size // _PAGE) * _PAGE :]
    return None if len(body) else state


def _sum_of_sums(sums: NDArray[np.uint64]) -> int:
    """One checksum for all: those of the pages that the sums fill, until they fill one page."""
    while True:
        sums = page_sums(_padded(sums.view(np.uint8)))
        if len(sums) <= 1:
            return int(sums[0]) if len(sums) else 0


def _padded(content: NDArray[np.uint8]) -> NDArray[np.uint8]:
    padded = np.zeros(-(-len(content) // _PAGE) * _PAGE, np.uint8)
    padded[: len(content)] = content
    return padded
