"""Measure engram beside other engines, each in an environment of its own.

Run from a checkout with an environment that has engram:

    python benchmarks/peers/run.py --sizes 1000,10000 --work peers

Every peer gets the same texts, vectors and questions. engdbram is called in turn with engram in one
process; the others run one after another. A peer that does not install is reported as such. The
results are in `peers.json` in the folder given by `--work`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from engram.bench import corpus as corpora
from engram.bench.machine import machine, versions
from engram.bench.report import banner, print_table
from engram.cli.progress import progress_bar
from engram.embedding import embed_query, resolve

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BLOCK = 20_000
SEED = 0


@dataclass(frozen=True)
class Peer:
    """An engine to measure.

    Attributes:
        name: Its name in the results.
        requirements: What is installed for it.
        ours: Whether engram is installed, too, from this checkout.
        apart: What is installed without its dependencies into a folder that is not on the path.
    """

    name: str
    requirements: tuple[str, ...]
    ours: bool = False
    apart: str | None = None


PEERS = (
    Peer("engram", ("numpy",), ours=True),
    Peer(
        "engdbram",
        ("pysqlite3-binary", "rfc8785", "sqlite-vec>=0.1.9", "numpy"),
        ours=True,
        apart="engdbram==3.0.0",
    ),
    Peer("sqlite_vec", ("apsw", "sqlite-vec", "numpy")),
    Peer("lancedb", ("lancedb", "pyarrow", "numpy")),
    Peer("chroma", ("chromadb", "numpy")),
    Peer("usearch", ("usearch", "numpy")),
    Peer("hnswlib", ("hnswlib", "numpy")),
)


class DoesNotRunError(Exception):
    """A peer does not install, or a step of it stopped with an error."""

    def __init__(self, step: str, errors: str) -> None:
        super().__init__(f"{step} failed: {_last_line(errors)}")


class Environment:
    """The Python of one peer."""

    def __init__(self, peer: Peer, work: Path) -> None:
        self._peer = peer
        self._folder = work / "environments" / peer.name
        self.package = self._folder / "apart"

    def make(self) -> None:
        """Install the peer, unless that was done before, and this checkout as it is now.

        Raises:
            DoesNotRunError: It does not install.
        """
        peer, done = self._peer, self._folder / "installed.json"
        wanted = json.dumps([*peer.requirements, peer.apart])
        if not done.exists() or done.read_text("utf-8") != wanted:
            venv.create(self._folder, with_pip=True)
            self._pip(*peer.requirements)
            if peer.apart is not None:
                self._pip("--no-deps", "--upgrade", "--target", str(self.package), peer.apart)
            done.write_text(wanted, "utf-8")
        if peer.ours:
            self._pip(str(ROOT))

    def _pip(self, *arguments: str) -> None:
        command = [str(self._python), "-m", "pip", "install", "--quiet", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DoesNotRunError(step="install", errors=done.stderr)

    @property
    def _python(self) -> Path:
        return self._folder / "bin" / "python"

    def run(self, step: str, *arguments: object) -> dict[str, Any]:
        """Run a step of the peer's script and return its figures.

        Raises:
            DoesNotRunError: It stopped with an error.
        """
        script = HERE / f"peer_{self._peer.name}.py"
        command = [self._python, script, step, *arguments]
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise DoesNotRunError(step=step, errors=done.stderr)
        return json.loads(_last_line(done.stdout))


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "without a word"


def write_corpus(
    folder: Path, sizes: list[int], queries: int, k: int, files: tuple[Path | None, Path | None]
) -> float:
    """Write what every peer reads and return the share of vectors that is real at the largest."""
    folder.mkdir(parents=True, exist_ok=True)
    texts_file, vectors_file = files
    embedder, largest = resolve(None), sizes[-1]
    given = None if texts_file is None else corpora.read_texts(texts_file)
    texts = corpora.take_texts(given, largest, SEED)
    with progress_bar("Embedding") as show:
        real = corpora.real_vectors(texts, vectors_file, embedder, largest, show)
    vectors = corpora.Vectors(real, SEED)
    questions = corpora.ask(texts.held_out, queries)
    asked = np.stack([embed_query(embedder, question) for question in questions.every])
    written = np.lib.format.open_memmap(
        folder / "vectors.npy", "w+", np.float32, (largest, embedder.dim)
    )
    for at in range(0, largest, BLOCK):
        written[at : at + BLOCK] = vectors.rows(at, min(at + BLOCK, largest))
    written.flush()
    (folder / "texts.json").write_text(json.dumps(texts.stored), "utf-8")
    kinds = {kind: getattr(questions, kind) for kind in ("decisions", "eight", "fifteen")}
    (folder / "questions.json").write_text(json.dumps(kinds), "utf-8")
    np.save(folder / "asked.npy", asked)
    for size in sizes:
        np.save(folder / f"exact-{size}.npy", exact(written[:size], asked, k))
    return vectors.real_share(largest)


def exact(vectors: np.ndarray, asked: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of the k nearest vectors to each question, int64[n, k], best first."""
    k = min(k, len(vectors))
    scores = np.full((len(asked), k), -2.0, np.float32)
    places = np.zeros((len(asked), k), np.int64)
    for at in range(0, len(vectors), BLOCK):
        new = asked @ vectors[at : at + BLOCK].T
        scores = np.concatenate([scores, new], axis=1)
        here = np.broadcast_to(np.arange(at, at + new.shape[1]), new.shape)
        places = np.concatenate([places, here], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores = np.take_along_axis(scores, best, axis=1)
        places = np.take_along_axis(places, best, axis=1)
    return places


def measure(peer: Peer, environment: Environment, work: Path, size: int, k: int) -> dict[str, Any]:
    """Return the figures of a peer at a size."""
    store = work / "stores" / f"{peer.name}-{size}"
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    common = ("--corpus", work / "corpus", "--size", size, "--k", k)
    try:
        if peer.apart is not None:
            more = (*common, "--store", store, "--package", environment.package)
            figures = environment.run("duel", *more)
            for side in ("peer", "ours"):
                environment.run(f"open-{side}", *more)  # into the page cache
                figures[f"open_{side}"] = environment.run(f"open-{side}", *more)
            return figures
        more = (*common, "--store", store / "store")
        return {**environment.run("build", *more), **environment.run("search", *more)}
    finally:
        shutil.rmtree(store)


def print_duel(size: int, figures: dict[str, Any]) -> None:
    banner(f"engdbram beside engram, in one process, {size:,} episodes")
    rows = [
        (
            name,
            f"{column['peer']['p50_ms']:.3f}",
            f"{column['ours']['p50_ms']:.3f}",
            f"{column['ratio']:.1f}",
            "" if column["agreement"] is None else f"{column['agreement']:.3f}",
        )
        for name, column in figures.items()
        if isinstance(column, dict) and "agreement" in column
    ]
    print_table(("median, ms", "engdbram", "engram", "ratio", "agreement"), rows)
    for name in ("ingest_per_s", "file_mb"):
        column = figures[name]
        rows = [(name, str(column["peer"]), str(column["ours"]), str(column["ratio"]), "")]
        print_table(("", "engdbram", "engram", "ratio", ""), rows)
    for side in ("peer", "ours"):
        print(f"fresh process, {side}: {figures[f'open_{side}']}")


def print_searches(size: int, peers: dict[str, dict[str, Any]]) -> None:
    banner(f"Vector search, each in its own process, {size:,} texts")
    ours = peers.get("engram", {}).get("p50_ms")
    rows = []
    for name, figures in peers.items():
        if "error" in figures:
            print(f"{name}: {figures['error']}")
            continue
        ratio = "" if ours is None else f"{figures['p50_ms'] / ours:.1f}"
        numbers = [f"{figures[key]:.3f}" for key in ("p50_ms", "p95_ms", "recall")]
        sizes = [f"{figures[key]:.1f}" for key in ("build_s", "size_mb", "rss_mb")]
        rows.append((name, *numbers[:2], ratio, numbers[2], *sizes))
    head = ("", "p50 ms", "p95 ms", "ratio", "recall", "build s", "MB", "RSS MB")
    print_table(head, rows)


def measured(
    peer: Peer, work: Path, sizes: list[int], k: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the figures of a peer at each size, or why there are none."""
    environment = Environment(peer, work)
    sys.stderr.write(f"{peer.name}: installing\n")
    try:
        environment.make()
    except DoesNotRunError as error:
        yield from ((size, {"error": str(error)}) for size in sizes)
        return
    for size in sizes:
        sys.stderr.write(f"{peer.name}: {size:,}\n")
        try:
            yield size, measure(peer, environment, work, size, k)
        except DoesNotRunError as error:
            yield size, {"error": str(error)}


@click.command()
@click.option("--sizes", default="1000,10000", show_default=True)
@click.option("--k", default=10, show_default=True)
@click.option("--queries", default=50, show_default=True)
@click.option("--texts", type=click.Path(exists=True, path_type=Path))
@click.option("--vectors", type=click.Path(exists=True, path_type=Path))
@click.option("--peers", "names", default=",".join(peer.name for peer in PEERS), show_default=True)
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), required=True)
def main(
    sizes: str,
    k: int,
    queries: int,
    texts: Path | None,
    vectors: Path | None,
    names: str,
    work: Path,
) -> None:
    """Measure engram beside other engines and print medians and ratios."""
    counts = sorted({int(size) for size in sizes.split(",")})
    work = work.absolute()
    share = write_corpus(work / "corpus", counts, queries, k, (texts, vectors))
    results: dict[str, Any] = {
        "benchmark": "peers",
        "machine": machine(),
        "versions": versions(),
        "settings": {"k": k, "queries": queries, "seed": SEED, "real_share_at_largest": share},
        "points": {str(size): {} for size in counts},
    }
    for peer in PEERS:
        if peer.name not in names.split(","):
            continue
        for size, figures in measured(peer, work, counts, k):
            results["points"][str(size)][peer.name] = figures
            (work / "peers.json").write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    for size in counts:
        point = dict(results["points"][str(size)])
        duel = point.pop("engdbram", {})
        if "error" in duel:
            point["engdbram"] = duel
        elif duel:
            print_duel(size, duel)
        print_searches(size, point)


if __name__ == "__main__":
    main()
