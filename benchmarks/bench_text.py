"""Three ways to make FTS5 find words in scripts without spaces, by what a write costs.

`plain` indexes the text as it is (and finds no word inside a Chinese sentence), `segmented` is what
engram does, `python` is an FTS5 tokenizer written in Python that splits the same way.
"""

from __future__ import annotations

import itertools

import apsw
import apsw.fts5
import pytest
from bench_engine import sentences
from pytest_benchmark.fixture import BenchmarkFixture

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
