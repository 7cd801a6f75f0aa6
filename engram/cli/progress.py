"""A bar on stderr, while somebody watches it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engram.cli.output import on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[[int, int], None]]:
    """Yield what shows the progress: called with how much is done, and of how much.

    Args:
        what: What is being done, such as "Remembering".
        total: Of how much, when that is known before the first call.
    """
    if not on_terminal():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, known: bar.update(task, completed=done, total=known)
