"""Methods while a model fails, and with a language model that answers or does not."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from engram_server import DETERMINISTIC, record, texts
from llm_wires import NEVER, Handler, OpenAIWire, Server
from socket_server import Peer, request, until

from engram.embedding import DeterministicEmbedder
from engram.server.failures import Failure
from engram.server.methods import METHODS, is_long
from engram.server.service import Service
from engram.server.settings import load


class Broken:
    """What happens to a model after the start."""

    words = ("",)
    """Texts with one of these cannot be embedded."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / ".engram").mkdir()
    (tmp_path / ".engram/engram.toml").write_text(DETERMINISTIC)
    with Service(load({"HOME": str(tmp_path / "home")}, tmp_path)) as running:
        yield running


@pytest.fixture
def broken(service, monkeypatch) -> Broken:
    broken = Broken()
    embed = DeterministicEmbedder.embed

    def failing(embedder, listed):
        if any(word in text for text in listed for word in broken.words):
            message = "SECRET"
            raise RuntimeError(message)
        return embed(embedder, listed)

    monkeypatch.setattr(DeterministicEmbedder, "embed", failing)
    return broken


def test_without_an_embedder_texts_are_kept_and_found_by_words(service, broken):
    said = service.call("memory_store", texts(1))
    assert said["indexed"] is False
    other = service.call("memory_store", texts(2))["id"]
    assert service.call("memory_store", texts(1))["deduplicated"] is True
    found = service.call("memory_search", {"query": "c1"})
    assert found["degraded"] is True
    assert [hit["id"] for hit in found["results"]] == [said["id"]]
    assert found["results"][0]["score"] == pytest.approx(0.3 / 61)
    assert service.call("memory_search", {"query": "no such word"})["results"] == []
    status = service.call("memory_status", {})
    assert (status["memory_count"], status["indexed_count"], status["waiting"]) == (2, 0, 2)
    assert any("wait" in hint for hint in status["hints"])
    service.call("memory_import", {"version": 1, "memories": [record("new", 3)]})
    kept = service.call("memory_export", {})["memories"]
    assert {one["id"] for one in kept} == {said["id"], other, "new"}


def test_an_embedder_that_works_no_more_embeds_nothing_anew(service, broken):
    service.call("memory_store", texts(1))
    with pytest.raises(Failure, match=r"^\[2001\] embedding api unavailable: ") as failure:
        service.call("memory_reembed", {})
    assert "SECRET" not in failure.value.message
    broken.words = ()
    done = service.call("memory_reembed", {})
    assert (done["total"], done["succeeded"], done["failed"]) == (1, 1, 0)


def test_a_text_that_is_refused_keeps_no_other_from_being_embedded(service, broken):
    for number in range(12):
        service.call("memory_store", texts(number) | {"project": "bad" if number < 7 else "good"})
    broken.words = tuple(texts(number)["action"] for number in range(7))
    done = service.call("memory_reembed", {})
    assert (done["total"], done["succeeded"], done["failed"]) == (12, 5, 7)


@pytest.fixture
def script() -> Iterator[Server]:
    """Answers of a language model, to be filled in."""
    made = Server()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.script = made
        made.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.released.set()
        http.shutdown()
        thread.join()


@pytest.fixture
def advised(start, script):
    """A server with that language model."""
    llm = '[llm]\nprovider = "ollama"\nmodel = "m"\n'
    return start(DETERMINISTIC + llm, ENGRAM_OLLAMA_HOST=script.url)


def test_a_local_language_model_is_sent_no_key_of_openai(start, script):
    llm = '[llm]\nprovider = "ollama"\nmodel = "m"\n'
    server = start(DETERMINISTIC + llm, ENGRAM_OLLAMA_HOST=script.url, OPENAI_API_KEY="SECRET")
    one = server.ask("memory_store", **texts(1))["id"]
    script.answers = [OpenAIWire.say(json.dumps({"score": 0.75, "reason": "it fits"}))]
    assert server.ask("memory_judge", memory_id=one, query="c1")["degraded"] is False
    assert "SECRET" not in str(script.requests[0].headers)


def test_a_language_model_judges(advised, script):
    one = advised.ask("memory_store", **texts(1))["id"]
    script.answers = [OpenAIWire.say(json.dumps({"score": 0.75, "reason": "it fits"}))]
    said = advised.ask("memory_judge", memory_id=one, query="c1")
    assert said == {"score": 0.75, "reason": "it fits", "degraded": False}
    assert advised.memories()[one]["score"] == 0.75
    assert script.requests[0].path == "/v1/chat/completions"
    assert script.requests[0].body["model"] == "m"


@pytest.mark.parametrize("answer", [(500, {}), OpenAIWire.say("SECRET"), (401, {})])
def test_where_it_cannot_the_formula_does(advised, script, answer):
    one = advised.ask("memory_store", **texts(1))["id"]
    script.answers = [answer]
    said = advised.ask("memory_judge", memory_id=one)
    assert said["degraded"] is True
    assert said["score"] == pytest.approx(0.3, abs=1e-4)
    assert said["reason"] == "keyword:0.00 recency:1.00 frequency:0.00"


def test_an_explicit_score_asks_nobody(advised, script):
    one = advised.ask("memory_store", **texts(1))["id"]
    assert advised.ask("memory_judge", memory_id=one, score=0)["score"] == 0.0
    assert script.requests == []


def test_a_language_model_decides_about_duplicates(advised, script):
    twins = [record(f"twin-{n}", 1, used_count=n) for n in range(3)]
    advised.ask("memory_import", version=1, memories=twins)
    script.answers = [OpenAIWire.say("MERGE"), OpenAIWire.say("KEEP both")]
    said = advised.ask("memory_consolidate")["recommendations"]
    assert {(one["action"]["type"], one["confidence"]) for one in said} == {
        ("merge", 0.8),
        ("keep", 0.7),
    }
    script.answers = [(500, {})]
    failed = advised.ask("memory_consolidate_apply")
    assert failed["merged"] == 0
    assert len(failed["errors"]) == 2
    for error in failed["errors"]:
        assert re.match(r"analyze twin-\d->twin-\d: \[2002\] llm api unavailable: .", error)
    assert len(advised.memories()) == 3


def test_who_asks_the_language_model_keeps_nobody_else_waiting(start, script):
    process = "[server]\nworkers = 1\nrequest_timeout_secs = 3600\n"
    llm = '[llm]\nprovider = "ollama"\nmodel = "m"\n'
    server = start(DETERMINISTIC + process + llm, ENGRAM_OLLAMA_HOST=script.url)
    one = server.ask("memory_store", **texts(1))["id"]
    script.answers = [NEVER]
    with ExitStack() as stack:
        for params in ({"memory_id": one}, {"memory_id": one, "score": None}):
            peer = stack.enter_context(Peer(server.socket))
            peer.send(request("memory_judge", params))
        until(lambda: len(script.requests) == 2)
        assert server.ask("memory_judge", memory_id=one, score=0.5)["score"] == 0.5
        assert server.ask("memory_search", query="c1")["count"] == 1
        script.released.set()


def test_what_is_long():
    always = {name for name, method in METHODS.items() if method.long}
    assert {"memory_export", "memory_import", "memory_consolidate_apply"} < always
    for name in METHODS:
        for asks in (False, True):
            expected = name in always or (asks and name == "memory_judge")
            assert is_long(name, {}, asks=asks) is expected
            assert is_long(name, [1], asks=asks) is expected
    assert not is_long("memory_judge", {"score": 0}, asks=True)
    assert not is_long("no such method", {}, asks=True)
