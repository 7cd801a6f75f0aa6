from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer

from engram.embedding import LocalModel, OnnxEmbedder, embed_documents, embed_query
from engram.embedding.session import ModelSession
from engram.errors import ModelCorrupt

if TYPE_CHECKING:
    from collections.abc import Callable

SENTENCES = (
    "Ana lives in Lisbon now.",
    "The ferry to the island leaves at nine, unless the wind is too strong for the small boats.",
    "ok",
    "",
    "We moved the database to the new server on Tuesday and nobody noticed anything at all.",
    "Her bicycle was stolen in March; the insurance paid for a new one in April.",
    "La réunion est reportée à jeudi.",
    "今天下雨了",
)


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


# The packaged model


def test_pooling_is_the_masked_mean(packaged: OnnxEmbedder) -> None:
    """The reference runs each text by itself, without padding, and averages in float64."""
    tokenizer = Tokenizer.from_file(str(packaged.local.tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(
        str(packaged.local.onnx), providers=["CPUExecutionProvider"]
    )
    vectors = packaged.embed(list(SENTENCES))
    for text, vector in zip(SENTENCES, vectors, strict=True):
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        feed["token_type_ids"] = np.zeros_like(ids)
        mean = session.run(None, feed)[0][0].astype(np.float64).mean(axis=0)
        assert np.abs(vector - mean / np.linalg.norm(mean)).max() < 1e-5


def test_vectors_are_unit_float32(packaged: OnnxEmbedder) -> None:
    vectors, counts = packaged.embed_documents(list(SENTENCES))
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(SENTENCES), packaged.dim) == (8, 384)
    assert counts.tolist() == [1] * 8
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6


def test_related_texts_are_near(packaged: OnnxEmbedder) -> None:
    query = packaged.embed_query("Where does Ana live?")
    nearest = int(np.argmax(packaged.embed(list(SENTENCES)) @ query))
    assert SENTENCES[nearest] == "Ana lives in Lisbon now."


def test_a_vector_depends_neither_on_order_nor_on_company(packaged: OnnxEmbedder) -> None:
    texts = [f"{sentence} {other}" for sentence in SENTENCES for other in SENTENCES[:3]]
    together = packaged.embed(texts)
    order = list(range(len(texts)))
    random.Random(3).shuffle(order)
    shuffled = packaged.embed([texts[at] for at in order])
    assert np.allclose(shuffled, together[order], atol=1e-6)
    alone = np.concatenate([packaged.embed([text]) for text in texts])
    assert np.allclose(alone, together, atol=1e-6)


def test_the_number_of_threads_changes_nothing(
    packaged: OnnxEmbedder, packaged_local: LocalModel
) -> None:
    single = OnnxEmbedder(packaged_local, threads=1)
    assert np.allclose(single.embed(list(SENTENCES)), packaged.embed(list(SENTENCES)), atol=1e-6)


@pytest.mark.parametrize("place", [0.01, 0.5, 0.99])
def test_a_needle_anywhere_in_a_long_text_is_found(packaged: OnnxEmbedder, place: float) -> None:
    filler = ["The quarterly report lists costs for paper, ink, postage and coffee."] * 330
    filler.insert(int(place * len(filler)), "Grandmother hid the silver key under the beehive.")
    vectors, counts = packaged.embed_documents([" ".join(filler)])
    assert counts[0] == len(vectors) >= 40  # some 5,000 tokens
    query = packaged.embed_query("Where is the silver key hidden?")
    unrelated = packaged.embed(["Paper and ink cost more in this quarter."])[0]
    best = float((vectors @ query).max())
    assert best > cosine(query, unrelated) + 0.05
    assert best > float(np.median(vectors @ query)) + 0.1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \t\n",
        "\x00",
        "a\x00b",
        "🦜" * 40,
        "👩‍👩‍👧‍👦",
        "漢字かな交じり文",
        "\ud800 broken \udfff",
        "\u202e",
        "a" * 1_000_000,
    ],
    ids=range(10),
)
def test_any_string_has_a_vector(packaged: OnnxEmbedder, text: str) -> None:
    vectors, counts = embed_documents(packaged, [text])
    assert len(vectors) == counts[0] >= 1
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert embed_query(packaged, text).shape == (384,)


