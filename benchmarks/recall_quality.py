"""Make the figures of `docs/explanation/recall-quality.md`.

Run from a checkout with an environment that has engram and the extra `bench`:

    python benchmarks/recall_quality.py --data FOLDER

FOLDER has the files of `SETS`. Every run is one of `engram-bench`, whose records go into
`benchmarks/results/recall-quality/` (main runs, packed, no texts in them) or into the folder of
`--work` (ablations, which are large). From the records come `summary.json`, `latency.json`, which
alone differs from run to run, the plots and the tables of the page. `--tables` runs nothing and
makes these anew; `--resume` goes on with what was stopped.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from recall_quality_page import DOCUMENT, HEADS, draw_all, fill, measures_of

from engram.bench.judged import running
from engram.bench.judged.abstention import auroc
from engram.bench.judged.comparison import comparison
from engram.bench.judged.conversations import locomo, longmemeval
from engram.bench.judged.data import DataSet, Haystack, Labels
from engram.bench.judged.groups import FOLDS, folds, groups, headline
from engram.bench.judged.measures import measure_names, measured
from engram.bench.judged.reading import read as read_data
from engram.bench.judged.records import Record, read, read_times
from engram.bench.judged.summary import summary
from engram.embedding import resolve

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results/recall-quality"
PAGE = ROOT / "docs/explanation/recall-quality.md"

MAIN = ("--modes", "hybrid,text,cosine", "--vary", "method=min_max")
VARIED = (
    *("method=min_max", "method=reciprocal_rank", "near_words=0", "near_words=1"),
    *("named=0", "named=0.05", "named=0.3", "conversation=0", "conversation=0.3"),
    *("conversation=0.5", "answers=0", "answers=0.5", "assistant=1", "assistant=0.8"),
    *("assistant=0.5", "dates=0", "dates=0.4", "feedback=0.3", "diversity=0.2"),
)
ABLATIONS = (*(part for one in VARIED for part in ("--vary", one)), "--weights", "0.3,0.4,0.6,0.7")
OF_DOCUMENTS = (
    *(part for one in (*VARIED[:4], *VARIED[-2:]) for part in ("--vary", one)),
    *("--weights", "0.3,0.4,0.6,0.7"),
)
# A model reads twenty texts for each question, which takes a hundred times as long as the rest.
RERANKED = ("--vary", "rerank=late_interaction", "--sample", "300")
POOL = ("--candidates", "128")
BARE = ("--without-speakers", "--vary", "method=min_max")

# What the plots need beside the measures of the tables.
DRAWN = tuple(
    f"{level}_recall_{reading}@{k}"
    for level in ("session", "turn")
    for reading in ("any", "all")
    for k in (1, 10, 50)
)


@dataclass(frozen=True)
class Set:
    """A data set, and the ways to run it: what the records are called, and further options."""

    command: str
    file: str
    main: dict[str, tuple[str, ...]]
    further: dict[str, tuple[str, ...]]


def _set(command: str, file: str, name: str, ablations: tuple[str, ...], **more: Any) -> Set:
    users = {f"{name}-user": ("--user-only",)} if more.get("user_only") else {}
    bare = {f"{name}-without-speakers": BARE} if more.get("bare") else {}
    further = {f"{name}-ablations": ablations, f"{name}-pool": POOL, **bare}
    further[f"{name}-rerank"] = RERANKED
    return Set(command, file, {name: (), **users}, further)


SETS = (
    _set("locomo", "locomo-dev.json", "locomo", ABLATIONS, bare=True),
    _set(
        *("longmemeval", "longmemeval-s-dev.json.gz", "longmemeval-s", ABLATIONS),
        user_only=True,
        bare=True,
    ),
    _set("longmemeval", "longmemeval-composed-dev.json.gz", "longmemeval-composed", ABLATIONS),
    _set("ir", "cranfield.json.gz", "cranfield", OF_DOCUMENTS),
    _set("ir", "scifact-dev.json.gz", "scifact", OF_DOCUMENTS),
)
FOREIGN = {
    "locomo": ("locomo-dev.json", locomo),
    "longmemeval-s": ("longmemeval-s-dev.json.gz", longmemeval),
}


@dataclass(frozen=True)
class Folders:
    """Where things are: the data, packed records, large ones, vectors (None: the user's cache)."""

    data: Path
    results: Path
    work: Path
    cache: Path | None


def run_all(folders: Folders, model: str | None, *, resume: bool) -> None:
    for one in SETS:
        for name, options in one.main.items():
            run(folders, one, name, (*MAIN, *options), model, resume=resume)
            pack(folders, name)
        for name, options in one.further.items():
            run(folders, one, name, options, model, resume=resume)
    for name, (file, reader) in FOREIGN.items():
        run_foreign(folders, name, file, reader, model, resume=resume)


def run(
    folders: Folders,
    one: Set,
    name: str,
    given: tuple[str, ...],
    model: str | None,
    *,
    resume: bool,
) -> None:
    """Run `engram-bench` into the file of records of a name in the work folder."""
    click.echo(name, err=True)
    options = [
        *("--data", folders.data / one.file, "--records", folders.work / f"{name}.jsonl"),
        "--resume" if resume else "--overwrite",
        "--json",
        *(("--cache", folders.cache) if folders.cache else ()),
        *(("--model", model) if model else ()),
    ]
    command = [sys.executable, "-m", "engram.benchmarks", one.command, *given, *map(str, options)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def pack(folders: Folders, name: str) -> None:
    """Put a packed copy of records where results are kept, the same bytes for the same records."""
    kept = (folders.work / f"{name}.jsonl").read_bytes()
    (folders.results / f"{name}.jsonl.gz").write_bytes(gzip.compress(kept, mtime=0))


def run_foreign(
    folders: Folders, name: str, file: str, reader: Any, model: str | None, *, resume: bool
) -> None:
    """Ask each haystack the questions of the next one, which it does not answer."""
    click.echo(f"{name}-foreign", err=True)
    content = read_data(folders.data / file)
    data = reader(content)
    shifted = [*data.haystacks[1:], data.haystacks[0]]
    haystacks = [
        Haystack(here.sessions, there.questions)
        for here, there in zip(data.haystacks, shifted, strict=True)
    ]
    labels = {uid: Labels(one.kind, [], [], abstention=True) for uid, one in data.labels.items()}
    embedder = running.cached(resolve(model), folders.cache)
    ways = running.variants(["hybrid"])
    plan = running.Plan(name, content.sha256, DataSet(haystacks, labels), embedder, ways)
    running.run(plan, folders.work / f"{name}-foreign.jsonl", resume=resume, overwrite=not resume)


def summarized(folders: Folders) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures that are the same in every run, and those of time."""
    figures: dict[str, Any] = {"runs": {}, "differences": {}, "cross_validated": {}, "foreign": {}}
    latency: dict[str, Any] = {}
    for one in SETS:
        first, *_ = one.main
        for name in one.main:
            records = read(folders.results / f"{name}.jsonl.gz")
            times = read_times(folders.work / f"{name}.jsonl")
            document = summary(records, times)
            latency[name] = document.pop("latency")
            figures["runs"][name] = trimmed(document)
            figures["differences"][name] = differences(records, records)
        main = read(folders.results / f"{first}.jsonl.gz")
        varied = read(folders.work / f"{first}-ablations.jsonl")
        figures["cross_validated"][first] = cross_validated(main, varied, measures_of(first))
        for name in one.further:
            records = read(folders.work / f"{name}.jsonl")
            figures["differences"][name] = differences(main, records)
            options = records.header["settings"]["variants"].get("hybrid", {})
            if pool := options.get("candidate_limit"):
                found = figures["differences"][name].pop("hybrid")
                figures["differences"][name][f"hybrid candidate_limit={pool}"] = found
            latency[name] = summary(records, read_times(folders.work / f"{name}.jsonl"))["latency"]
    for name in FOREIGN:
        own = read(folders.results / f"{name}.jsonl.gz").records
        foreign = read(folders.work / f"{name}-foreign.jsonl").records
        answerable = [record for record in own if not record.abstention]
        figures["foreign"][name] = {
            "n_answerable": len(answerable),
            "n_foreign": len(foreign),
            "auroc_confidence": round(float(auroc(surest(answerable), surest(foreign))), 6),
        }
    return figures, latency


def cross_validated(main: Any, varied: Any, measures: tuple[str, ...]) -> dict[str, Any]:
    """Measure each fold with the one change, or none, that was best in the other four.

    Best is the largest mean of all measures together.
    """
    names = measure_names(of_documents=measures == DOCUMENT)
    columns = [names.index(one) for one in measures]
    inside = groups(main.data_set, main.records)[headline(main.data_set, main.records)]
    ways = {"hybrid": measured(main.records, "hybrid")}
    ways |= {label: measured(varied.records, label) for label in varied.labels}
    values = {label: found[inside][:, columns] for label, found in ways.items()}
    fold = folds(main.data_set, main.records)[inside]
    chosen, tested = [], []
    for one in range(FOLDS):
        best = max(values, key=lambda label: float(np.nanmean(values[label][fold != one])))
        chosen.append(best)
        tested.append(values[best][fold == one])
    means = np.nanmean(np.concatenate(tested), axis=0).tolist()
    figures = {name: round(mean, 6) for name, mean in zip(measures, means, strict=True)}
    return {"chosen": chosen, **figures}


def surest(records: list[Record]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the confidence of each question's best answer."""
    return np.array([record.answers["hybrid"][0][3] for record in records], dtype=np.float64)


def differences(main: Any, other: Any) -> dict[str, Any]:
    """Return by how much each label is better than the default of the main run."""
    group = headline(main.data_set, main.records)
    found: dict[str, Any] = {}
    for label in other.labels:
        if main is other and label == "hybrid":
            continue
        compared = comparison(main, other, "hybrid", label)["groups"][group]
        found[label] = {name: compared[name] for name in HEADS if name in compared}
    return found


def trimmed(document: Any) -> Any:
    """Return a summary without the measures that the page does not show."""
    if not isinstance(document, dict):
        return document
    of_measures = any(name in document for name in HEADS)
    drawn = () if any(isinstance(one, list) for one in document.values()) else DRAWN
    kept = {"n", "n_turn", "interval", *HEADS, *drawn}
    return {
        name: trimmed(value) for name, value in document.items() if not of_measures or name in kept
    }


def write_json(file: Path, document: Any) -> None:
    text = json.dumps(document, indent=1)
    # A list of numbers is one line.
    text = re.sub(r"\[[^][{}\"]*\]", lambda found: " ".join(found[0].split()), text)
    file.write_text(text + "\n", encoding="utf-8")


@click.command()
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), default=Path("data"))
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS)
@click.option("--work", type=click.Path(path_type=Path), default=ROOT / "build/recall-quality")
@click.option("--page", type=click.Path(path_type=Path), default=PAGE)
@click.option("--cache", type=click.Path(path_type=Path), help="Vectors; the user's cache.")
@click.option("--model", help="Embedding model; by default a new store's.")
@click.option("--resume", is_flag=True, help="Go on with records that are there.")
@click.option("--tables", is_flag=True, help="Run nothing: make all from the records.")
def main(*, page: Path, model: str | None, resume: bool, tables: bool, **paths: Any) -> None:
    """Measure recall on the sets in a folder, and write records, figures, plots and tables."""
    folders = Folders(**paths)
    for folder in (folders.results, folders.work):
        folder.mkdir(parents=True, exist_ok=True)
    if not tables:
        run_all(folders, model, resume=resume)
    figures, latency = summarized(folders)
    write_json(folders.results / "summary.json", figures)
    write_json(folders.results / "latency.json", latency)
    draw_all(figures, page.parent)
    fill(page, figures, latency)


if __name__ == "__main__":
    main()
