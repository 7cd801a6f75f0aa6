"""Whatever is sent: one answer for each line, in order, and nothing of it anywhere else."""

from __future__ import annotations

import json
import math
import random
import threading
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import WordEmbedder
from workers import Worker, observation

from engram import Engram
from engram.api.operations import CATALOGUE, input_schema

CODES = {
    "invalid_json",
    "invalid_request",
    "invalid_params",
    "request_too_large",
    "unknown_operation",
    "operation_failed",
}
SECRET = "canary-9f3c"
LIMIT = 65_536
DEPTH = 64
LONGEST_ID = 200
AT_ONCE = 64
SEED = 20_260_101

# What mutations of bytes put in, beside bytes of any kind.
PIECES = [
    b"\\ud800", b"\xed\xa0\x80", b"\xff", b"\x00", b"\xef\xbb\xbf", b"NaN", b"Infinity", b"1e999",
    b"-0", b"9" * 4301, b"[" * 70, b"]", b"{", b"}", b'"', b"\\", b",", b":", b"null", b"true",
    b'"id":1,', b'"params":{},', b" ", b"\r", b"\x0b", b"/../", b"~", b"memory:", b"evidence-",
    SECRET.encode(),
]  # fmt: skip


@pytest.fixture
def fuzzed(path, config, start) -> Worker:
    """A process over a store that holds a secret, with one more in its settings."""
    with Engram(path, embedder=WordEmbedder()) as memory:
        memory.remember(f"{SECRET}-memory", project="/elsewhere")
    config.write_text(config.read_text() + f"hf_token: {SECRET}-token\n", encoding="utf-8")
    return start()


def seeds() -> list[dict[str, Any]]:
    """A good request of every operation, secrets in all that may hold some."""
    params: dict[str, dict[str, object]] = {
        "recall": {"project_id": f"/{SECRET}"},
        "search": {"query": SECRET},
        "search_explain": {"query": SECRET, "top_k": 3},
        "dormant_inspect": {"event_id": SECRET},
        "dormant_feedback": {"event_id": SECRET, "category": "useful"},
        "session_resume": {"project_id": f"/{SECRET}", "task": SECRET, "limit": 2},
        "resume": {"project_id": f"/{SECRET}"},
        "session_checkpoint": {"project_id": f"/{SECRET}", "task": "t", "action": "clear"},
        "checkpoint": {"project_id": "/p", "task": "t", "summary": "s", "decisions": ["d"]},
        "evidence_put": observation("/p", source_refs=["memory:x"]),
        "evidence_get": {"project_id": f"/{SECRET}", "id": SECRET},
        "evidence_list": {"project_id": f"/{SECRET}", "session_id": SECRET},
    }
    return [{"id": name, "operation": name, "params": params.get(name, {})} for name in CATALOGUE]


def mutated(line: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """A line with a few bytes changed, some of it twice or gone, or with part of another."""
    data = bytearray(line)
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3, 8])):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice([1, 1, 2, 8, 64]))
        match chance.randrange(6):
            case 0:
                del data[at:end]
            case 1:
                data[at:at] = chance.choice(PIECES)
            case 2:
                data[at:end] = chance.randbytes(end - at)
            case 3:
                data[at:at] = data[at:end]
            case 4:
                data[at:] = chance.choice(others)[chance.randrange(len(others[0])) :]
            case 5 if chance.randrange(50) == 0:
                data[at:at] = b" " * chance.choice([LIMIT - len(data) - 1, LIMIT, 3 * LIMIT])
    return bytes(data)


def is_blank(line: bytes) -> bool:
    if len(line) >= LIMIT:
        return False
    try:
        return not line.decode().strip()
    except UnicodeDecodeError:
        return False


def refused(*_: object) -> None:
    raise ValueError


def finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else refused()


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs) if len(dict(pairs)) == len(pairs) else refused()


