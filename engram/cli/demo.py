"""`engram demo`: remember a conversation shipped with engram, and answer from it."""

from __future__ import annotations

import shlex
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engram.cli.failures import ExistingFileError
from engram.cli.options import json_option
from engram.cli.output import line, print_document, result_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engram import Engram, ObserveInput, SearchResult

_AGENT = "demo"
_HITS = 3


@click.command()
@click.option("--keep", metavar="PATH", help="Leave the store at PATH, where nothing may be yet.")
@click.option("--model", metavar="NAME", help="Embedding model; by default the packaged one.")
@json_option
def demo(*, keep: str | None, model: str | None, as_json: bool) -> None:
    """Remember a conversation of 30 turns and answer three questions from it.

    Everything runs on this machine, without the network.
    """
    if keep is not None and Path(keep).exists():
        message = f"there is a file already: {keep}"
        raise ExistingFileError(message, "give --keep a new path")
    with tempfile.TemporaryDirectory(prefix="engram-demo-") as folder:
        document = _run(keep or str(Path(folder) / "demo.engram"), model, as_json=as_json)
    if as_json:
        print_document({"path": keep, **document})
    else:
        _print_next_steps(keep)


class _Watch:
    """A stopped time, in seconds."""

    seconds = 0.0


@contextmanager
def _timed() -> Iterator[_Watch]:
    watch = _Watch()
    started = time.perf_counter()
    yield watch
    watch.seconds = time.perf_counter() - started


def _run(path: str, model: str | None, *, as_json: bool) -> dict[str, object]:
    """Do everything, telling each step as it is done, and return the JSON document of it."""
    from engram import Engram  # noqa: PLC0415 - heavy, see `engram.cli.files`
    from engram.demo import QUESTIONS  # noqa: PLC0415
    from engram.embedding import resolve  # noqa: PLC0415
    from engram.embedding.registry import PACKAGED  # noqa: PLC0415

    say = _silent if as_json else line
    name = model or PACKAGED
    with _timed() as load:
        embedder = resolve(name)
        embedder.embed(["the first text loads the model"])
    say(f"Loaded {name} in {load.seconds:.2f} s")
    turns = _conversation()
    days = [turn.timestamp.date() for turn in turns if turn.timestamp is not None]
    sessions = len({tag for turn in turns for tag in turn.tags})
    with Engram(path, embedder=embedder, agent_id=_AGENT) as memory:
        with _timed() as remember:
            count = len(memory.observe_many(turns))
        what = f"{count} turns of {sessions} sessions, {min(days)} to {max(days)}"
        say(f"Remembered {what}, in {remember.seconds:.2f} s")
        answers = [_ask(memory, question, say) for question in QUESTIONS]
    return {
        "model": name,
        "load_seconds": round(load.seconds, 6),
        "agent_id": _AGENT,
        "episodes": count,
        "sessions": sessions,
        "remember_seconds": round(remember.seconds, 6),
        "questions": answers,
    }


def _ask(memory: Engram, question: str, say: Callable[[str], None]) -> dict[str, object]:
    with _timed() as recall:
        hits = memory.recall(question, _HITS)
    say(f"\n{question}  ({1000 * recall.seconds:.0f} ms)")
    for rank, hit in enumerate(hits, 1):
        say(_hit(rank, hit))
    return {
        "query": question,
        "seconds": round(recall.seconds, 6),
        "results": result_documents(hits),
    }


def _silent(text: str) -> None:
    """Print nothing."""


def _conversation() -> list[ObserveInput]:
    from engram.cli.transcripts import read_json_lines  # noqa: PLC0415
    from engram.demo import CONVERSATION  # noqa: PLC0415

    with CONVERSATION.open("rb") as stream:
        return [turn for _, turn in read_json_lines(stream, CONVERSATION.name).start()]


def _hit(rank: int, hit: SearchResult) -> str:
    episode = hit.episode
    said = f"{', '.join(episode.actors)}: {episode.content}"
    return f"  {rank}. [{hit.score:.3f}] {episode.timestamp:%Y-%m-%d}  {said}"


def _print_next_steps(keep: str | None) -> None:
    line("\nWhere to go next")
    if keep is None:
        line("  engram demo --keep demo.engram")
    else:
        line(f'  engram recall {shlex.quote(keep)} "who repaired the roof?"')
    line('  engram observe notes.engram "a thing to remember"')
    line('  engram recall notes.engram "what was it?"')
    line("  engram ingest notes.engram conversations.jsonl")
    line("  engram --help")
