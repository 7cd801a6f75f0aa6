"""OpenTelemetry spans and metrics of what a store is asked to do, for applications that use it.

Nothing here imports OpenTelemetry before the application has: without it a call costs one look into
a dictionary. What is recorded says how much and how long, never what: no text, no name, no path.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from inspect import signature
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engram._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from opentelemetry.trace import Span

__all__ = [
    "METRICS",
    "Operation",
    "count_episodes",
    "count_events",
    "fields",
    "length",
    "stage",
    "traced",
]

_C = TypeVar("_C", bound=type)
_Value = str | bool | int | float

_LIBRARY: Final = "opentelemetry.trace"
_MODULES: Final = sys.modules
_NOTHING: Final = nullcontext()
_CALLED: Final = ContextVar[object]("_CALLED", default=None)
"""What the call that is being recorded was made on."""
_PREFIX: Final = "engram."
_OPERATION: Final = "engram.operation"
_ERROR: Final = "error.type"
_RESULTS: Final = "engram.results"
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)

METRICS: Final = {
    "engram.operation.duration": ("s", "Time that calls took."),
    "engram.recalls": ("{recall}", "Calls that looked for memories."),
    "engram.results": ("{memory}", "Memories that those calls returned."),
    "engram.episodes.written": ("{episode}", "Episodes that were written."),
    "engram.episodes.forgotten": ("{episode}", "Episodes that were erased."),
    "engram.errors": ("{error}", "Calls that raised."),
}
"""The metrics with their units: the first is a histogram, the others are counters."""
_COUNTED_EVENTS: Final = {
    "memory_written": "engram.episodes.written",
    "memory_forgotten": "engram.episodes.forgotten",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What is recorded of one kind of call, once it has succeeded: its arguments are checked then.

    Attributes:
        arguments: The arguments that become attributes, unless they are None. Only of those that
            are numbers, flags or one of a few words.
        describe: Returns the attributes that a result has.
        finds: Whether it looks for memories; `describe` says how many it found.
    """

    arguments: tuple[str, ...] = ()
    describe: Callable[[Any], Mapping[str, _Value]] | None = None
    finds: bool = False


def length(name: str) -> Callable[[Any], Mapping[str, _Value]]:
    """Return a description of a result by its length.

    Args:
        name: The attribute, without "engram.".
    """
    return lambda result: {_PREFIX + name: len(result)}


def fields(*names: str) -> Callable[[Any], Mapping[str, _Value]]:
    """Return a description of a result by fields of it, lists by their lengths."""

    def describe(result: object) -> Mapping[str, _Value]:
        found = {name: getattr(result, name) for name in names}
        return {
            _PREFIX + name: len(value) if isinstance(value, list) else value
            for name, value in found.items()
        }

    return describe


def traced(operations: Mapping[str, Operation], prefix: str = "") -> Callable[[_C], _C]:
    """Return a class decorator that records calls of the class's methods.

    Calls that one of these methods makes of others, on the same instance, are part of it: they are
    not recorded.

    Args:
        operations: The methods, by name.
        prefix: What comes before a method's name in that of its span, after "engram.".
    """

    def decorate(cls: _C) -> _C:
        for name, operation in operations.items():
            setattr(cls, name, _recorded(getattr(cls, name), prefix + name, operation))
        return cls

    return decorate


def _recorded(method: Callable[..., Any], name: str, operation: Operation) -> Callable[..., Any]:
    parameters = list(signature(method).parameters.values())
    wanted = [
        (_PREFIX + one.name, one.name, at, one.default)
        for at, one in enumerate(parameters)
        if one.name in operation.arguments
    ]

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _LIBRARY not in _MODULES or (telemetry := _telemetry()) is None:
            return method(*args, **kwargs)
        if _CALLED.get() is args[0]:
            return method(*args, **kwargs)
        with telemetry.span(_PREFIX + name) as span:
            begun = perf_counter()
            outer = _CALLED.set(args[0])
            try:
                result = method(*args, **kwargs)
            except BaseException as error:
                telemetry.failed(span, name, perf_counter() - begun, error)
                raise
            finally:
                _CALLED.reset(outer)
            seconds = perf_counter() - begun
            asked = {
                attribute: kwargs.get(argument, args[at] if at < len(args) else default)
                for attribute, argument, at, default in wanted
            }
            telemetry.succeeded(span, name, seconds, asked, operation, result)
            return result

    return call


def stage(name: str) -> AbstractContextManager[object]:
    """Return what records a part of a call as a span of its own, inside the call's.

    Args:
        name: Such as "embed".
    """
    if _LIBRARY not in _MODULES or (telemetry := _telemetry()) is None:
        return _NOTHING
    return telemetry.span(_PREFIX + name)


def count_events(event: str, items: Sequence[Mapping[str, object]]) -> None:
    """Count the episodes that a change wrote or erased.

    Args:
        event: The type of event, as `EventLog` has it.
        items: What there is to say of each memory.
    """
    if event in _COUNTED_EVENTS and _LIBRARY in _MODULES:
        count_episodes(event, sum(item.get("kind") == "episodic" for item in items))


def count_episodes(event: str, number: int) -> None:
    """Count episodes as `count_events` does, where nobody needs to know which.

    Args:
        event: "memory_written" or "memory_forgotten".
        number: How many.
    """
    if number and _LIBRARY in _MODULES and (telemetry := _telemetry()) is not None:
        telemetry.counters[_COUNTED_EVENTS[event]].add(number)


class _Telemetry:
    """The tracer and the instruments of this library; the API passes on to any later SDK."""

    def __init__(self) -> None:
        from opentelemetry import metrics, trace  # noqa: PLC0415 - the application's choice

        self._tracer = trace.get_tracer("engram", __version__)
        self._error = trace.StatusCode.ERROR
        meter = metrics.get_meter("engram", __version__)
        (timed, (unit, text)), *counted = METRICS.items()
        self._duration = meter.create_histogram(
            timed, unit, text, explicit_bucket_boundaries_advisory=_SECONDS
        )
        self.counters = {
            name: meter.create_counter(name, unit, text) for name, (unit, text) in counted
        }

    def span(self, name: str) -> AbstractContextManager[Span]:
        # An exception's text, which the API would note by itself, may hold what was stored.
        return self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        )

    def succeeded(
        self,
        span: Span,
        name: str,
        seconds: float,
        asked: Mapping[str, _Value | None],
        operation: Operation,
        result: object,
    ) -> None:
        self._duration.record(seconds, {_OPERATION: name})
        if not (operation.finds or span.is_recording()):
            return
        described = {} if operation.describe is None else operation.describe(result)
        if operation.finds:
            found = described[_RESULTS]
            self.counters["engram.recalls"].add(1, {_OPERATION: name})
            self.counters["engram.results"].add(int(found), {_OPERATION: name})
        span.set_attributes(
            {key: value for key, value in (*asked.items(), *described.items()) if value is not None}
        )

    def failed(self, span: Span, name: str, seconds: float, error: BaseException) -> None:
        what = {_OPERATION: name, _ERROR: type(error).__name__}
        self._duration.record(seconds, what)
        self.counters["engram.errors"].add(1, what)
        span.set_attribute(_ERROR, what[_ERROR])
        span.set_status(self._error)


@cache
def _telemetry() -> _Telemetry | None:
    """Return the tracer and instruments; None where what the application has is not the API."""
    try:
        return _Telemetry()
    except (ImportError, AttributeError, TypeError):
        return None
