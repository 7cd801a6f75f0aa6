"""Named arrays in one file, mapped into memory and never believed before they are checked.

A file is derived from the store and can be deleted at any time. Its head names the arrays and an
identity; every page of 4,096 bytes has a checksum. Opening reads the head and the checksums only;
a page is compared with its own before something in it is used for the first time. What does not fit
raises `Damaged`, and the caller builds the arrays again from the store.

Layout, little-endian: a head of whole pages (magic, format, lengths, a digest over the rest of the
head, then JSON), the arrays, each from a page boundary on, and a checksum for each page of them.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import weakref
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
import numpy as np

from engram._native import check_pages, check_rows, page_sums, read_rows
from engram.arrays import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

PAGE: Final = 4096
_MAGIC: Final = b"engramix"
_FORMAT: Final = 2
"""2: the words of segments are stems."""

# Magic, format, bytes of JSON, pages of the head, pages of arrays, digest of head, digest of sums.
_HEAD: Final = struct.Struct("<8sIIII16s16s")
_SUM: Final = np.dtype("<u8")
_SLICE_PAGES: Final = 4096
"""Pages summed between two chances for another thread."""


class Damaged(Exception):  # noqa: N818 - names the state of the file; it never leaves the index
    """A file of arrays is not what was written."""


class _Place(msgspec.Struct, array_like=True):
    """Where an array lies."""

    dtype: str
    shape: list[int]
    page: int


class _Head(msgspec.Struct):
    """What the JSON of the head says."""

    identity: str
    facts: dict[str, Any]
    arrays: dict[str, _Place]


def _pages(size: int) -> int:
    return -(-size // PAGE)


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.digest()


class ArraysWriter:
    """Writes a file of arrays under a temporary name, in place, and gives it its name at the end.

    Used as a context manager; without `finish` nothing remains.

    Args:
        path: The name it gets.
        identity: What a reader must ask for.
        facts: Small values to keep with the arrays.
        layout: The type and shape of each array.

    Raises:
        OSError: There is no room, or no right to write.
    """

    def __init__(
        self,
        path: Path,
        identity: str,
        facts: Mapping[str, Any],
        layout: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]],
    ) -> None:
        places: dict[str, _Place] = {}
        page = 0
        for name, (dtype, shape) in layout.items():
            little = dtype.newbyteorder("<")
            places[name] = _Place(little.str, list(shape), page)
            page += _pages(little.itemsize * int(np.prod(shape, dtype=np.int64)))
        self._json = msgspec.json.encode(_Head(identity, dict(facts), places))
        self._head_pages = _pages(_HEAD.size + len(self._json))
        self._data_pages = page
        self._path = path
        self._temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
        size = (self._head_pages + page) * PAGE + page * _SUM.itemsize
        handle = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(handle, size)
            if hasattr(os, "posix_fallocate"):
                # Room is taken now: a full disk must be an error, not a fault in the mapping.
                os.posix_fallocate(handle, 0, size)
            self._map = mmap.mmap(handle, size)
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
        self._arrays = {
            name: _view(self._map, place, self._head_pages) for name, place in places.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._arrays.clear()
        self._temporary.unlink(missing_ok=True)
        # Somebody may still hold a view; the mapping then goes with it.
        with suppress(BufferError):
            self._map.close()

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array to be filled."""
        return self._arrays[name]

    def finish(self) -> None:
        """Write the checksums and the head, and take the name."""
        start, size = self._head_pages * PAGE, self._data_pages * PAGE
        data = np.frombuffer(self._map, np.uint8, size, start)
        sums = np.frombuffer(self._map, _SUM, self._data_pages, start + size)
        for first in range(0, self._data_pages, _SLICE_PAGES):
            last = min(first + _SLICE_PAGES, self._data_pages)
            sums[first:last] = page_sums(data[first * PAGE : last * PAGE])
        fixed = (_MAGIC, _FORMAT, len(self._json), self._head_pages, self._data_pages)
        of_sums = _digest(sums.tobytes())
        head = _HEAD.pack(*fixed, b"", of_sums)
        head = _HEAD.pack(*fixed, _digest(head, self._json), of_sums)
        self._map[: _HEAD.size] = head
        self._map[_HEAD.size : _HEAD.size + len(self._json)] = self._json
        self._temporary.replace(self._path)


def _view(source: mmap.mmap, place: _Place, head_pages: int) -> NDArray[Any]:
    dtype = np.dtype(place.dtype)
    count = int(np.prod(place.shape, dtype=np.int64))
    offset = (head_pages + place.page) * PAGE
    # An empty array at the end of a file lies at no valid offset.
    flat = np.frombuffer(source, dtype, count, offset) if count else np.empty(0, dtype)
    return flat.reshape(place.shape)


