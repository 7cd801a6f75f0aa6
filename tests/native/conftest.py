"""What the kernel tests share: every call goes through a kernel and its twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import engram._native

if TYPE_CHECKING:
    from collections.abc import Callable

# With the twins selected there is nothing to compare them with.
collect_ignore_glob = [] if engram._native.NATIVE else ["test_*.py"]


def _arrays(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _agree(native: Callable[..., Any], twin: Callable[..., Any], *args: object) -> Any:
    """The common result of a kernel and its twin, which must be the same to the last bit."""
    ours, theirs = native(*args), twin(*args)
    for left, right in zip(_arrays(ours), _arrays(theirs), strict=True):
        assert isinstance(left, np.ndarray)
        assert isinstance(right, np.ndarray)
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes()
    return ours


def _refuse(
    native: Callable[..., Any], twin: Callable[..., Any], *args: object
) -> tuple[type[Exception], str]:
    """The common exception of a kernel and its twin."""
    caught = []
    for function in (native, twin):
        with pytest.raises((TypeError, ValueError)) as info:
            function(*args)
        caught.append((info.type, str(info.value)))
    assert caught[0] == caught[1]
    return caught[0]


@pytest.fixture(scope="session")
def agree() -> Callable[..., Any]:
    return _agree


@pytest.fixture(scope="session")
def refuse() -> Callable[..., tuple[type[Exception], str]]:
    return _refuse
