"""Where segments are kept: files in a folder beside the store, or nowhere.

The folder is derived from the store: delete it and nothing is lost. One manifest names the segments
that belong together, the change sequence they cover and what was forgotten of them since. Which
manifest is the valid one is said in the store itself, by a random name that is written in a
transaction: a store that was copied, restored or moved names no manifest that is not its own.

A segment is first written under the name of its process, and gets its own when a manifest names it,
so a process that is killed leaves nothing that another could take for a part of the index.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engram.index import segment as segments
from engram.index.mapped import ArraysWriter, Damaged, MappedArrays
from engram.index.proximity import ProximityGraph
from engram.index.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from engram.models import StoredModel

_SEGMENT: Final = ".segment"
_MANIFEST: Final = ".manifest"
_GRAPH: Final = ".graph"
_LOCK: Final = "lock"


class KeptGraph(NamedTuple):
    """A graph in a file.

    Attributes:
        identity: What its file is called.
        watermark: The key up to which it knows the episodes.
        covered: The change sequence it was made at.
    """

    identity: str
    watermark: int
    covered: int


class Contents(NamedTuple):
    """What a manifest says.

    Attributes:
        covered: The change sequence up to which forgotten episodes are marked.
        after: The key of the last episode covered.
        segments: The segments, in order.
        graphs: The graph of each partition that has one, by agent.
    """

    covered: int
    after: int
    segments: list[Segment]
    graphs: dict[int, KeptGraph]


class Shelf:
    """The segment files of a store.

    Not thread-safe, but for `room` and `keep`, which only make new files.

    Args:
        folder: Where they are; None keeps every segment in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._given_up = False
        self._distrusted: str | None = None
        self._named: set[Path] = set()
        self.based_on: str | None = None
        """The manifest that the store named when this instance last read or wrote one."""

    @property
    def keeps(self) -> bool:
        """Whether there is a folder to keep segments in."""
        return self._folder is not None and not self._given_up

    def distrust(self) -> None:
        """Read the present manifest no more: a file is not what it was."""
        self._distrusted = self.based_on

    def give_up(self) -> None:
        """Keep segments in memory from now on: there is no room, or no right to write."""
        self._given_up = True

    def has(self, segment: Segment) -> bool:
        """Say whether the manifest names a segment."""
        return segment.arrays.path in self._named

    def has_graph(self, identity: str) -> bool:
        """Say whether the manifest names a graph."""
        return self._folder is not None and self._folder / f"{identity}{_GRAPH}" in self._named

    def open(self, name: str | None, model: StoredModel) -> Contents | None:
        """Return what a manifest says.

        Args:
            name: The manifest that the store names.
            model: The store's model.

        Raises:
            Damaged: A file is missing, or not what was written.
        """
        self.based_on = name
        if name is None or self._folder is None or name == self._distrusted:
            return None
        manifest = MappedArrays(self._folder / f"{name}{_MANIFEST}", name)
        facts = manifest.facts
        if facts["model"] != [model.fingerprint, model.dim]:
            return None
        found = []
        for place, identity in enumerate(facts["segments"]):
            arrays = MappedArrays(self._folder / f"{identity}{_SEGMENT}", identity)
            live = f"live.{place}"
            found.append(Segment(arrays, manifest.whole(live) if live in manifest else None))
        graphs = {agent: KeptGraph(*kept) for agent, *kept in facts["graphs"]}
        contents = Contents(facts["covered"], facts["after"], found, graphs)
        self._named = self._files(contents)
        return contents

    def _files(self, contents: Contents) -> set[Path]:
        """Return the files of segments and graphs."""
        assert self._folder is not None  # noqa: S101 - asked only where there is one
        graphs = {self._folder / f"{identity}{_GRAPH}" for identity, *_ in contents.graphs.values()}
        return graphs.union(_paths(contents.segments))

    def room(self) -> tuple[Path | None, str]:
        """Return the file and the identity for a new segment; None when it stays in memory."""
        identity = secrets.token_hex(16)
        if self._folder is None or self._given_up:
            return None, identity
        return self._folder / f"{identity}.{os.getpid()}", identity

    def keep(self, segment: Segment) -> Segment:
        """Put a segment of the store's into a file, if there is room for one, and return it."""
        path, identity = self.room()
        if path is None:
            return segment
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            return segments.write(segment, path, identity)
        except (OSError, Damaged):
            self.give_up()
            return segment

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the folder against other processes; yield whether that was possible."""
        if self._folder is None:
            yield False
            return
        try:
            handle = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield False
            return
        try:
            yield _taken(handle)
        finally:
            os.close(handle)

    def graph(self, identity: str) -> ProximityGraph | None:
        """Return a kept graph, None when its file is gone or not what was written."""
        if self._folder is None:
            return None
        return ProximityGraph.load(self._folder / f"{identity}{_GRAPH}", identity.encode())

    def keep_graph(self, graph: ProximityGraph) -> str | None:
        """Put a graph into a file and return its identity, None when there is no room."""
        identity = secrets.token_hex(16)
        if self._folder is None or self._given_up:
            return None
        try:
            graph.save(self._folder / f"{identity}{_GRAPH}", identity.encode())
        except OSError:
            return None
        return identity

    def write_manifest(
        self,
        contents: Contents,
        model: StoredModel,
        live: Sequence[NDArray[np.bool_] | None],
    ) -> str | None:
        """Write a manifest and return its name, which the store has to be told; None if it failed.

        Args:
            contents: What it says.
            model: The store's model.
            live: Which episodes of each segment are still there.
        """
        if self._folder is None or self._given_up:
            return None
        name = secrets.token_hex(16)
        arrays = {f"live.{place}": mask for place, mask in enumerate(live) if mask is not None}
        identities = []
        try:
            for one in contents.segments:
                path = one.arrays.path
                if path is None:
                    return None
                identity = path.name.partition(".")[0]
                final = self._folder / f"{identity}{_SEGMENT}"
                if path != final:
                    path.rename(final)
                    one.arrays.path = final
                elif not final.exists():
                    return None
                identities.append(identity)
            facts: dict[str, Any] = {
                "covered": contents.covered,
                "after": contents.after,
                "model": [model.fingerprint, model.dim],
                "segments": identities,
                "graphs": [(agent, *kept) for agent, kept in contents.graphs.items()],
            }
            layout = {key: (mask.dtype, mask.shape) for key, mask in arrays.items()}
            manifest = self._folder / f"{name}{_MANIFEST}"
            with ArraysWriter(manifest, name, facts, layout) as file:
                for key, mask in arrays.items():
                    file[key][...] = mask
                file.finish()
        except OSError:
            return None
        return name

    def settle(
        self, name: str, contents: Contents, newer: Sequence[Segment], *, everything: bool
    ) -> bool:
        """Take away every file that a manifest, which the store names now, has no use for.

        Args:
            name: The manifest.
            contents: What it says.
            newer: Segments that were made since; their files stay.
            everything: Take what another process is about to name as well: it may hold what was
                erased, and that process finds out by the manifest that it has to begin anew.

        Returns:
            Whether that was possible.
        """
        assert self._folder is not None  # noqa: S101 - a manifest was written into it
        self.based_on = name
        self._named = self._files(contents)
        kept = {self._folder / f"{name}{_MANIFEST}", self._folder / _LOCK}
        kept = kept.union(self._named, _paths(newer))
        try:
            for file in set(self._folder.iterdir()) - kept:
                if file.is_file() and (everything or not self._of_another(file)):
                    file.unlink(missing_ok=True)
        except OSError:
            # No right to, or another process takes all of them away.
            return False
        return True

    def discard(self, found: Sequence[Segment]) -> None:
        """Take away the files of segments that no manifest names."""
        for path in _paths(found) - self._named:
            path.unlink(missing_ok=True)

    @staticmethod
    def _of_another(file: Path) -> bool:
        """Say whether another process that lives may still give a file its name."""
        owner = file.name.split(".")[1] if "." in file.name else ""
        if not owner.isdigit() or int(owner) == os.getpid():
            return False
        try:
            os.kill(int(owner), 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True

    def size(self) -> int:
        """Return how many bytes its files have."""
        total = 0
        with suppress(OSError):
            for file in () if self._folder is None else self._folder.iterdir():
                # Another process may take one away meanwhile.
                with suppress(FileNotFoundError):
                    total += file.stat().st_size
        return total

    def clear(self) -> bool:
        """Take every file away; return whether that was possible."""
        self._named = set()
        if self._folder is None:
            return True
        with suppress(OSError):
            shutil.rmtree(self._folder)
        return not self._folder.exists()


def _paths(found: Sequence[Segment]) -> set[Path]:
    return {one.arrays.path for one in found if one.arrays.path is not None}


def _taken(handle: int) -> bool:
    """Take the lock of an open file, if nobody has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
