"""A run: the stages in their order, and what each of them says.

A stage that fails is named and costs nothing but what it would have said.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from engram.errors import EngramError
from engram.key_files import passphrase_in
from engram.training.failures import reason
from engram.training.features import LEAST_ROWS
from engram.training.messages import (
    Complete,
    Error,
    Insight,
    Message,
    Metric,
    Progress,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from engram.training.rows import Corpus

_MODEL_PACKAGES: Final = ("onnx", "sklearn", "skl2onnx")
_PLAIN: Final = b"SQLite format 3\0"
_GOOD_SCORE: Final = 0.5
_LEAST_SAMPLES: Final = 20

DONE: Final = 0
FAILED: Final = 1
"""What the program exits with."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to do.

    Attributes:
        database: What to learn from.
        models_path: The folder that models are written to, absolute; made when missing.
        deep: Whether to go through the stages of the text model too.
        seed: What chance begins with: the same database and seed, the same output.
        key_file: A file with the passphrase of an encrypted store.
        agent: The only agent of a store whose memories are read; None: everybody's.
    """

    database: Path
    models_path: Path
    deep: bool = False
    seed: int = 0
    key_file: Path | None = None
    agent: str | None = None


def carry_out(
    task: Task, say: Callable[[Message], None], clock: Callable[[], float] = time.monotonic
) -> int:
    """Learn from a database and say what was learnt; return what the program exits with.

    Args:
        task: What to do.
        say: Takes each message at once.
        clock: Says how long it took, in seconds.

    Raises:
        OSError: What `say` raises.
    """
    started = clock()
    say(Progress("loading", 0.0))
    corpus = _loaded(task)
    if isinstance(corpus, Error):
        say(corpus)
        return FAILED
    run = _Run(task, corpus, say)
    run.stages()
    say(Progress("done", 100.0))
    say(Complete(run.insights, round(clock() - started, 2)))
    return DONE


def _loaded(task: Task) -> Corpus | Error:
    try:
        key = None if task.key_file is None else passphrase_in(task.key_file)
    except OSError as error:
        return Error(f"--key-file: {reason(error)}")
    except EngramError as error:
        return Error(reason(error))
    try:
        # Not at the top: NumPy has no part in the help of the program.
        from engram.training.rows import read_corpus  # noqa: PLC0415

        if key is not None and _is_plain(task.database):
            return Error("the database is not encrypted: leave --key-file out")
        return read_corpus(task.database, key, task.agent)
    except Exception as error:  # noqa: BLE001 - whatever it is, the reader gets one line about it
        return Error(reason(error))


def _is_plain(database: Path) -> bool:
    """Return whether a file is a database without encryption; what cannot be read is said later."""
    try:
        # Opening a pipe would wait for whoever writes into it.
        if not database.is_file():
            return False
        with database.open("rb") as file:
            return file.read(len(_PLAIN)) == _PLAIN
    except OSError:
        return False


class _Run:
    """The stages of one run.

    Attributes:
        insights: How many insights were said.
    """

    def __init__(self, task: Task, corpus: Corpus, say: Callable[[Message], None]) -> None:
        self._task = task
        self._corpus = corpus
        self._say = say
        self._found: dict[str, int] = {}
        self._grouped: set[frozenset[str | None]] = set()
        self.insights = 0

    def stages(self) -> None:
        """Go through all of them."""
        if self._corpus.skipped:
            print(  # noqa: T201 - for whoever watches
                f"engram-trainer: {self._corpus.skipped} memories could not be read, or not whole",
                file=sys.stderr,
            )
        self._stage("clustering", 20.0, self._clusters)
        self._stage("temporal", 40.0, self._patterns)
        self._stage("causal", 60.0, self._chains)
        self._models()
        if self._task.deep:
            self._text_model()
        self._stage("meta", 90.0, self._about_all)

    def _stage(self, name: str, percent: float, work: Callable[[], Iterable[Message]]) -> None:
        self._say(Progress(name, percent))
        self._attempt(name, percent, work)

    def _attempt(self, name: str, percent: float, work: Callable[[], Iterable[Message]]) -> None:
        """Say what a piece of work has to say once it is done, or that it failed."""
        try:
            messages = list(work())
        except Exception as error:  # noqa: BLE001 - the other stages have something to say
            self._say(Progress(f"{name}_failed: {reason(error)}", percent))
            return
        for message in messages:
            self.insights += isinstance(message, Insight)
            self._say(message)

    def _clusters(self) -> list[Message]:
        from engram.training.clustering import clusters  # noqa: PLC0415
        from engram.training.groups import cluster_insight  # noqa: PLC0415

        rows, owners = self._corpus.rows, self._corpus.owners
        groups = clusters(self._corpus.vectors) if len(owners) > 1 else []
        self._found["cluster_count"] = len(groups)
        return self._once(
            cluster_insight([rows[at] for at in owners[group].tolist()], self._task.agent)
            for group in groups
        )

    def _patterns(self) -> list[Message]:
        from engram.training.temporal import temporal_insight, temporal_patterns  # noqa: PLC0415

        patterns = temporal_patterns(self._corpus.rows)
        self._found["temporal_pattern_count"] = len(patterns)
        return [temporal_insight(pattern, self._task.agent) for pattern in patterns]

    def _chains(self) -> list[Message]:
        from engram.training.chains import explicit_chains, implicit_chains  # noqa: PLC0415
        from engram.training.groups import chain_insight  # noqa: PLC0415

        rows = self._corpus.rows
        chains = explicit_chains(rows)
        chains += implicit_chains(self._corpus, {at for chain in chains for at in chain})
        self._found["causal_chain_count"] = len(chains)
        return self._once(
            chain_insight([rows[at] for at in chain], self._task.agent) for chain in chains
        )

    def _once(self, insights: Iterable[Insight]) -> list[Message]:
        """Return those insights that no other group of the same memories was said of."""
        fresh: list[Message] = []
        for one in insights:
            sources = frozenset((one.source_ids or "").split(","))
            if sources not in self._grouped:
                self._grouped.add(sources)
                fresh.append(one)
        return fresh

    def _models(self) -> None:
        self._say(Progress("training", 70.0))
        if len(self._corpus.rows) < LEAST_ROWS:
            return
        if all(find_spec(package) for package in _MODEL_PACKAGES):
            self._attempt("training", 70.0, self._trained)
        else:
            self._say(Progress("training_skipped: install engram-embedded[train]", 70.0))

    def _trained(self) -> list[Message]:
        from engram.training.models import train_models  # noqa: PLC0415

        return train_models(self._corpus.rows, self._task.models_path, self._task.seed)

    def _text_model(self) -> None:
        """Say what there is to say of a text model: this trainer makes none."""
        self._say(Progress("text_lora", 75.0))
        samples = sum((row.score or 0.0) > _GOOD_SCORE for row in self._corpus.rows)
        if samples >= _LEAST_SAMPLES:
            why = "not supported" if find_spec("torch") else "torch not installed"
            self._say(Progress(f"text_lora_skipped: {why}", 75.0))
        self._say(Progress("text_lora_done", 85.0))
        self._say(Progress("quality_gate", 90.0))
        self._say(Metric("text_quality_rouge_l", 0.0))
        self._say(Progress("quality_gate_failed: below threshold", 90.0))

    def _about_all(self) -> list[Message]:
        from engram.training.meta import metrics, recommendations  # noqa: PLC0415

        said: list[Message] = [*metrics(self._corpus, self._found)]
        if self._corpus.skipped:
            said.append(Metric("skipped_rows", float(self._corpus.skipped)))
        return [*said, *recommendations(self._corpus)]
