from __future__ import annotations

import os
from typing import TYPE_CHECKING

import onnxruntime
import pytest

from engram.embedding import OnnxEmbedder, resolve
from engram.embedding.threads import thread_count, usable_cpus
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_default_is_at_most_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.embedding.threads.usable_cpus", lambda: 64)
    assert thread_count() == 4
    monkeypatch.setattr("engram.embedding.threads.usable_cpus", lambda: 1)
    assert thread_count() == 1


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_THREADS", "3")
    assert resolve(None).threads == 3


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", " ", "٣"])
def test_the_variable_must_be_a_positive_number(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("ENGRAM_THREADS", value)
    with pytest.raises(InvalidArgument, match="ENGRAM_THREADS"):
        resolve(None)


@pytest.fixture
def many_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)


@pytest.mark.usefixtures("many_cpus")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 16),
        ({"cpu.max": "max 100000"}, 16),
        ({"cpu.max": "250000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"a/b/cpu.max": "300000 100000", "a/cpu.max": "max 100000"}, 3),
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "500000 100000"}, 5),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 16),
    ],
)
def test_a_control_group_limits_the_cpus(
    tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    own = tmp_path / "own"
    own.write_text("1:cpu:/other\n0::/a/b\n")
    groups = tmp_path / "cgroup"
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(text + "\n")
    assert usable_cpus(groups, own) == expected


def test_the_session_gets_the_setting(
    small: Callable[..., OnnxEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[onnxruntime.SessionOptions] = []
    session = onnxruntime.InferenceSession

    def opened(path: str, options: onnxruntime.SessionOptions, **rest: object) -> object:
        made.append(options)
        return session(path, options, **rest)

    monkeypatch.setattr(onnxruntime, "InferenceSession", opened)
    small(threads=3).embed_query("a")
    assert (made[0].intra_op_num_threads, made[0].inter_op_num_threads) == (3, 1)
    assert made[0].get_session_config_entry("session.intra_op.allow_spinning") == "0"