def depth(value: object) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def expected(line: bytes) -> tuple[object, set[str]]:
    """The id that the answer to a line has, and the codes it may have."""
    if len(line) >= LIMIT:
        return None, {"request_too_large"}
    try:
        document = json.loads(
            line.decode(), parse_constant=refused, parse_float=finite, object_pairs_hook=distinct
        )
        if depth(document) > DEPTH:
            refused()
    except (ValueError, RecursionError):
        return None, {"invalid_json"}
    sent = document.get("id") if isinstance(document, dict) else []
    if (isinstance(sent, str) and len(sent) <= LONGEST_ID) or sent is None or type(sent) is int:
        return sent, CODES - {"request_too_large", "invalid_json"}
    return None, {"invalid_request"}


def check(sent: bytes, line: bytes) -> None:
    """An answer is of the protocol, to this line, and says nothing but what it must."""
    assert line.isascii()
    answer = json.loads(line)
    assert list(answer) in (["id", "result"], ["id", "error"])
    identifier, codes = expected(sent)
    assert answer["id"] == identifier
    assert type(answer["id"]) is type(identifier)
    assert "error" in answer or "operation_failed" in codes
    if "error" in answer:
        assert set(answer["error"]) == {"code", "message"}
        assert answer["error"]["code"] in codes
        # The store is sound; only the model is not there.
        if answer["error"]["code"] == "operation_failed":
            assert json.loads(sent)["operation"] in ("search", "search_explain")
        assert SECRET not in answer["error"]["message"]
    # A secret comes back only to who sent it; those kept in the store and the settings never do.
    assert f"{SECRET}-memory" not in line.decode()
    assert f"{SECRET}-token" not in line.decode()


def exchange(worker: Worker, lines: list[bytes]) -> None:
    asked = [line for line in lines if not is_blank(line)]
    # Beside the reading: neither side could go on once both pipes are full.
    sending = threading.Thread(target=worker.send, args=(b"".join(line + b"\n" for line in lines),))
    sending.start()
    for sent in asked:
        check(sent, worker.line())
    sending.join()


def finished(worker: Worker) -> None:
    lines, code, err = worker.finish()
    assert (lines, code) == ([], 0)
    assert SECRET not in err
    assert "Traceback" not in err


def test_mutated_bytes(fuzzed, request):
    chance = random.Random(SEED)
    numbers = count()
    left: int = request.config.getoption("--frames")
    while left > 0:
        good = [json.dumps({**seed, "id": next(numbers)}).encode() for seed in seeds()]
        lines = [
            # A newline inside makes it several lines.
            part
            for _ in range(min(left, AT_ONCE))
            for part in mutated(chance.choice(good), chance, good).split(b"\n")
        ]
        exchange(fuzzed, lines)
        left -= AT_ONCE
    finished(fuzzed)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from([SECRET, "/p", "/", "~", "save", "useful", "memory:x", "\ud800", "\0"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = sorted(
    {name for one in CATALOGUE.values() for name in input_schema(one.arguments)["properties"]}
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request with something wrong with it, or not."""
    document = draw(st.sampled_from(seeds()))
    params = dict(document["params"])
    for name in draw(st.lists(st.sampled_from([*NAMES, "x", "\ud800"]), max_size=3)):
        params[name] = draw(JSON)
    for name in draw(st.lists(st.sampled_from(sorted(params) or ["x"]), max_size=1)):
        params.pop(name, None)
    document = {**document, "params": params}
    for name in draw(st.lists(st.sampled_from(["id", "operation", "params", "x"]), max_size=1)):
        document[name] = draw(JSON)
    return json.dumps(document).encode()


def test_structured_requests(fuzzed, request):
    examples = min(max(request.config.getoption("--frames") // 20, 50), 2_000)

    @settings(max_examples=examples)
    @given(st.lists(requests(), min_size=1, max_size=8))
    def run(lines: list[bytes]) -> None:
        exchange(fuzzed, lines)

    run()
    finished(fuzzed)
