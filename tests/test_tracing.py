"""OpenTelemetry: spans and metrics of every face, and never a word of what is stored."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode
from stand_ins import WordEmbedder
from traced import Telemetry

from engram import AsyncEngram, Engram, ObserveInput, StubLLMAdapter
from engram.engine.operations import OPERATIONS
from engram.errors import EngramError, InvalidArgument, NotFound
from engram.experience import ExperienceMemory
from engram.experience.operations import OPERATIONS as EXPERIENCE
from engram.items import DocumentMemory, ItemPut
from engram.items.operations import DOCUMENTS
from engram.items.operations import OPERATIONS as ITEMS
from engram.ledger import OPERATIONS as LEDGER
from engram.ledger import Ledger
from engram.tracing import METRICS

PAGE = Path(__file__).parents[1] / "docs/reference/tracing.md"
STAGES = {"engram.embed", "engram.rank", "engram.read", "engram.rerank"}
SECRET = "zanzibar"


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    with Telemetry().installed() as installed:
        yield installed


def test_a_recall_is_a_span_with_its_stages_inside(telemetry, memory):
    memory.observe("the ferry leaves at nine")
    telemetry.exporter.clear()

    memory.recall("ferry", 3, mode="cosine")

    span = telemetry.only("engram.recall")
    assert dict(span.attributes) == {
        "engram.k": 3,
        "engram.mode": "cosine",
        "engram.accuracy": "high",
        "engram.results": 1,
        "engram.strategy": "scan",
        "engram.exact": True,
        "engram.matching": 1,
        "engram.considered": 1,
    }
    assert span.status.status_code is StatusCode.UNSET
    stages = ["engram.embed", "engram.rank", "engram.read"]
    assert [one.name for one in telemetry.spans] == [*stages, "engram.recall"]
    for stage in stages:
        assert telemetry.only(stage).parent.span_id == span.context.span_id


def test_spans_belong_to_the_application_s(telemetry, memory):
    with telemetry.tracers.get_tracer("app").start_as_current_span("request") as request:
        memory.observe("a")
    assert telemetry.only("engram.observe").parent.span_id == request.get_span_context().span_id


def test_a_failed_call_says_which_error_and_nothing_of_its_message(telemetry, memory):
    with pytest.raises(NotFound):
        memory.forget("0")
    with pytest.raises(InvalidArgument):
        memory.recall("a", mode=SECRET)

    span = telemetry.only("engram.forget")
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert dict(span.attributes) == {"error.type": "NotFound"}
    assert list(span.events) == []
    assert telemetry.counted("engram.errors") == {
        ("forget", "NotFound"): 1,
        ("recall", "InvalidArgument"): 1,
    }


def test_metrics_count_what_was_written_found_and_erased(telemetry, memory):
    ids = memory.observe_many([ObserveInput("red"), ObserveInput("green"), ObserveInput("blue")])
    memory.recall("red", 2)
    memory.forget(ids[0])
    memory.assert_fact("Ann", "likes", "tea")

    assert telemetry.counted("engram.episodes.written") == {(): 3}
    assert telemetry.counted("engram.episodes.forgotten") == {(): 1}
    assert telemetry.counted("engram.recalls") == {("recall",): 1}
    assert telemetry.counted("engram.results") == {("recall",): 2}
    assert telemetry.counted("engram.operation.duration") == {
        (name,): 1 for name in ("observe_many", "recall", "forget", "assert_fact")
    }


def test_an_import_counts_its_episodes(telemetry, memory, other, file):
    memory.observe_many([ObserveInput("red"), ObserveInput("green")])
    memory.export_lines(file)
    other.import_lines(file)
    assert telemetry.counted("engram.episodes.written") == {(): 4}


def test_asyncio_has_each_span_once_and_inside_the_caller_s(telemetry):
    async def main() -> None:
        async with AsyncEngram(embedder=WordEmbedder()) as memory:
            with telemetry.tracers.get_tracer("app").start_as_current_span("request"):
                await memory.observe("red")
                await asyncio.gather(memory.recall("red"), memory.recall("green"))

    asyncio.run(main())
    request = telemetry.only("request")
    spans = [telemetry.only("engram.observe"), *telemetry.named("engram.recall")]
    assert len(spans) == 3
    assert {span.parent.span_id for span in spans} == {request.context.span_id}


def test_a_reflection_in_the_background_has_a_span(telemetry, open_memory):
    memory = open_memory(llm=StubLLMAdapter())
    memory.observe("red")
    with telemetry.tracers.get_tracer("app").start_as_current_span("request") as request:
        memory.reflect_async().join()
    span = telemetry.only("engram.reflect")
    assert span.attributes["engram.episodes_processed"] == 1
    assert span.parent.span_id == request.get_span_context().span_id


def test_what_a_call_is_made_of_and_the_closing_are_no_calls(telemetry, path):
    memory = Engram(path, embedder=WordEmbedder(), llm=StubLLMAdapter())
    for text in ("red", "green", "blue"):
        memory.observe(text)
    memory.reflect(), memory.compress(max_episodes=1, importance_threshold=9.0)
    memory.forget_entity("Ann"), memory.compact()
    memory.forget(memory.observe("grey"))
    memory.close()
    with pytest.raises(EngramError):
        memory.compact()
    with DocumentMemory(path, embedder=WordEmbedder()) as items:
        items.put([ItemPut(("a",), "b", {})]), items.get(("a",), "b"), items.namespaces()
        items.delete_many([(("a",), "b")])
    engine = ["reflect", "compress", "forget_entity", "compact", "observe", "forget", "compact"]
    kept = ["items.put", "items.get", "items.namespaces", "items.delete_many"]
    names = [f"engram.{name}" for name in ["observe"] * 3 + engine + kept]
    assert [s.name for s in telemetry.spans if s.name not in STAGES] == names
    assert telemetry.counted("engram.errors") == {("compact", "Closed"): 1}


def test_a_call_on_another_instance_is_one(telemetry, memory):
    class Asking(WordEmbedder):
        def embed(self, texts):
            memory.count()
            return super().embed(texts)

    with Engram(embedder=Asking()) as asking:
        asking.observe("red")
    inner, outer = telemetry.only("engram.count"), telemetry.only("engram.observe")
    assert inner.parent is not None
    assert telemetry.only("engram.embed").parent.span_id == outer.context.span_id


def test_the_lines_of_the_jsonl_worker_have_spans(telemetry, path, tmp_path):
    from engram.api.operations import NoArguments, Search
    from engram.api.service import Service
    from engram.config import load

    with Engram(path) as memory:
        memory.observe("The ferry leaves at nine.")
    config = tmp_path / "engram.yaml"
    config.write_text(f"db_path: {path}\n", encoding="utf-8")
    telemetry.exporter.clear()
    with Service(load(config, {})) as service:
        service.call("status", NoArguments())
        service.call("search", Search(query="When does the ferry leave?"))
    assert telemetry.only("engram.ledger.totals")
    assert telemetry.only("engram.search").attributes["engram.results"] == 1
    assert {"engram.rerank", "engram.rank"} <= {span.name for span in telemetry.spans}


def test_the_methods_of_the_socket_server_have_spans(telemetry, tmp_path):
    from engram.server.service import Service
    from engram.server.settings import load

    (tmp_path / ".engram").mkdir()
    (tmp_path / ".engram/engram.toml").write_text('[embedding]\nprovider = "deterministic"\n')
    with Service(load({"HOME": str(tmp_path)}, tmp_path)) as service:
        service.call("memory_store", {"context": "ferry", "action": "wait", "result": "boarded"})
        service.call("memory_search", {"query": "ferry"})
    assert telemetry.only("engram.experience.store").attributes["engram.indexed"] is True
    assert telemetry.only("engram.experience.search").attributes["engram.results"] == 1
    assert telemetry.counted("engram.recalls") == {("experience.search",): 1}


def use_everything(path: Path, folder: Path) -> None:
    """Make every kind of call with a secret in all that it is told, refused calls too."""
    texts = [f"{SECRET} ferry {number}" for number in range(4)]
    options = {"agent_id": SECRET, "embedder": WordEmbedder()}
    with Engram(path, llm=StubLLMAdapter(), **options) as memory:
        about = {"actors": [SECRET], "tags": [SECRET], "metadata": {SECRET: SECRET}}
        first = memory.observe(texts[0], **about)
        memory.observe_many([ObserveInput(text, tags=[SECRET]) for text in texts])
        memory.remember(texts[1], project=folder / SECRET, memory_id=SECRET)
        for mode in ("hybrid", "cosine", "spreading"):
            memory.recall(SECRET, mode=mode, tags=[SECRET])
        memory.recall_memories(SECRET, actors=[SECRET]), memory.accesses(first)
        memory.search(SECRET)
        memory.search_explained(SECRET)
        memory.get(first), memory.episodes(tags=[SECRET]), memory.count(actors=[SECRET])
        fact = memory.assert_fact(SECRET, SECRET, SECRET, source=SECRET)
        (
            memory.get_fact(fact),
            memory.facts(),
            memory.why(fact),
            memory.timeline(SECRET),
            memory.contradictions(),
        )
        memory.add_alias(SECRET, f"{SECRET} II"), memory.declare_predicate(SECRET, multi=True)
        memory.decay(), memory.prune(preview=True), memory.reflect(), memory.compress()
        memory.list_agents(), memory.counts(), memory.check(), memory.maintain()
        memory.export_json(folder / f"{SECRET}.json"), memory.export_lines(folder / SECRET)
        memory.forget(first), memory.forget_fact(fact), memory.forget_entity(SECRET)
        memory.compact(), memory.wipe()
    with Engram(folder / "other.engram", embedder=WordEmbedder()) as other:
        other.import_json(folder / f"{SECRET}.json", merge=True)
        other.import_lines(folder / SECRET, merge=True)
        other.backup(folder / f"{SECRET}.engram")
        other.reembed(embedder=WordEmbedder(16, SECRET))
        for refused in (
            lambda: other.recall(SECRET, mode=SECRET),
            lambda: other.recall(SECRET, accuracy=SECRET),
            lambda: other.forget(f"{SECRET} II"),
            lambda: other.import_lines(folder / SECRET),
            lambda: other.forget_evidence(SECRET),
            lambda: other.import_store(folder / SECRET),
            lambda: other.import_memories(folder / SECRET),
            lambda: other.rekey(7),
        ):
            with pytest.raises((EngramError, OSError)):
                refused()
    with ExperienceMemory(path, **options) as memory:
        kept = memory.store(SECRET, SECRET, SECRET, tags=[SECRET], project=SECRET)
        memory.search(SECRET, mode=SECRET, project=SECRET)
        memory.judge(kept.id, query=SECRET)
        memory.get(kept.id), memory.insights(), memory.status(), memory.export()
        memory.preview(), memory.analyse(), memory.consolidate(), memory.consolidation_log()
        memory.embed_waiting(), memory.prune_feedback(), memory.training_runs()
        memory.delete(kept.id)
        for call in (memory.delete_insight, memory.undo):
            with pytest.raises(NotFound):
                call(SECRET)
    with DocumentMemory(path, **options) as memory:
        name = (SECRET,)
        memory.put([ItemPut(name, SECRET, {SECRET: SECRET}, texts=[SECRET])])
        memory.get(name, SECRET), memory.get_many([(name, SECRET)])
        memory.search(name, query=SECRET, filter={SECRET: SECRET}), memory.nearby(name, SECRET, 2)
        memory.namespaces(), memory.namespaces_that_match([("prefix", name)])
        memory.sweep(), memory.delete_many([(name, SECRET)])
    project = str(folder / SECRET)
    with Ledger(path) as ledger:
        ledger.totals(), ledger.recent(project), ledger.context(project, task=SECRET)
        ledger.save_checkpoint(project, SECRET, SECRET), ledger.checkpoints(project)
        ledger.clear_checkpoint(project, SECRET), ledger.list_evidence(project)
        ledger.review_dormant()


def test_nothing_that_is_stored_or_asked_for_is_recorded(telemetry, tmp_path):
    (tmp_path / SECRET).mkdir()
    use_everything(tmp_path / f"{SECRET}.db", tmp_path / SECRET)
    seen = {span.name for span in telemetry.spans}
    assert len(seen) > 60
    assert SECRET not in telemetry.everything().lower()
    assert str(tmp_path) not in telemetry.everything()


def public(cls: type) -> set[str]:
    return {
        name
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("cls", "operations", "untraced"),
    [
        (Engram, OPERATIONS, {"close", "model", "reflect_async", "reflect_every"}),
        (
            ExperienceMemory,
            EXPERIENCE,
            {"close", "use_models", "embedded"}
            | {"list_agents", "counts", "model", "check", "maintain", "wipe"},
        ),
        (
            DocumentMemory,
            {**ITEMS, **DOCUMENTS},
            {"close", "check_dim", "list_agents", "counts", "model", "check", "maintain", "wipe"},
        ),
        (Ledger, LEDGER, {"close", "present", "uninitialized"}),
    ],
)
def test_every_call_is_traced(cls, operations, untraced):
    assert public(cls) - untraced == set(operations)


def rows() -> dict[str, set[str]]:
    """The tables of the reference page: what is in the first column, and the names in the rest."""
    found = re.findall(r"^\| `([\w.]+)` \|(.*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: set(re.findall(r"`([\w.]+)`", words)) for name, words in found}


def test_the_reference_lists_every_span_and_metric():
    names = {f"engram.{name}" for name in OPERATIONS}
    names |= {f"engram.experience.{name}" for name in EXPERIENCE}
    names |= {f"engram.items.{name}" for name in ITEMS | DOCUMENTS}
    names |= {f"engram.ledger.{name}" for name in LEDGER}
    assert rows().keys() == names | STAGES | METRICS.keys()


def test_the_reference_lists_every_attribute(telemetry, tmp_path):
    (tmp_path / "folder").mkdir()
    use_everything(tmp_path / "a.db", tmp_path / "folder")
    listed = rows()
    for span in telemetry.spans:
        if span.status.status_code is not StatusCode.ERROR:
            assert set(span.attributes) <= listed[span.name], span.name


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


USE = """
import sys
from engram import Engram
from stand_ins import WordEmbedder
memory = Engram(embedder=WordEmbedder())
memory.observe("red")
memory.recall("red")
"""


def test_an_application_without_opentelemetry_never_imports_it():
    assert run(f"{USE}\nprint([name for name in sys.modules if 'telemetry' in name])") == "[]\n"


def test_it_is_noticed_whenever_the_application_sets_it_up():
    """As an application does it, in a process of its own, after the memory was used."""
    out = run(
        f"{USE}\n"
        "from opentelemetry import trace\n"
        "memory.recall('red')\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
        "exporter = InMemorySpanExporter()\n"
        "provider = TracerProvider()\n"
        "provider.add_span_processor(SimpleSpanProcessor(exporter))\n"
        "trace.set_tracer_provider(provider)\n"
        "memory.recall('red')\n"
        "print([span.name for span in exporter.get_finished_spans()])"
    )
    assert out == "['engram.embed', 'engram.rank', 'engram.read', 'engram.recall']\n"


def test_a_package_that_is_not_the_api_changes_nothing():
    out = run(
        "import sys, types\n"
        "sys.modules['opentelemetry'] = types.ModuleType('opentelemetry')\n"
        "sys.modules['opentelemetry.trace'] = types.ModuleType('opentelemetry.trace')\n"
        f"{USE}\nprint(len(memory.recall('red')))"
    )
    assert out == "1\n"


def test_a_span_that_is_not_sampled_costs_no_attributes_and_still_counts(telemetry, memory):
    memory.observe("red")
    unsampled = trace.NonRecordingSpan(
        trace.SpanContext(1, 2, is_remote=False, trace_flags=trace.TraceFlags(0))
    )
    telemetry.exporter.clear()
    with trace.use_span(unsampled):
        memory.recall("red")
    assert telemetry.spans == []
    assert telemetry.counted("engram.recalls") == {("recall",): 1}
