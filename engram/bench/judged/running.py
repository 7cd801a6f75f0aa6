"""Asking a data set's questions, one after the other, and recording the answers."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from engram import Blending, __version__
from engram.bench.judged.asking import K, Store, Variant
from engram.bench.judged.checkpoint import Checkpoint
from engram.bench.judged.data import sampled, turns_of
from engram.bench.machine import machine, versions
from engram.bench.vector_cache import CachedEmbedder, cache_folder
from engram.cli.failures import ExistingFileError
from engram.cli.progress import progress_bar
from engram.embedding import OnnxEmbedder
from engram.embedding.digest import sha256_of
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from engram.bench.judged.asking import Answer, Question, Turn
    from engram.bench.judged.data import DataSet, Haystack, Labels
    from engram.embedding import Embedder

__all__ = ["Plan", "cached", "run", "variants"]

_SINGLE = {
    "hybrid": Variant("hybrid", "hybrid"),
    "cosine": Variant("cosine", "cosine"),
    "text": Variant("text", "hybrid", {"vector_weight": 0.0, "fts_weight": 1.0}),
    "spreading": Variant("spreading", "spreading"),
}


@dataclass(frozen=True)
class Plan:
    """What is asked, and how.

    Attributes:
        name: The set's name.
        data_sha256: Of the data's file.
        data: The data.
        embedder: The model.
        variants: The ways in which each question is asked.
        granularity: "turn" or "session": what one episode is.
        user_only: Leave out what others than the user said.
        without_speakers: Nobody is said to have said a turn.
        sample: About how many questions to draw; None is all.
        seed: Which.
        limit: Only the first so many of those; None is all.
    """

    name: str
    data_sha256: str
    data: DataSet
    embedder: Embedder
    variants: Sequence[Variant]
    granularity: str = "turn"
    user_only: bool = False
    without_speakers: bool = False
    sample: int | None = None
    seed: int = 0
    limit: int | None = None

    def header(self) -> dict[str, Any]:
        """Return all that decides the records."""
        host = machine()
        return {
            "set": self.name,
            "data_sha256": self.data_sha256,
            "model": getattr(self.embedder, "name", None) or self.embedder.fingerprint,
            "model_sha256": _model_sha256(self.embedder),
            "engram": __version__,
            "settings": {
                "granularity": self.granularity,
                "user_only": self.user_only,
                "without_speakers": self.without_speakers,
                "k": K,
                "variants": {one.label: _described(one) for one in self.variants},
                "sample": self.sample,
                "limit": self.limit,
            },
            "seed": self.seed,
            "host": {
                "cpu": host["processor"],
                "cores": host["cores"],
                "python": versions()["python"],
            },
        }


def _described(variant: Variant) -> dict[str, Any]:
    options = dict(variant.options)
    if "blending" in options:
        options["blending"] = asdict(options["blending"])
    return {"mode": variant.mode, **options}


def variants(
    modes: Sequence[str],
    weights: Sequence[float] = (),
    changes: Sequence[str] = (),
    candidates: int | None = None,
) -> list[Variant]:
    """Return the ways to ask.

    Args:
        modes: "hybrid", "cosine", "text" (words alone) or "spreading".
        weights: Shares of meaning in hybrid mode, 0 to 1, each a way of its own.
        changes: Attributes of `Blending` in hybrid mode, "name=value", each a way of its own.
        candidates: How many each side puts forward, in every way; None is as many as by default.

    Raises:
        InvalidArgument, InvalidType: A change is of no attribute, or to what it cannot be.
    """
    swept = [(share, round(1.0 - share, 6)) for share in weights]
    ways = [
        *(_SINGLE[mode] for mode in dict.fromkeys(modes)),
        *(
            Variant(f"hybrid v{v:g}/f{w:g}", "hybrid", {"vector_weight": v, "fts_weight": w})
            for v, w in dict.fromkeys(swept)
        ),
        *(
            Variant(f"hybrid {change}", "hybrid", {"blending": _changed(change)})
            for change in dict.fromkeys(changes)
        ),
    ]
    if candidates is None:
        return ways
    return [replace(way, options={**way.options, "candidate_limit": candidates}) for way in ways]


def _changed(change: str) -> Blending:
    """Return the default blending with one attribute changed."""
    name, _, text = change.partition("=")
    if name not in (known := [one.name for one in fields(Blending)]):
        message = f"vary must be NAME=VALUE with one of {', '.join(known)}"
        raise InvalidArgument(message)
    value: Any = text
    for kind in (float, int):
        with suppress(ValueError):
            value = kind(text)
    return Blending(**{name: value})


def cached(embedder: Embedder, folder: Path | None) -> Embedder:
    """Return an embedder that keeps the vectors of documents on disk.

    One that runs no model needs none of that and is returned as it is.

    Args:
        embedder: The model's.
        folder: Where to keep them; None is the user's cache.

    Raises:
        OSError: The folder cannot be written.
    """
    if not isinstance(embedder, OnnxEmbedder):
        return embedder
    return CachedEmbedder(embedder, cache_folder() if folder is None else folder)


def _model_sha256(embedder: Embedder) -> str | None:
    if not isinstance(embedder, OnnxEmbedder):
        return None
    local = embedder.local
    return local.model.onnx.sha256 or sha256_of(local.onnx)


def run(plan: Plan, file: Path, *, resume: bool, overwrite: bool) -> None:
    """Ask all questions that have no record yet.

    Args:
        plan: What is asked.
        file: The file of records; that of times is beside it.
        resume: Go on with it.
        overwrite: Begin anew.

    Raises:
        ExistingFileError, BadFileError: As for `Checkpoint`.
        OSError: A file cannot be written.
        EngramError: The engine refuses.
    """
    data = sampled(plan.data, plan.sample, plan.seed, plan.limit)
    ids = [question.id for haystack in data.haystacks for question in haystack.questions]
    with closing(Checkpoint(file, plan.header(), resume=resume, overwrite=overwrite)) as checkpoint:
        done = len(checkpoint.done)
        if checkpoint.done != ids[:done]:
            message = f"{file} has records of other questions"
            raise ExistingFileError(message, "give another --records, or --overwrite")
        left = _left(data, done)
        steps = sum(_turns(one) + len(one.questions) for one in left)
        with progress_bar("Remembering turns and asking", steps) as show:
            taken = 0
            for haystack in left:
                begun = partial(_show, show, taken, steps)
                for at, (record, seconds) in enumerate(_asked(plan, haystack, data.labels, begun)):
                    checkpoint.add(record, seconds)
                    begun(_turns(haystack) + at + 1)
                taken += _turns(haystack) + len(haystack.questions)


def _show(show: Callable[[int, int], None], taken: int, steps: int, done: int) -> None:
    show(taken + done, steps)


def _left(data: DataSet, done: int) -> list[Haystack]:
    """Return haystacks without the first questions, and only those of which some are left."""
    left: list[Haystack] = []
    for haystack in data.haystacks:
        questions = haystack.questions[done:]
        done = max(0, done - len(haystack.questions))
        if questions:
            left.append(replace(haystack, questions=questions))
    return left


def _turns(haystack: Haystack) -> int:
    return sum(len(session.turns) for session in haystack.sessions)


def _asked(
    plan: Plan,
    haystack: Haystack,
    labels: Mapping[str, Labels],
    remembered: Callable[[int], None],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the record of each question of a haystack, and its times."""
    turns = turns_of(
        haystack,
        whole_sessions=plan.granularity == "session",
        user_only=plan.user_only,
        without_speakers=plan.without_speakers,
    )
    with closing(Store(turns, plan.embedder, remembered)) as store:
        for at, question in enumerate(haystack.questions):
            answers, seconds = store.ask(question, plan.variants)
            times = {
                "question": question.id,
                "ingest": None if at else store.seconds,
                "seconds": seconds,
            }
            yield _record(question, labels[question.id], turns, answers), times


def _record(
    question: Question,
    labels: Labels,
    turns: Sequence[Turn],
    answers: dict[str, list[Answer]],
) -> dict[str, Any]:
    there = {turn.id for turn in turns}
    record: dict[str, Any] = {
        "question": question.id,
        "kind": labels.kind,
        "abstention": labels.abstention,
        "turns": len(turns),
        "sessions": len({turn.session for turn in turns}),
        "gold_turns": [turn for turn in labels.turns if turn in there],
        "gold_sessions": labels.sessions,
        "answers": answers,
    }
    return record if labels.grades is None else {**record, "grades": labels.grades}
