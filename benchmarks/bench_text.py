"""Full text: what indexing costs, and ranking by FTS5 against the index.

Three ways to make FTS5 find words in scripts without spaces, by what a write costs: `plain` indexes
the text as it is (and finds no word inside a Chinese sentence), `segmented` is what engram does,
`python` is an FTS5 tokenizer written in Python that splits the same way.

Segments of words are measured without a store: `build`, `merge`, and ranking a hundred thousand
texts by all their words or among the allowed rows only.

Searches are of questions of 8 to 15 words over texts of 12, the words as unequal as in a language:
the n-th is n times rarer than the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import apsw.fts5
import numpy as np
import pytest
from bench_engine import FreeVectors, sentences
from pytest_benchmark.fixture import BenchmarkFixture

from engram import Engram, ObserveInput
from engram.index import DEFAULT_BUDGET, EpisodeIndex, Shelf, episode_index
from engram.index.ranking import Part, rank
from engram.index.words import WordSegment, build, merge
from engram.storage import EpisodeFilter, Store
from engram.storage.segment import searchable

ROWS = 5_000
LATIN = list(itertools.islice(sentences(), ROWS))
HAN = [f"第{n}周我和小王讨论了预算和路线图,然后在Python里写代码" for n in range(ROWS)]


def python_tokenizer(
    connection: apsw.Connection, arguments: list[str]
) -> apsw.fts5.TokenizerResult:
    inner = connection.fts5_tokenizer("unicode61", arguments)

    def tokenize(utf8: bytes, flags: int, locale: str | None) -> list[tuple[str, ...]]:
        text = searchable(utf8.decode()).encode()
        return [tuple(terms) for _, _, *terms in inner(text, flags, locale)]

    return tokenize


@pytest.mark.parametrize("script", ["latin", "han"])
@pytest.mark.parametrize("way", ["plain", "segmented", "python"])
def test_index(benchmark: BenchmarkFixture, script: str, way: str) -> None:
    texts = LATIN if script == "latin" else HAN

    def fresh() -> tuple[tuple[apsw.Connection], dict[str, object]]:
        connection = apsw.Connection(":memory:")
        connection.register_fts5_tokenizer("python", python_tokenizer)
        tokenizer = "python" if way == "python" else "unicode61 remove_diacritics 2"
        connection.execute(f"CREATE VIRTUAL TABLE t USING fts5(body, tokenize='{tokenizer}')")
        return (connection,), {}

    def index(connection: apsw.Connection) -> None:
        with connection:
            rows = ((searchable(text) if way == "segmented" else text,) for text in texts)
            connection.executemany("INSERT INTO t VALUES (?)", rows)

    benchmark.pedantic(index, setup=fresh, rounds=5)


SIZES = (10_000, 100_000)
VOCABULARY = 30_000


def zipfian(count: int, shortest: int, longest: int, seed: int) -> Iterator[str]:
    chance = np.random.default_rng(seed)
    shares = 1 / np.arange(1, VOCABULARY + 1)
    lengths = chance.integers(shortest, longest + 1, count)
    words = chance.choice(VOCABULARY, lengths.sum(), p=shares / shares.sum())
    for text in np.split(words, np.cumsum(lengths)[:-1]):
        yield " ".join(f"w{word}" for word in text)


@pytest.fixture(scope="module", params=SIZES, ids=str)
def large(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("words") / "words.engram"
    with Engram(path, embedder=FreeVectors()) as memory:
        texts = zipfian(request.param, 8, 16, 1)
        while batch := list(itertools.islice(texts, 10_000)):
            memory.observe_many(
                ObserveInput(text, tags=[f"t{number % 100}"]) for number, text in enumerate(batch)
            )
    return path


@pytest.fixture(params=["fts5", "segments"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "fts5":
        # A store without segments leaves words to the table.
        monkeypatch.setattr(episode_index, "TAIL_ROWS", 2**62)
    return str(request.param)


@contextmanager
def indexed(path: Path) -> Iterator[EpisodeIndex]:
    store = Store(path, 0)
    with store.reading():
        model = store.model()
        assert model is not None
        index = EpisodeIndex(store, model, Shelf(None), DEFAULT_BUDGET)
        index.refresh()
        yield index
    store.close()


def asking(ask: Callable[[str], object]) -> Callable[[], object]:
    """One call is one question, each the next of fifty."""
    questions = itertools.cycle(list(zipfian(50, 8, 15, 2)))
    ask(next(questions))
    return lambda: ask(next(questions))


@pytest.mark.parametrize("tags", [None, ["t7"]], ids=["all", "tagged"])
def test_hybrid_recall(
    benchmark: BenchmarkFixture, large: Path, way: str, tags: list[str] | None
) -> None:
    with Engram(large, embedder=FreeVectors()) as memory:
        ask = asking(lambda text: memory.recall(text, tags=tags))
        benchmark.pedantic(ask, rounds=100)


@pytest.mark.parametrize(
    "allowed", [EpisodeFilter(), EpisodeFilter(tags=("t7",))], ids=["all", "tagged"]
)
def test_text_side(
    benchmark: BenchmarkFixture, large: Path, way: str, allowed: EpisodeFilter
) -> None:
    with indexed(large) as index:
        benchmark.pedantic(asking(lambda text: index.match(text, allowed, 40)), rounds=100)


def test_build(benchmark: BenchmarkFixture, large: Path) -> None:
    with indexed(large) as index:

        def build_anew() -> None:
            index.clear()
            index.refresh()

        benchmark.pedantic(build_anew, rounds=3)


def no_words(body: bytes) -> list[str]:
    raise NotImplementedError


@pytest.fixture(scope="module")
def segment() -> WordSegment:
    return build([text.encode() for text in zipfian(SIZES[-1], 8, 16, 1)], no_words)


def test_build_segment(benchmark: BenchmarkFixture) -> None:
    bodies = [text.encode() for text in zipfian(SIZES[-1], 8, 16, 1)]
    benchmark.pedantic(lambda: build(bodies, no_words), rounds=5)


def test_merge_segments(benchmark: BenchmarkFixture, segment: WordSegment) -> None:
    live = np.random.default_rng(1).random(len(segment)) < 0.9
    benchmark.pedantic(lambda: merge([segment, segment], [live, None]), rounds=5)


@pytest.mark.parametrize("way", ["all", "half dead", "masked", "1000 listed"])
def test_rank_segment(benchmark: BenchmarkFixture, segment: WordSegment, way: str) -> None:
    chance = np.random.default_rng(1)
    half = chance.random(len(segment)) < 0.5
    live = half if way == "half dead" else None
    allowed = {
        "masked": half,
        "1000 listed": np.sort(chance.choice(len(segment), 1000, replace=False)).astype(np.uint32),
    }.get(way)
    kept = segment.lengths if live is None else segment.lengths[live]
    part = Part(segment, len(kept), int(kept.sum()), live, allowed)
    ask = asking(lambda text: rank([part], list(dict.fromkeys(text.split())), 40))
    benchmark.pedantic(ask, rounds=100)
