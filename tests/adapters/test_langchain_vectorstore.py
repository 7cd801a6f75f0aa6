"""`EngramVectorStore`: LangChain's own suite, and filters, scores, diversity and collections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests
from stand_ins import WordEmbedder

from engram import Engram
from engram.adapters.langchain import EngramVectorStore
from engram.adapters.langchain.embeddings import LangChainEmbedder
from engram.errors import Closed, InvalidArgument, InvalidType, ModelMismatch


class Words(Embeddings):
    """The tests' word embedder behind LangChain's interface."""

    def __init__(self, model: str = "words") -> None:
        self.model = model
        self._words = WordEmbedder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._words.vector(text).tolist()


@pytest.mark.filterwarnings("ignore:The test .* is marked with:pytest.PytestWarning")
@pytest.mark.asyncio
class TestStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, path: Path) -> Iterator[VectorStore]:
        with EngramVectorStore(path, self.get_embeddings()) as store:
            yield store


@pytest.fixture
def open_store(path: Path) -> Iterator[Callable[..., EngramVectorStore]]:
    with ExitStack() as stack:

        def opened(**options: object) -> EngramVectorStore:
            return stack.enter_context(
                EngramVectorStore(**{"path": path, "embedding": Words()} | options)
            )

        yield opened


@pytest.fixture
def store(open_store: Callable[..., EngramVectorStore]) -> EngramVectorStore:
    store = open_store()
    store.add_texts(
        ["green tea", "black tea", "green green tea", "fresh bread", "old cheese"],
        [
            {"year": 2020, "kind": {"name": "drink"}},
            {"year": 2021, "kind": {"name": "drink"}},
            {"year": 2022, "lang": "en"},
            {"year": 2023, "lang": None},
            {"year": "2024"},
        ],
        ids=["a", "b", "c", "d", "e"],
    )
    return store


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"year": 2021}, {"b"}),
        ({"year": {"$gte": 2021}}, {"b", "c", "d"}),
        ({"year": {"$gt": 2020, "$lt": 2023}}, {"b", "c"}),
        ({"year": {"$ne": 2020}}, {"b", "c", "d", "e"}),
        ({"kind": {"name": "drink"}, "year": 2020}, {"a"}),
        ({"lang": "en"}, {"c"}),
        ({"year": "2024"}, {"e"}),
        ({}, {"a", "b", "c", "d", "e"}),
        (None, {"a", "b", "c", "d", "e"}),
        ({"nothing": "such"}, set()),
    ],
)
def test_a_filter_applies_before_the_choice(store, wanted, expected):
    assert set(ids(store.similarity_search("tea", k=5, filter=wanted))) == expected
    if expected:
        [first] = store.similarity_search("cheese", k=1, filter=wanted)
        assert first.id in expected
    diverse = store.max_marginal_relevance_search("tea", k=5, filter=wanted)
    assert set(ids(diverse)) == expected
    retriever = store.as_retriever(search_kwargs={"k": 5, "filter": wanted})
    assert set(ids(retriever.invoke("tea"))) == expected


def test_scores_are_cosines_and_relevances_are_not_negative(store):
    words = WordEmbedder()
    query = words.vector("green green tea")
    scored = store.similarity_search_with_score("green green tea", k=5)
    for document, score in scored:
        assert score == pytest.approx(float(words.vector(document.page_content) @ query), abs=2e-3)
    assert [score for _, score in scored] == sorted((s for _, s in scored), reverse=True)
    assert min(score for _, score in scored) < 0.0
    relevant = store.similarity_search_with_relevance_scores("green green tea", k=5)
    assert [r for _, r in relevant] == [min(1.0, max(0.0, s)) for _, s in scored]
    threshold = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"k": 5, "score_threshold": 0.5}
    )
    assert ids(threshold.invoke("green green tea")) == [d.id for d, s in scored if s >= 0.5]


def test_a_search_by_vector_is_one_by_its_text(store):
    vector = Words().embed_query("green tea")
    doubled = [2.0 * number for number in vector]
    expected = store.similarity_search("green tea", k=3)
    assert store.similarity_search_by_vector(vector, k=3) == expected
    assert store.similarity_search_by_vector(doubled, k=3) == expected
    assert asyncio.run(store.asimilarity_search_by_vector(vector, k=3)) == expected
    for refused in ([1.0], [float("nan")] * 32):
        with pytest.raises(InvalidArgument, match="32 finite numbers"):
            store.similarity_search_by_vector(refused)


def test_diversity_is_that_of_the_true_vectors(store):
    texts = {
        i: d.page_content for i, d in zip("abcde", store.get_by_ids(list("abcde")), strict=True)
    }
    words = WordEmbedder()
    query = words.vector("green tea")
    vectors = {i: words.vector(text) for i, text in texts.items()}

    def naive(share: float, k: int) -> list[str]:
        chosen: list[str] = []
        while len(chosen) < k:
            chosen.append(
                max(
                    (i for i in vectors if i not in chosen),
                    key=lambda i: (
                        (
                            share * float(vectors[i] @ query)
                            - (1 - share)
                            * max((float(vectors[i] @ vectors[j]) for j in chosen), default=0.0)
                        )
                        if chosen
                        else float(vectors[i] @ query)
                    ),
                )
            )
        return chosen

    for share in (0.0, 0.3, 0.7, 1.0):
        found = store.max_marginal_relevance_search("green tea", 4, 5, share)
        assert ids(found) == naive(share, 4)
        by_vector = store.max_marginal_relevance_search_by_vector(query.tolist(), 4, 5, share)
        assert by_vector == found
    assert naive(0.3, 4) != naive(1.0, 4)
    awaited = store.amax_marginal_relevance_search("green tea", 4, 5, 0.3)
    assert ids(asyncio.run(awaited)) == naive(0.3, 4)
    mmr = store.as_retriever(search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 0.3})
    assert ids(mmr.invoke("green tea")) == naive(0.3, 2)


def test_a_long_document_is_found_by_its_nearest_part(tmp_path):
    """The packaged model embeds it in chunks; diversity goes by the one that is near."""
    noise = "The committee met again to talk about the budget of the harbour. " * 60
    with EngramVectorStore(tmp_path / "long.engram") as store:
        store.add_texts([noise + "Penguins huddle when it is cold.", noise], ids=["p", "n"])
        assert ids(store.similarity_search("penguins keeping warm", k=1)) == ["p"]
        assert ids(store.max_marginal_relevance_search("penguins keeping warm", k=1)) == ["p"]
        assert store.embeddings is None


def test_collections_and_agents_do_not_mix(open_store):
    one, two = open_store(collection="one"), open_store(collection="one.two")
    mine = open_store(collection="one", agent_id="me")
    for store, text in ((one, "tea one"), (two, "tea two"), (mine, "tea mine")):
        store.add_texts([text], ids=["same"])
    for store, text in ((one, "tea one"), (two, "tea two"), (mine, "tea mine")):
        assert store.get_by_ids(["same"]) == [Document(text, id="same")]
        assert [d.page_content for d in store.similarity_search("tea")] == [text]
    two.delete()
    assert two.similarity_search("tea") == []
    assert ids(one.similarity_search("tea")) == ["same"]


def test_deleting_everything_in_pages(store, path):
    store.add_texts([f"zanzibar {n}" for n in range(1100)])
    assert store.delete() is True
    assert store.similarity_search("zanzibar", k=10) == []
    store.close()
    assert b"zanzibar" not in path.read_bytes()


def test_a_document_is_an_episode_too(store, path):
    with Engram(path, embedder=LangChainEmbedder(Words())) as memory:
        [found] = memory.recall("fresh bread", 1)
        assert found.episode.content == "fresh bread"
        assert found.episode.provenance == "external"
        memory.forget(found.episode.id)
    assert store.get_by_ids(["d"]) == []


def test_replaced_text_is_gone(store):
    store.add_texts(["white wine"], [{"n": 1}], ids=["a"])
    assert store.get_by_ids(["a"]) == [Document("white wine", id="a", metadata={"n": 1})]
    assert "green tea" not in [d.page_content for d in store.similarity_search("green tea", k=9)]


def test_any_unicode_and_empty_texts(open_store):
    store = open_store()
    documents = [Document("", id="empty"), Document("Grüße 你好 \U0001f600\x00", id="\U0001f600")]
    assert store.add_documents(documents) == ["empty", "\U0001f600"]
    assert store.get_by_ids(["\U0001f600", "missing", "empty"]) == documents[::-1]
    assert len(store.similarity_search("", k=5)) == 2
    assert store.add_texts([]) == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: s.add_texts(["x", "y"], ids=["1"]), InvalidArgument),
        (lambda s: s.add_texts(["x", "y"], [{}]), InvalidArgument),
        (lambda s: s.add_texts(["x", "\ud800"]), InvalidArgument),
        (lambda s: s.add_texts(["x", 7]), InvalidType),
        (lambda s: s.add_texts(["x"], [{"f": object()}]), InvalidType),
        (lambda s: s.add_texts(["x"], [5]), InvalidType),
        (lambda s: s.add_texts(["x"], 5), InvalidType),
        (lambda s: s.add_texts(["x"], ids=[5]), InvalidType),
        (lambda s: s.add_texts(["x"], ids=5), InvalidType),
        (lambda s: s.add_texts("xyz"), InvalidType),
        (lambda s: s.similarity_search_by_vector(["x"]), InvalidType),
        (lambda s: s.similarity_search_by_vector(None), InvalidArgument),
        (lambda s: s.add_texts(["x"], colour="red"), InvalidType),
        (lambda s: s.delete("abc"), InvalidType),
        (lambda s: s.similarity_search("x", k=0), InvalidArgument),
        (lambda s: s.similarity_search("x", fliter={"year": 1}), InvalidType),
        (lambda s: s.similarity_search("x", filter="year"), InvalidType),
        (lambda s: s.similarity_search("x", filter={"year": {"$near": 1}}), InvalidArgument),
        (lambda s: s.similarity_search("x", filter={"$and": []}), InvalidArgument),
        (lambda s: s.max_marginal_relevance_search("x", lambda_mult=2.0), InvalidArgument),
        (lambda s: s.max_marginal_relevance_search("x", fetch_k=0), InvalidArgument),
    ],
)
def test_what_is_refused_changes_nothing(store, call, error):
    with pytest.raises(error):
        call(store)
    assert set(ids(store.similarity_search("tea", k=9))) == set("abcde")


def test_an_empty_id_is_an_id(store):
    assert store.add_texts(["x", "y"], ids=["", None])[0] == ""
    assert store.get_by_ids([""]) == [Document("x", id="")]


def test_what_embeds_nothing_is_refused():
    with pytest.raises(InvalidType, match="Embeddings"):
        EngramVectorStore(":memory:", 5)
    with pytest.raises(InvalidType, match="path"):
        EngramVectorStore(5)


class Zero(Words):
    """Has no direction for "nothing"."""

    def embed_query(self, text: str) -> list[float]:
        return [0.0] * 32 if text == "nothing" else super().embed_query(text)


def test_a_zero_vector_is_near_nothing(open_store):
    store = open_store(embedding=Zero())
    store.add_texts(["nothing", "green tea", "green stones in an old wall"])
    found = store.similarity_search_with_score("green tea")
    assert [d.page_content for d, _ in found] == [
        "green tea",
        "green stones in an old wall",
        "nothing",
    ]
    assert found[1][1] < 0.5
    assert found[2][1] == pytest.approx(0.0, abs=1e-12)
    assert [score for _, score in store.similarity_search_with_score("nothing")] == pytest.approx(
        [0.0] * 3, abs=1e-12
    )


def test_from_texts_and_from_documents(path):
    with EngramVectorStore.from_texts(
        ["tea", "bread"], Words(), [{"n": 1}, {"n": 2}], ids=["a", "b"], path=path
    ) as store:
        assert ids(store.similarity_search("bread", k=1)) == ["b"]
        assert isinstance(store.embeddings, Words)
    documents = [Document("wine", id="w"), Document("milk")]
    with EngramVectorStore.from_documents(documents, Words(), path=path) as store:
        assert set(ids(store.similarity_search("wine", k=4))) > {"a", "b", "w"}

    async def awaited() -> list[Document]:
        store = await EngramVectorStore.afrom_texts(["x"], Words(), path=path, collection="c")
        with store:
            return await store.asimilarity_search("x")

    assert [d.page_content for d in asyncio.run(awaited())] == ["x"]


def test_a_refused_from_texts_leaves_no_open_store(path):
    with pytest.raises(InvalidArgument):
        EngramVectorStore.from_texts(["tea"], Words(), ids=["a", "b"], path=path)
    path.unlink()


def test_another_model_is_refused(open_store):
    open_store().add_texts(["tea"])
    for other in (
        {"embedding": Words("other words")},
        {"embedding": DeterministicFakeEmbedding(size=32)},
        {"fingerprint": "mine"},
        {"embedding": DeterministicFakeEmbedding(size=6)},
    ):
        with pytest.raises(ModelMismatch):
            open_store(**other)


def test_a_fingerprint_of_ones_own(path):
    for model in ("spelt one way", "spelt another"):
        with EngramVectorStore(path, Words(model), fingerprint="the same") as store:
            store.add_texts([model])
            assert store.similarity_search(model, k=1)[0].page_content == model


def test_an_encrypted_store(tmp_path):
    path = tmp_path / "secret.engram"
    with EngramVectorStore(path, Words(), key="sesame") as store:
        store.add_texts(["zanzibar"], ids=["z"])
    assert b"zanzibar" not in path.read_bytes()
    with EngramVectorStore(path, Words(), key="sesame") as store:
        assert ids(store.similarity_search("zanzibar")) == ["z"]
    with pytest.raises(Closed):
        store.similarity_search("zanzibar")


def test_writers_in_many_threads(open_store):
    stores = [open_store(), open_store()]

    def write(at: int) -> None:
        for n in range(5):
            stores[at % 2].add_texts([f"tea {at} {n}"], ids=[f"{at}-{n}"])
            stores[at % 2].add_texts([f"shared {at}"], ids=["shared"])

    threads = [threading.Thread(target=write, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {document.id for document in stores[0].similarity_search("tea", k=100)}
    assert found == {f"{at}-{n}" for at in range(4) for n in range(5)} | {"shared"}


def test_many_documents_are_compared_exactly(open_store):
    store = open_store()
    rng = np.random.default_rng(7)
    names = [f"w{n}" for n in range(200)]
    texts = [" ".join(rng.choice(names, 4)) for _ in range(6000)]
    store.add_texts(texts, [{"n": n % 7} for n in range(6000)], ids=[str(n) for n in range(6000)])
    words = WordEmbedder()
    matrix = np.array([words.vector(text) for text in texts])
    for query in ("w1 w2", "w3 w4 w5"):
        cosines = matrix @ words.vector(query)
        found = store.similarity_search_with_score(query, k=10, filter={"n": 3})
        best = np.sort(cosines[3::7])[::-1][:10]
        assert np.allclose([score for _, score in found], best, atol=2e-3)