def test_a_lone_surrogate_reads_as_the_replacement_character(packaged: OnnxEmbedder) -> None:
    broken, replaced = packaged.embed(["one \ud800 two", "one \ufffd two"])
    assert np.array_equal(broken, replaced)


def test_the_registry_knows_dimension_and_fingerprint_without_loading(
    packaged_local: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.embedding.embedder.ModelSession", None)
    monkeypatch.setattr("engram.embedding.embedder.TextTokens", None)
    monkeypatch.setattr("engram.embedding.embedder.check_sha256", None)
    embedder = OnnxEmbedder(packaged_local)
    assert (embedder.name, embedder.dim) == ("all-MiniLM-L6-v2-int8", 384)
    assert embedder.fingerprint == "all-MiniLM-L6-v2-int8:c5e52aeee28a343c"


# The small model, whose every number can be computed by hand


def test_mean_pooling_leaves_padding_out(
    small: Callable[..., OnnxEmbedder], table: dict[str, np.ndarray]
) -> None:
    texts = ["a", "a b c c b a", "c b"]
    for text, vector in zip(texts, small().embed(texts), strict=True):
        mean = np.mean([table[word] for word in ("[CLS]", *text.split(), "[SEP]")], axis=0)
        assert np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


def test_cls_pooling_takes_the_first_token(
    small: Callable[..., OnnxEmbedder], table: dict[str, np.ndarray]
) -> None:
    vector = small(pooling="cls").embed(["a b"])[0]
    assert np.allclose(vector, table["[CLS]"] / np.linalg.norm(table["[CLS]"]), atol=1e-6)


def test_queries_get_the_prefix_and_documents_do_not(small: Callable[..., OnnxEmbedder]) -> None:
    embedder = small(query_prefix="query: ")
    assert np.array_equal(embedder.embed_query("a b"), embedder.embed(["query: a b"])[0])
    assert not np.allclose(embedder.embed_query("a b"), embedder.embed(["a b"])[0], atol=1e-3)


def test_a_long_text_is_the_normalised_mean_of_its_chunks(
    small: Callable[..., OnnxEmbedder],
) -> None:
    embedder = small()
    text = "a b c " * 9
    chunks, counts = embedder.embed_documents([text, "a"])
    assert counts.tolist() == [4, 1]
    mean = chunks[:4].mean(axis=0)
    assert np.allclose(embedder.embed([text, "a"])[0], mean / np.linalg.norm(mean), atol=1e-6)
    assert np.allclose(embedder.embed_query(text), mean / np.linalg.norm(mean), atol=1e-6)


def test_a_megabyte_of_words_is_neither_cut_nor_run_at_once(
    small: Callable[..., OnnxEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    vectors = ModelSession.vectors

    def counted(self: ModelSession, rows: list[np.ndarray]) -> np.ndarray:
        seen.append((len(rows), max(map(len, rows))))
        return vectors(self, rows)

    monkeypatch.setattr(ModelSession, "vectors", counted)
    embedder = small(max_tokens=256)
    words = 500_000
    _, counts = embedder.embed_documents(["a " * words])
    assert counts[0] * (256 - 2) >= words
    assert sum(rows for rows, _ in seen) == counts[0]
    assert all(rows * length <= 1536 for rows, length in seen)
    assert len(embedder._documents) == 0


def test_equal_texts_are_embedded_once_and_remembered(
    small: Callable[..., OnnxEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    run = ModelSession._run

    def counted(self: ModelSession, rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        seen.append(len(rows))
        return run(self, rows)

    monkeypatch.setattr(ModelSession, "_run", counted)
    embedder = small(cached_texts=2)
    first, counts = embedder.embed_documents(["a", "b", "a"])
    assert (sum(seen), counts.tolist()) == (2, [1, 1, 1])
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(embedder.embed(["b", "a"]), first[1::-1])
    assert sum(seen) == 2
    embedder.embed(["c"])  # puts out b, unused for longest
    embedder.embed(["a"])
    assert sum(seen) == 3
    embedder.embed(["b"])
    assert sum(seen) == 4
    embedder.embed_query("a")[:] = 0  # the caller's own copy
    assert embedder.embed_query("a").any()
    embedder.query_token_vectors("a")[:] = 0
    assert embedder.query_token_vectors("a").any()
    assert sum(seen) == 5


def test_models_that_quantise_while_running_get_one_row_at_a_time(
    small: Callable[..., OnnxEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = small()
    plain = embedder.embed(["a", "b c", "c"])
    (embedder.local.onnx.parent / "tokenizer.json").touch()
    monkeypatch.setattr("engram.embedding.session.contains", lambda path, needle: True)
    careful = small()
    assert careful._load()[1].max_rows == 1
    assert np.allclose(careful.embed(["a", "b c", "c"]), plain, atol=1e-6)


def test_nothing_to_embed(small: Callable[..., OnnxEmbedder]) -> None:
    assert small().embed([]).shape == (0, 4)
    vectors, counts = small().embed_documents([])
    assert (vectors.shape, counts.shape) == ((0, 4), (0,))


def test_threads_share_one_load(
    small: Callable[..., OnnxEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[object] = []

    def opened(*args: object) -> ModelSession:
        loads.append(args)
        return ModelSession(*args)

    monkeypatch.setattr("engram.embedding.embedder.ModelSession", opened)
    embedder = small(threads=2)
    texts = [f"{'a ' * at}b" for at in range(1, 60)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: embedder.embed(texts), range(16)))
    assert len(loads) == 1
    assert all(np.array_equal(result, results[0]) for result in results)


def test_an_embedder_works_on_in_a_forked_process() -> None:
    program = """
import os, signal
from engram.embedding import OnnxEmbedder, resolve
embedder = OnnxEmbedder(resolve("all-MiniLM-L6-v2-int8").local, threads=2, cached_texts=0)
texts = ["one", "two words", "three words now"] * 8
before = embedder.embed(texts)
child = os.fork()
if child == 0:
    signal.alarm(60)  # a hang ends as a failure
    os._exit(0 if (embedder.embed(texts) == before).all() else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# What the files must be


def test_a_wrong_checksum_names_file_and_digests(small: Callable[..., OnnxEmbedder]) -> None:
    embedder = small()
    right = embedder.local.model.onnx.sha256
    with embedder.local.onnx.open("ab") as file:
        file.write(b"\0")
    wrong = hashlib.sha256(embedder.local.onnx.read_bytes()).hexdigest()
    with pytest.raises(ModelCorrupt) as raised:
        embedder.embed(["a"])
    assert all(part in str(raised.value) for part in (str(embedder.local.onnx), right, wrong))


def test_a_wrong_tokenizer_is_refused_too(packaged_local: LocalModel, tmp_path: object) -> None:
    other = tmp_path / "tokenizer.json"
    other.write_bytes(packaged_local.tokenizer.read_bytes() + b"\n")
    with pytest.raises(ModelCorrupt, match=r"tokenizer\.json"):
        OnnxEmbedder(replace(packaged_local, tokenizer=other)).embed_query("a")


@pytest.mark.parametrize("which", ["onnx", "tokenizer"])
def test_files_that_are_something_else(small: Callable[..., OnnxEmbedder], which: str) -> None:
    embedder = small()
    unchecked = msgspec.structs.replace(
        embedder.local.model,
        onnx=msgspec.structs.replace(embedder.local.model.onnx, sha256=""),
    )
    path = getattr(embedder.local, which)
    path.write_bytes(b"something else")
    with pytest.raises(ModelCorrupt, match=path.name):
        OnnxEmbedder(replace(embedder.local, model=unchecked)).embed(["a"])


def test_the_fingerprint_tells_whatever_decides_the_vectors(
    small: Callable[..., OnnxEmbedder],
) -> None:
    embedders = [
        small(),
        small(pooling="cls"),
        small(max_tokens=12),
        small(query_prefix="query: "),
    ]
    with embedders[0].local.tokenizer.open("ab") as file:
        prints = [embedder.fingerprint for embedder in embedders]
        file.write(b"\n")
    prints.append(small().fingerprint)
    assert len(set(prints)) == 5
    assert all(fingerprint.startswith("small:") for fingerprint in prints)
