"""Embedding with the packaged model, against a bare session call and against naive batching.

`ENGRAM_BENCH_TEXTS` names a file of texts: a LoCoMo-format JSON file, or one text per line.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from engram.embedding import LocalModel, OnnxEmbedder, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

TEXTS_VARIABLE = "ENGRAM_BENCH_TEXTS"
SAMPLE = 512
NAIVE_ROWS = 256
SHORT = "Where did Ana say the spare key is?"

SUBJECTS = ("The ferry", "My sister", "Our old neighbour", "The committee", "A friend from school")
DEEDS = (
    "called.",
    "moved to Porto in spring.",
    "has been thinking about a new bicycle for weeks, and about what to do with the old one.",
    "found the letters in the attic.",
    (
        "wrote that the meeting is on Thursday, that the room is on the second floor, and that all"
        " are to bring the figures of last year, as nobody knows where they are after the move."
    ),
)
BUILT_IN = [f"{n}. {subject} {deed}" for n in range(8) for subject in SUBJECTS for deed in DEEDS]


def bench_texts() -> list[str]:
    path = os.environ.get(TEXTS_VARIABLE, "")
    if not path:
        return BUILT_IN
    content = Path(path).read_text(encoding="utf-8")
    texts = locomo_turns(json.loads(content)) if path.endswith(".json") else content.splitlines()
    random.Random(0).shuffle(texts)
    return texts[:SAMPLE]


def locomo_turns(conversations: list[dict[str, dict[str, object]]]) -> list[str]:
    return [
        turn["text"]
        for conversation in conversations
        for name, session in conversation["conversation"].items()
        if name.startswith("session_") and isinstance(session, list)
        for turn in session
    ]


@pytest.fixture(scope="module")
def local() -> LocalModel:
    return resolve("all-MiniLM-L6-v2-int8").local


class Bare:
    """onnxruntime and the tokenizer as one would call them without engram."""

    def __init__(self, local: LocalModel, threads: int) -> None:
        self.tokenizer = Tokenizer.from_file(str(local.tokenizer))
        self.tokenizer.enable_truncation(local.model.max_tokens)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(
            str(local.onnx), options, providers=["CPUExecutionProvider"]
        )

    def feed(self, texts: list[str]) -> dict[str, np.ndarray]:
        self.tokenizer.enable_padding()  # to the longest of the batch
        encoded = self.tokenizer.encode_batch(texts)
        ids = np.array([text.ids for text in encoded], np.int64)
        mask = np.array([text.attention_mask for text in encoded], np.int64)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

    def embed(self, texts: list[str]) -> np.ndarray:
        """Batches in the order they come, padded to the longest: what is usually done."""
        parts = []
        for start in range(0, len(texts), NAIVE_ROWS):
            feed = self.feed(texts[start : start + NAIVE_ROWS])
            mask = feed["attention_mask"][:, :, np.newaxis].astype(np.float32)
            summed = (self.session.run(None, feed)[0] * mask).sum(axis=1)
            parts.append(summed / np.linalg.norm(summed, axis=1, keepdims=True))
        return np.concatenate(parts)


def test_one_short_text_bare(benchmark: BenchmarkFixture, local: LocalModel) -> None:
    """Only the session call: the floor of the next one."""
    benchmark.group = "one short text"
    bare = Bare(local, 1)
    benchmark(bare.session.run, None, bare.feed([SHORT]))


def test_one_short_text(benchmark: BenchmarkFixture, local: LocalModel) -> None:
    benchmark.group = "one short text"
    embedder = OnnxEmbedder(local, threads=1, cached_texts=0)
    embedder.embed_query(SHORT)
    benchmark(embedder.embed_query, SHORT)


def measure_many(
    benchmark: BenchmarkFixture, embed: Callable[[list[str]], np.ndarray], texts: list[str]
) -> None:
    benchmark.group = "many texts"
    embed(texts[:1])
    benchmark.pedantic(embed, (texts,), rounds=3)
    benchmark.extra_info["texts"] = len(texts)
    if benchmark.stats is not None:  # it is None under --benchmark-disable
        benchmark.extra_info["texts_per_second"] = len(texts) / benchmark.stats.stats.min


@pytest.mark.parametrize("threads", [1, 2])
def test_many_texts_naively(benchmark: BenchmarkFixture, local: LocalModel, threads: int) -> None:
    measure_many(benchmark, Bare(local, threads).embed, bench_texts())


@pytest.mark.parametrize("threads", [1, 2])
def test_many_texts(benchmark: BenchmarkFixture, local: LocalModel, threads: int) -> None:
    embedder = OnnxEmbedder(local, threads=threads, cached_texts=0)
    measure_many(benchmark, embedder.embed, bench_texts())