class MappedArrays:
    """An open file of arrays.

    The arrays are views of the mapping and read-only; it lives as long as any of them.

    Args:
        path: The file.
        identity: What it must have been written with.

    Raises:
        Damaged: It is missing, cut short, another file, or its head was changed.
    """

    def __init__(self, path: Path, identity: str) -> None:
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            # It goes with this object, which owns it.
            weakref.finalize(self, os.close, self._handle)
            self._map = mmap.mmap(self._handle, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            raise Damaged from None
        self.path = path
        self._head = self._read_head(identity)
        self._sums = np.frombuffer(self._map, _SUM, self._data_pages, self._sums_at)
        self._data = np.frombuffer(self._map, np.uint8)[: self._sums_at]
        self._checked = np.zeros(self._head_pages + self._data_pages, np.uint8)
        self._checked[: self._head_pages] = 1
        # Numbered like the pages of the file, so that offsets need no translation.
        self._sums = np.concatenate((np.zeros(self._head_pages, np.uint64), self._sums))
        self.facts = self._head.facts
        places = self._head.arrays
        self._arrays = {name: _view(self._map, at, self._head_pages) for name, at in places.items()}
        self._rows = {
            name: ((self._head_pages + at.page) * PAGE, array[:1].nbytes)
            for (name, at), array in zip(places.items(), self._arrays.values(), strict=True)
        }
        self._whole: set[str] = set()

    def _read_head(self, identity: str) -> _Head:
        size = len(self._map)
        if size < PAGE or sys.byteorder != "little":
            raise Damaged
        magic, format_, length, head, data, digest, of_sums = _HEAD.unpack_from(self._map)
        self._head_pages, self._data_pages = head, data
        self._sums_at = (head + data) * PAGE
        if (magic, format_) != (_MAGIC, _FORMAT) or head != _pages(_HEAD.size + length):
            raise Damaged
        if size != self._sums_at + data * _SUM.itemsize:
            raise Damaged
        raw = self._map[_HEAD.size : _HEAD.size + length]
        blank = _HEAD.pack(magic, format_, length, head, data, b"", of_sums)
        padding = self._map[_HEAD.size + length : head * PAGE]
        if digest != _digest(blank, raw) or any(padding):
            raise Damaged
        if of_sums != _digest(memoryview(self._map)[self._sums_at :]):
            raise Damaged
        # The digest vouches for what follows.
        found = msgspec.json.decode(raw, type=_Head)
        if found.identity != identity:
            raise Damaged
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._arrays)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, unchecked: call `check` or `check_rows` before its elements are used."""
        return self._arrays[name]

    def whole(self, name: str) -> NDArray[Any]:
        """Return an array, all of it checked.

        Raises:
            Damaged: It is not what was written.
        """
        array = self._arrays[name]
        if name not in self._whole:
            self.check(name, 0, len(array))
            self._whole.add(name)
        return array

    def check(self, name: str, first: int, last: int) -> None:
        """Check the elements, or rows, `first` to `last`, exclusive, of an array.

        Raises:
            Damaged: They are not what was written.
        """
        if first >= last or name in self._whole:
            return
        offset, each = self._rows[name]
        low, high = (offset + first * each) // PAGE, _pages(offset + last * each)
        if not check_pages(self._data, self._sums, self._checked, low, high):
            raise Damaged

    def check_rows(self, name: str, rows: NDArray[np.uint32]) -> None:
        """Check some rows of an array.

        Raises:
            Damaged: They are not what was written.
        """
        offset, each = self._rows[name]
        if not check_rows(self._data, self._sums, self._checked, offset, each, rows):
            raise Damaged

    def read(self, name: str, rows: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return copies of some rows of bytes, checked, and keep nothing of them in memory.

        Raises:
            Damaged: They are not what was written.
        """
        offset, each = self._rows[name]
        begins = offset + rows.astype(np.int64) * each
        pages = np.concatenate((begins // PAGE, (begins + each - 1) // PAGE))
        pages = distinct(pages[self._checked[pages] == 0])
        try:
            if len(pages):
                found = read_rows(self._handle, 0, PAGE, pages.astype(np.uint32)).reshape(-1)
                if (page_sums(found) != self._sums[pages]).any():
                    raise Damaged
                self._checked[pages] = 1
            return read_rows(self._handle, offset, each, rows)
        except OSError:
            raise Damaged from None

    def release(self, name: str) -> None:
        """Let go of the memory that the pages of an array take; they come back when needed."""
        size = _pages(self._arrays[name].nbytes) * PAGE
        if size and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, self._rows[name][0], size)


class HeldArrays:
    """Arrays in memory, behind the door of `MappedArrays`; there is nothing to check.

    Args:
        facts: Small values kept with the arrays.
        arrays: The arrays by name.
    """

    path = None

    def __init__(self, facts: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.facts = dict(facts)
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._arrays)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array."""
        return self._arrays[name]

    def whole(self, name: str) -> NDArray[Any]:
        """Return an array."""
        return self._arrays[name]

    def check(self, name: str, first: int, last: int) -> None:
        """Accept any elements."""

    def check_rows(self, name: str, rows: NDArray[np.uint32]) -> None:
        """Accept any rows."""

    def read(self, name: str, rows: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return copies of some rows of bytes."""
        found: NDArray[np.uint8] = self._arrays[name][rows]
        return found

    def release(self, name: str) -> None:
        """Keep the array: there is no other copy."""


Arrays = MappedArrays | HeldArrays
"""Where a segment's arrays are."""
