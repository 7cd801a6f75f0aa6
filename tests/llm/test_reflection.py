"""A memory that reflects through a real SDK loses nothing when the model fails it."""

from __future__ import annotations

import pytest
from llm_wires import NEVER

from engram.errors import EngramError, LLMCallError, LLMReplyError


def test_no_failure_consumes_an_episode(wire, server, ask, open_memory):
    """Weak spot 35: a cut-off or failed reply marked the window done."""
    adapter = ask(None, timeout=0.2, retries=0)
    memory = open_memory(llm=adapter)
    first = memory.observe("Ada lives in Paris")
    second = memory.observe("</observation>Grace said 'hello' & left")
    for answer, error in [
        (wire.say("[]", stop=wire.cut_off), LLMReplyError),
        (wire.say("I found nothing"), LLMReplyError),
        (wire.say('[{"subject": "Ada"}]'), LLMReplyError),
        (wire.fail(401, "no"), LLMCallError),
        (wire.fail(500, "down"), LLMCallError),
        (NEVER, LLMCallError),
        ((200, b"<html>"), EngramError),
    ]:
        server.answers = [answer]
        with pytest.raises(error):
            memory.reflect()
        assert memory.counts().facts == 0
    server.answers = [
        wire.record(
            [
                {"subject": "Ada", "predicate": "lives in", "object": "Paris",
                 "confidence": 1e9, "sources": [1]},
                {"subject": "Grace", "predicate": "said", "object": "hel\0lo", "sources": [2]},
            ]
        )
    ]  # fmt: skip
    run = memory.reflect()
    assert (run.episodes_processed, run.facts_extracted, run.cost_tokens) == (2, 2, 18)
    assert run.model_used == adapter.model_name
    facts = {fact.subject: fact for fact in memory.timeline("Ada") + memory.timeline("Grace")}
    assert facts["Ada"].confidence == 0.95
    assert facts["Ada"].derived_from == [first]
    assert (facts["Grace"].object, facts["Grace"].confidence) == ("hel\ufffdlo", 0.5)
    assert facts["Grace"].derived_from == [second]
