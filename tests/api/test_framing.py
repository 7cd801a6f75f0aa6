"""Frames and envelopes: every row of the protocol's framing, through a real process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from workers import batch

LIMIT = 65_536
GOOD = b'{"id":"good","operation":"operations"}\n'


def padded(size: int) -> bytes:
    """A request of so many bytes, with a newline at its end."""
    frame = b'{"id":"padded","operation":"config_show","params":{}'
    return frame + b" " * (size - len(frame) - 2) + b"}\n"


def nested(levels: int) -> bytes:
    """A request that nests so deep, its own two levels counted."""
    inner = b"[" * (levels - 2) + b"]" * (levels - 2)
    return b'{"id":"nested","operation":"recall","params":{"project_id":%s}}' % inner


def told(answer: dict) -> tuple[object, str]:
    assert list(answer) in (["id", "result"], ["id", "error"])
    return answer["id"], "ok" if "result" in answer else answer["error"]["code"]


JSON = (None, "invalid_json")
REQUEST = (None, "invalid_request")
LARGE = (None, "request_too_large")

FRAMES = {
    "the largest": (padded(LIMIT), ("padded", "ok")),
    "a byte more": (padded(LIMIT + 1), LARGE),
    "much more": (padded(LIMIT * 5 + 17), LARGE),
    "twice the limit": (padded(LIMIT * 2), LARGE),
    "twice the limit and one": (padded(LIMIT * 2 + 1), LARGE),
    "much space": (b" " * 70_000 + b"\n", LARGE),
    "large and no UTF-8": (b"\xff" * 70_000 + b"\n", LARGE),
    "no UTF-8": (b'{"id":1,"operation":"operations\xff"}\n', JSON),
    "encoded surrogate": (b'{"id":"\xed\xa0\x80","operation":"operations"}\n', JSON),
    "overlong": (b'{"id":"\xc0\xaf","operation":"operations"}\n', JSON),
    "syntax": (b'{"id":1,"operation":}\n', JSON),
    "trailing comma": (b'{"id":1,"operation":"operations",}\n', JSON),
    "two values": (b'{"id":1,"operation":"operations"} {}\n', JSON),
    "single quotes": (b"{'id':1}\n", JSON),
    "comment": (b'{"id":1,"operation":"operations"} // no\n', JSON),
    "NUL": (b'{"id":"\x00","operation":"operations"}\n', JSON),
    "control character": (b'{"id":"\x01","operation":"operations"}\n', JSON),
    "BOM": (b'\xef\xbb\xbf{"id":1,"operation":"operations"}\n', JSON),
    "an open string": (b'{"id":"' + b'\\"' * 30_000 + b"\\\n", JSON),
    "NaN": (b'{"id":1,"operation":"status","params":{"x":NaN}}\n', JSON),
    "Infinity": (b'{"id":Infinity,"operation":"status"}\n', JSON),
    "-Infinity": (b'{"id":-Infinity,"operation":"status"}\n', JSON),
    "overflow": (b'{"id":1e999,"operation":"operations"}\n', JSON),
    "overflow below": (b'{"id":1,"operation":"operations","params":{"x":[-1e999]}}\n', JSON),
    "id twice": (b'{"id":1,"id":2,"operation":"operations"}\n', JSON),
    "operation twice": (b'{"id":1,"operation":"x","operation":"operations"}\n', JSON),
    "a name twice below": (b'{"id":1,"operation":"status","params":{"a":{"b":1,"b":1}}}\n', JSON),
    "4300 digits": (
        b'{"id":%s,"operation":"operations"}\n' % (b"7" * 4300), (int("7" * 4300), "ok")
    ),
    "4301 digits": (b'{"id":%s,"operation":"operations"}\n' % (b"7" * 4301), JSON),
    "deep enough": (nested(64) + b"\n", ("nested", "invalid_params")),
    "too deep": (nested(65) + b"\n", JSON),
    "far too deep": (b"[" * 60_000 + b"\n", JSON),
    "brackets in a string": (
        b'{"id":"%s","operation":"operations"}\n' % (b"[" * 190), ("[" * 190, "ok")
    ),
    "CRLF": (b'{"id":1,"operation":"operations"}\r\n', (1, "ok")),
    "CR inside": (b'{"id":1,\r"operation":"operations"}\n', (1, "ok")),
    "spaces around": (b' \t{"id":1,"operation":"operations"} \t\n', (1, "ok")),
    "array": (b"[]\n", REQUEST),
    "string": (b'"operations"\n', REQUEST),
    "number": (b"1\n", REQUEST),
    "null": (b"null\n", REQUEST),
    "true": (b"true\n", REQUEST),
    "empty object": (b"{}\n", REQUEST),
    "null id": (b'{"id":null,"operation":"operations"}\n', (None, "ok")),
    "integer id": (b'{"id":-7,"operation":"operations"}\n', (-7, "ok")),
    "huge id": (b'{"id":1%s,"operation":"operations"}\n' % (b"0" * 400), (10**400, "ok")),
    "empty id": (b'{"id":"","operation":"operations"}\n', ("", "ok")),
    "longest id": (
        '{{"id":"{}","operation":"operations"}}\n'.format("𝕏" * 200).encode(), ("𝕏" * 200, "ok")
    ),
    "too long an id": (
        '{{"id":"{}","operation":"operations"}}\n'.format("é" * 201).encode(), REQUEST
    ),
    "boolean id": (b'{"id":true,"operation":"operations"}\n', REQUEST),
    "float id": (b'{"id":1.0,"operation":"operations"}\n', REQUEST),
    "array id": (b'{"id":[],"operation":"operations"}\n', REQUEST),
    "bad id before all else": (b'{"id":{},"operation":5,"x":1}\n', REQUEST),
    "no id": (b'{"operation":"operations"}\n', REQUEST),
    "another member": (b'{"id":3,"operation":"status","jsonrpc":"2"}\n', (3, "invalid_request")),
    "no operation": (b'{"id":3}\n', (3, "invalid_request")),
    "operation null": (b'{"id":3,"operation":null}\n', (3, "invalid_request")),
    "params null": (b'{"id":3,"operation":"operations","params":null}\n', (3, "invalid_request")),
    "params array": (b'{"id":3,"operation":"operations","params":[]}\n', (3, "invalid_request")),
    "shape before name": (b'{"id":3,"operation":"nonsense","params":[]}\n', (3, "invalid_request")),
    "unknown": (b'{"id":3,"operation":"remember"}\n', (3, "unknown_operation")),
    "case": (b'{"id":3,"operation":"Operations"}\n', (3, "unknown_operation")),
    "not trimmed": (b'{"id":3,"operation":"operations "}\n', (3, "unknown_operation")),
    "empty name": (b'{"id":3,"operation":"","params":{"x":1}}\n', (3, "unknown_operation")),
    "unknown argument": (
        b'{"id":3,"operation":"status","params":{"x":1}}\n', (3, "invalid_params")
    ),
    "surrogate as a name": (
        b'{"id":3,"operation":"operations","params":{"\\ud800":1}}\n', (3, "invalid_params")
    ),
    "surrogate for a number": (
        b'{"id":3,"operation":"recall","params":{"project_id":"/p","limit":"\\ud800"}}\n',
        (3, "invalid_params"),
    ),
    "missing argument": (b'{"id":3,"operation":"recall"}\n', (3, "invalid_params")),
}  # fmt: skip


def test_every_frame_has_one_answer_and_none_harms_the_next(config):
    frames = [part for frame, _ in FRAMES.values() for part in (frame, GOOD)]
    answers = batch(config, b"".join(frames))
    assert len(answers) == len(frames)
    assert [told(answer) for answer in answers[1::2]] == [("good", "ok")] * len(FRAMES)
    found = dict(zip(FRAMES, map(told, answers[::2]), strict=True))
    assert found == {name: expected for name, (_, expected) in FRAMES.items()}


@pytest.mark.parametrize(
    "blank",
    [b"", b" ", b"\t \r", b"\x0b\x0c", "\u00a0\u2003".encode(), b" " * (LIMIT - 1)],
    ids=["nothing", "space", "tab", "feeds", "wide", "as much as fits"],
)
def test_blank_lines_have_no_answer(config, blank):
    assert [told(one) for one in batch(config, blank + b"\n" + GOOD)] == [("good", "ok")]
    assert batch(config, blank) == []


def test_the_last_line_needs_no_newline(config):
    assert [told(one) for one in batch(config, GOOD + GOOD.strip())] == [("good", "ok")] * 2
    assert [told(one) for one in batch(config, padded(LIMIT + 1)[:-1])] == [("padded", "ok")]
    assert [told(one) for one in batch(config, padded(LIMIT + 2)[:-1])] == [LARGE]
    assert [told(one) for one in batch(config, b'{"id":1,')] == [JSON]
    assert [told(one) for one in batch(config, b"x" * 200_000)] == [LARGE]


def test_an_answer_comes_before_the_next_request(start):
    worker = start()
    for number in range(3):
        worker.send(b'{"id":%d,"operation":"operations"}\n' % number)
        assert json.loads(worker.line())["id"] == number
    worker.send(b'{"id":9,"opera')
    worker.send(b'tion":"config_show"}\n')
    assert json.loads(worker.line())["id"] == 9
    assert worker.finish() == ([], 0, "")


def test_a_frame_is_read_in_bounded_memory(start):
    worker = start()
    worker.send(GOOD)
    worker.line()
    peak = memory_peak(worker.process.pid)
    for _ in range(64):
        worker.send(b"[" * 1_000_000)
    worker.send(b"\n")
    assert told(json.loads(worker.line())) == LARGE
    assert memory_peak(worker.process.pid) - peak < 16_000


def memory_peak(pid: int) -> int:
    """Kilobytes of memory that a process ever had at once."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def test_lone_surrogates_come_back_as_escapes(worker):
    worker.send(b'{"id":"\\ud800x","operation":"operations"}\n')
    assert worker.line().startswith(b'{"id":"\\ud800x","result":')


def test_answers_are_ascii(worker, project):
    worker.result("checkpoint", project_id=project, task="日本", summary="é𝕏")
    worker.send(
        json.dumps({"id": "日", "operation": "recall", "params": {"project_id": project}}).encode()
        + b"\n"
    )
    line = worker.line()
    assert line.isascii()
    [checkpoint] = json.loads(line)["result"]["checkpoints"]
    assert (checkpoint["task"], checkpoint["summary"]) == ("日本", "é𝕏")
