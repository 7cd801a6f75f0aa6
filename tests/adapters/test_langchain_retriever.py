"""`EngramRetriever`: LangChain's own suite, and what the documents say beside their text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnablePassthrough
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError
from stand_ins import WordEmbedder

from engram import AsyncEngram, Engram
from engram.adapters.langchain import EngramRetriever
from engram.errors import EngramError, InvalidArgument, InvalidType

TEXTS = ["Ivan joined Globex", "Globex makes kites", "Mary bakes bread", "Ivan flies kites"]


@pytest.fixture
def filled(memory: Engram) -> Engram:
    for text in TEXTS:
        memory.observe(text, provenance="user")
    return memory


@pytest.mark.filterwarnings("ignore:The test .* is marked with:pytest.PytestWarning")
@pytest.mark.asyncio
class TestStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _store(self, filled: Engram) -> None:
        self.memory = filled

    @property
    def retriever_constructor(self) -> type[EngramRetriever]:
        return EngramRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"engram": self.memory}

    @property
    def retriever_query_example(self) -> str:
        return "Ivan Globex"


def test_a_document_says_where_it_comes_from(memory, clock):
    uid = memory.observe("Ivan joined Globex", provenance="tool", quarantined=True)
    [document] = EngramRetriever(engram=memory).invoke("Ivan")
    [result] = memory.recall("Ivan")
    assert document == Document(
        "Ivan joined Globex",
        id=uid,
        metadata={
            "id": uid,
            "score": result.score,
            "timestamp": clock.now.isoformat(),
            "importance": 1.0,
            "provenance": "tool",
            "quarantined": True,
        },
    )
    assert datetime.fromisoformat(document.metadata["timestamp"]) == clock.now


def test_documents_are_what_recall_returns_in_its_order(filled):
    for mode in ("hybrid", "cosine", "spreading"):
        expected = [r.episode.id for r in filled.recall("Ivan kites", 3, mode=mode)]
        retriever = EngramRetriever(engram=filled, k=3, mode=mode)
        assert [d.id for d in retriever.invoke("Ivan kites")] == expected
        assert [d.id for d in asyncio.run(retriever.ainvoke("Ivan kites"))] == expected


def test_an_agents_retriever_finds_its_own(open_memory):
    open_memory("a").observe("tea for a")
    open_memory("b").observe("tea for b")
    [document] = EngramRetriever(engram=open_memory("a")).invoke("tea")
    assert document.page_content == "tea for a"


@pytest.fixture
def labelled(memory: Engram) -> Engram:
    memory.observe("tea one", tags=["x", "y"], actors=["user"], provenance="user")
    memory.observe("tea two", tags=["x"], quarantined=True)
    memory.observe("tea three", timestamp=datetime(2020, 1, 1, tzinfo=UTC), provenance="tool")
    return memory


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"filters": {"tags": ["x"]}}, {"tea one", "tea two"}),
        ({"filters": {"tags": ["x", "y"]}}, {"tea one"}),
        ({"filters": {"actors": ["user"]}}, {"tea one"}),
        ({"filters": {"provenance": "user"}}, {"tea one"}),
        ({"filters": {"provenance": ["tool", "user"]}}, {"tea one", "tea three"}),
        ({"filters": {"exclude_quarantined": True}}, {"tea one", "tea three"}),
        ({"filters": {"until": datetime(2021, 1, 1, tzinfo=UTC)}}, {"tea three"}),
        ({"filters": {"since": datetime(2021, 1, 1, tzinfo=UTC)}}, {"tea one", "tea two"}),
        ({"as_of": datetime(2021, 1, 1, tzinfo=UTC)}, {"tea three"}),
        ({"mode": "cosine", "min_score": 0.999}, {"tea one"}),
        ({"k": 1}, {"tea one"}),
    ],
)
def test_filters(labelled, options, expected):
    found = EngramRetriever(engram=labelled, **options).invoke("tea one")
    assert {d.page_content for d in found} == expected
    found = EngramRetriever(engram=labelled).invoke("tea one", **options)
    assert {d.page_content for d in found} == expected


def test_a_filter_that_can_be_read_once_filters_every_call(labelled):
    retriever = EngramRetriever(engram=labelled, filters={"tags": iter(["x", "y"])})
    for _ in range(2):
        assert [d.page_content for d in retriever.invoke("tea")] == ["tea one"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"k": 0}, ValidationError),
        ({"k": 4097}, ValidationError),
        ({"mode": "nearest"}, ValidationError),
        ({"kind": "procedural"}, ValidationError),
        ({"filters": {"provenance": "nobody"}}, ValidationError),
        ({"filters": {"tags": "x"}}, InvalidType),
        ({"filters": {"colour": "red"}}, InvalidType),
        ({"filter": {"tags": ["x"]}}, ValidationError),
    ],
)
def test_what_is_refused_is_refused_when_it_is_made(memory, options, error):
    with pytest.raises(error):
        EngramRetriever(engram=memory, **options)


@pytest.mark.parametrize(
    ("instead", "error", "said"),
    [
        ({"k": None}, InvalidArgument, "k is refused"),
        ({"mode": "nearest"}, InvalidArgument, "mode is refused"),
        ({"filters": {"provenance": "nobody"}}, InvalidArgument, "provenance must be"),
        ({"filters": {"colour": "red"}}, InvalidType, "'colour'"),
        ({"tags": ["x"]}, InvalidType, "unexpected keyword argument 'tags'"),
        ({"exclude_quarantined": False}, InvalidType, "'exclude_quarantined'"),
        ({"accuracy": "exact"}, InvalidType, "'accuracy'"),
    ],
)
def test_what_a_call_passes_is_checked_as_attributes_are(labelled, instead, error, said):
    retriever = EngramRetriever(engram=labelled, filters={"exclude_quarantined": True})
    with pytest.raises(error, match=said) as refused:
        retriever.invoke("tea", **instead)
    assert "recall" not in str(refused.value)
    with pytest.raises(error):
        asyncio.run(retriever.ainvoke("tea", **instead))


def test_what_a_call_passes_holds_for_that_call(labelled):
    retriever = EngramRetriever(engram=labelled, filters={"exclude_quarantined": True}, k=5)
    assert len(retriever.invoke("tea", filters=None, as_of=None)) == 3
    assert len(retriever.invoke("tea")) == 2
    with pytest.raises(ValidationError):
        retriever.k = 0


def test_the_memory_must_be_an_engram():
    with pytest.raises(ValidationError, match="Engram"):
        EngramRetriever(engram=AsyncEngram())


def test_a_refused_call_is_an_error_of_engram(filled):
    with pytest.raises(InvalidArgument, match="k is refused"):
        EngramRetriever(engram=filled).invoke("tea", k=0)
    filled.close()
    with pytest.raises(EngramError):
        EngramRetriever(engram=filled).invoke("tea")


def test_facts_are_found_where_they_are_asked_for(memory, clock):
    said = memory.observe("Ivan flies kites", provenance="user")
    fact = memory.assert_fact("Ivan", "works_at", "Globex", confidence=0.75)
    both = EngramRetriever(engram=memory, kind="any").invoke("Ivan works_at Globex")
    assert [(d.id, d.metadata["kind"]) for d in both] == [(fact, "semantic"), (said, "episodic")]
    [found] = EngramRetriever(engram=memory, kind="semantic").invoke("Ivan works_at Globex")
    [result] = memory.recall_memories("Ivan works_at Globex", kind="semantic")
    assert found == Document(
        "Ivan works_at Globex",
        id=fact,
        metadata={
            "id": fact,
            "score": result.score,
            "timestamp": clock.now.isoformat(),
            "importance": 0.75,
            "provenance": "unknown",
            "quarantined": False,
            "kind": "semantic",
        },
    )
    [only] = EngramRetriever(engram=memory).invoke("Ivan works_at Globex")
    assert only.id == said
    assert "kind" not in only.metadata
    assert len(EngramRetriever(engram=memory).invoke("Ivan", kind="any")) == 2


def _joined(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def test_a_chain_reads_what_was_retrieved(filled):
    seen: list[str] = []
    chain = (
        {
            "context": EngramRetriever(engram=filled, k=2) | _joined,
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("{context}\n\n{question}")
        | (lambda prompt: seen.append(prompt.to_string()) or prompt)
        | FakeListChatModel(responses=["At Globex."])
        | StrOutputParser()
    )
    assert chain.invoke("Where is Ivan?") == "At Globex."
    assert "Ivan joined Globex" in seen[0]
    assert asyncio.run(chain.ainvoke("Where is Ivan?")) == "At Globex."


def test_batches(filled):
    retriever = EngramRetriever(engram=filled, k=1)
    expected = ["Mary bakes bread", "Globex makes kites"]
    queries = ["bread baked by Mary", "Globex makes"]
    assert [d.page_content for [d] in retriever.batch(queries)] == expected
    assert [d.page_content for [d] in asyncio.run(retriever.abatch(queries))] == expected


def test_callbacks_see_the_documents_and_the_errors(filled):
    calls: list[tuple[str, object]] = []

    class Recorder(BaseCallbackHandler):
        def on_retriever_start(self, serialized: object, query: str, **_: object) -> None:
            calls.append(("start", query))

        def on_retriever_end(self, documents: object, **_: object) -> None:
            calls.append(("end", documents))

        def on_retriever_error(self, error: BaseException, **_: object) -> None:
            calls.append(("error", type(error)))

    retriever = EngramRetriever(engram=filled, k=1)
    found = retriever.invoke("bread", config={"callbacks": [Recorder()]})
    assert calls == [("start", "bread"), ("end", found)]
    calls.clear()
    asyncio.run(retriever.ainvoke("bread", config={"callbacks": [Recorder()]}))
    assert calls == [("start", "bread"), ("end", found)]
    calls.clear()
    with pytest.raises(InvalidArgument):
        retriever.invoke("bread", config={"callbacks": [Recorder()]}, k=-1)
    assert calls == [("start", "bread"), ("error", InvalidArgument)]


def test_k_can_be_configured_for_a_run(filled):
    retriever = EngramRetriever(engram=filled).configurable_fields(k=ConfigurableField(id="k"))
    assert len(retriever.invoke("Ivan", config={"configurable": {"k": 2}})) == 2


class Waits(WordEmbedder):
    """Says when it is asked for "wait", and goes on when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def embed(self, texts: list[str]) -> Any:
        if texts == ["wait"]:
            self.reached.set()
            assert self.may_go_on.wait(30)
        return super().embed(texts)


def test_async_calls_leave_the_loop_free(open_memory):
    embedder = Waits()
    memory = open_memory(embedder=embedder)
    memory.observe("tea")

    async def both() -> list[Document]:
        waiting = asyncio.create_task(EngramRetriever(engram=memory).ainvoke("wait"))
        await asyncio.to_thread(embedder.reached.wait, 30)
        embedder.may_go_on.set()
        return await waiting

    assert len(asyncio.run(both())) == 1


def test_its_repr_shows_no_store(filled: Engram, open_memory: Callable[..., Engram]):
    assert "Engram object" not in repr(EngramRetriever(engram=filled))
