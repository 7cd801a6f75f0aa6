"""`engram ingest`: remember a whole file of episodes."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING

import click

from engram.cli.failures import Interrupted
from engram.cli.files import open_or_make
from engram.cli.keys import key_option
from engram.cli.options import (
    agent_option,
    json_option,
    model_option,
    path_argument,
)
from engram.cli.output import counted, line, print_document
from engram.cli.progress import progress_bar
from engram.errors import EngramError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from engram import Engram, ObserveInput
    from engram.cli.transcripts import Episodes

_BATCH = 256
"""Episodes per transaction."""


@click.command()
@path_argument
@click.argument("file")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(("auto", "jsonl", "locomo")),
    default="auto",
    show_default=True,
    help="auto: a file that begins with [ is locomo.",
)
@agent_option
@model_option
@key_option
@json_option
def ingest(
    path: str,
    file: str,
    *,
    file_format: str,
    agent_id: str | None,
    model: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Remember every episode of FILE in the store PATH, which is made when missing.

    FILE is JSON lines with the fields content, actors, tags, salience, emotional_valence,
    timestamp, provenance and quarantined, or a JSON array of conversations in the format of LoCoMo,
    where every conversation becomes an agent unless --agent-id is given. "-" reads standard input.

    The whole file is checked before anything is written. Then every 256 episodes are one
    transaction; Ctrl-C ends after the one it meets. Running it again remembers everything again.
    """
    started = time.monotonic()
    with _opened(file) as stream:
        episodes = _read(stream, "standard input" if file == "-" else file, file_format)
        # Where it came from makes it a memory of the folders above; a pipe comes from nowhere.
        source = None if file == "-" else str(Path(file).absolute())
        written = _write(path, episodes, agent_id, model, key, source)
    seconds = time.monotonic() - started
    if as_json:
        print_document(
            {
                "path": path,
                "file": file,
                "format": episodes.format,
                "episodes": episodes.total,
                "agents": [{"agent_id": who, "episodes": n} for who, n in written.items()],
                "seconds": round(seconds, 3),
            }
        )
        return
    named = [agent for agent in written if agent is not None]
    whose = f" for {counted(len(named), 'agent')}" if named else ""
    line(f"Remembered {counted(episodes.total, 'episode')}{whose} in {seconds:.1f} s")


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """Open a file that can be read twice: what comes through a pipe is kept in an unnamed file."""
    with ExitStack() as stack:
        source = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        if file == "-" or not source.seekable():
            kept = stack.enter_context(tempfile.TemporaryFile())
            copyfileobj(source, kept)
            source = kept
        yield source


def _read(stream: IO[bytes], name: str, file_format: str) -> Episodes:
    from engram.cli.transcripts import read_json_lines, read_locomo  # noqa: PLC0415

    if file_format == "auto":
        stream.seek(0)
        begins = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        file_format = "locomo" if begins == b"[" else "jsonl"
    return read_locomo(stream, name) if file_format == "locomo" else read_json_lines(stream, name)


def _write(
    path: str,
    episodes: Episodes,
    agent_id: str | None,
    model: str | None,
    key: str | None,
    source: str | None,
) -> dict[str | None, int]:
    """Write everything and return how many episodes each agent got, in the order of the file."""
    written: dict[str | None, int] = {}
    done = 0
    with (
        open_or_make(path, model=model, key=key),
        _interrupt() as stopped,
        progress_bar("Remembering", episodes.total) as show,
    ):
        for given, group in groupby(episodes.start(), key=itemgetter(0)):
            agent = given if agent_id is None else agent_id
            with open_or_make(path, agent_id=agent, model=model, key=key) as memory:
                items = (
                    replace(item, source_path=source, source_type="ingest") for _, item in group
                )
                while batch := list(islice(items, _BATCH)):
                    _write_batch(memory, batch, done)
                    done += len(batch)
                    written[agent] = written.get(agent, 0) + len(batch)
                    show(done, episodes.total)
                    if stopped.is_set() and done < episodes.total:
                        committed = f"{done} of {episodes.total} episodes were already committed"
                        message = f"interrupted: {committed}"
                        raise Interrupted(message)
    return written


def _write_batch(memory: Engram, batch: list[ObserveInput], done: int) -> None:
    try:
        memory.observe_many(batch)
    except EngramError as error:
        if done:
            committed = f"{counted(done, 'episode')} were already committed"
            error.hint = f"{error.hint}; {committed}" if error.hint else committed
        raise


@contextmanager
def _interrupt() -> Iterator[threading.Event]:
    """Let the first Ctrl-C set the event, so that what was committed is known; the second kills."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            signal.default_int_handler(number, frame)
        stopped.set()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
