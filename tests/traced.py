"""What an application's OpenTelemetry gets to see, kept in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from engram import tracing


class Telemetry:
    """The spans that ended and the metrics so far; the SDK itself, with nothing between."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    @contextmanager
    def installed(self) -> Iterator[Telemetry]:
        """Be the application's providers, which a process can set but once."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trace, "get_tracer", self.tracers.get_tracer)
            patch.setattr(metrics, "get_meter", self.meters.get_meter)
            tracing._telemetry.cache_clear()
            yield self
        tracing._telemetry.cache_clear()
        self.meters.shutdown()

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans in the order in which they ended."""
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def only(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span

    def counted(self, name: str) -> dict[tuple[object, ...], float]:
        """The values of a counter by its attributes' values, the counts of a histogram."""
        data = json.loads(self._metrics())
        return {
            tuple(point["attributes"].values()): point.get("value", point.get("count"))
            for resource in data["resource_metrics"]
            for scope in resource["scope_metrics"]
            for metric in scope["metrics"]
            if metric["name"] == name
            for point in metric["data"]["data_points"]
        }

    def everything(self) -> str:
        """All that left this process, as text."""
        return "\n".join([*(span.to_json() for span in self.spans), self._metrics()])

    def _metrics(self) -> str:
        found = self.reader.get_metrics_data()
        return '{"resource_metrics": []}' if found is None else found.to_json()
