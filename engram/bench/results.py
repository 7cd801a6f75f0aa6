"""The results of a run over sizes, kept so that it can go on where it stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from engram.bench.machine import machine, versions
from engram.bench.point import ScalePoint  # noqa: TC001 - msgspec decodes by it
from engram.cli.failures import BadFileError, ExistingFileError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Results", "load", "new", "save"]


class Results(msgspec.Struct):
    """What a run has measured.

    Attributes:
        benchmark: "scale".
        machine: What it ran on.
        versions: Of engram, Python and the packages the figures depend on.
        settings: What was asked for; results of other settings are others.
        points: One for each size, the smallest first.
    """

    benchmark: str
    machine: dict[str, object]
    versions: dict[str, str]
    settings: dict[str, object]
    points: list[ScalePoint]

    def add(self, point: ScalePoint) -> None:
        """Add what was measured at a size."""
        self.points.append(point)
        self.points.sort(key=lambda one: one.n_episodes)

    def sizes(self) -> set[int]:
        """Return the sizes that are done."""
        return {point.n_episodes for point in self.points}


def new(settings: dict[str, object]) -> Results:
    """Return the results of a run that has measured nothing yet."""
    return Results("scale", machine(), versions(), settings, [])


def load(file: Path, settings: dict[str, object]) -> Results:
    """Return the results in a file, empty ones when there is none.

    Raises:
        BadFileError: The file holds something else.
        ExistingFileError: They were measured with other settings or versions.
    """
    fresh = new(settings)
    if not file.exists():
        return fresh
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Results)
    except msgspec.DecodeError:
        message = f"{file} holds no results of engram-bench scale"
        raise BadFileError(message) from None
    if (found.settings, found.versions) != (fresh.settings, fresh.versions):
        message = f"{file} holds results of other settings or versions"
        raise ExistingFileError(message, "give another --out")
    return found


def save(file: Path, results: Results) -> None:
    """Replace the file of results; it is the old or the new one, whatever happens."""
    written = file.with_name(f".{file.name}.part")
    written.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    written.replace(file)
