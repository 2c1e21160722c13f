"""OpenTelemetry: a trace of the run. Model calls follow the semantic conventions for generative AI; where it is
sent is the exporter's business: OTEL_EXPORTER_OTLP_ENDPOINT and its like.

Trace and span ids follow from the run and the event, so a run that is told of twice is the same trace.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from ksearch import __version__
from ksearch.trackers.base import Call, Closed, End, Fact, Measured, Start

if TYPE_CHECKING:
    from opentelemetry.context import Context

Value = str | bool | int | float
SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
MAX_TEXT = 500  # characters of a reason
SPECS = {"plan": "planner_model", "write": "writer_model"}
# Names of the conventions where they differ from ours.
PROVIDERS = {"openai-chat": "openai", "google": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}


class _Ids(IdGenerator):
    """The ids of the next span, set just before it is begun."""

    def __init__(self, trace: str) -> None:
        self.trace = trace
        self.span = ""

    def generate_trace_id(self) -> int:
        return int(_digest(self.trace)[:32], 16)

    def generate_span_id(self) -> int:
        return int(_digest(f"{self.trace}\n{self.span}")[:16], 16)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class OtelTracker:
    """Spans with the times of the log: `search` over all, `chat MODEL` for each call, `evaluate` for each program."""

    def __init__(self, run: str, created_at: float, processor: SpanProcessor) -> None:
        self.run = run
        self._ids = _Ids(f"{run}\n{created_at!r}")
        self._provider = TracerProvider(resource=_resource(), id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("ksearch", __version__, schema_url=SCHEMA)
        self._root: Span | None = None
        self._context: Context | None = None
        self._last = created_at
        self._specs: dict[str, str] = {}  # role -> PROVIDER:MODEL, as the run was begun with

    def take(self, fact: Fact) -> None:
        match fact:
            case Start(parameters=given):
                spec = str(given.get("model", ""))
                self._specs = {role: str(given.get(name) or spec) for role, name in SPECS.items()}
                self._root = self._begin("search", "root", fact.at, SpanKind.INTERNAL, _search(fact))
                self._context = set_span_in_context(self._root)
            case Call():
                self._call(fact)
            case Measured():
                self._measured(fact)
            case Closed():
                self._closed(fact)
            case End():
                self._end(fact)

    def _begin(self, name: str, id: str, at: float, kind: SpanKind, attributes: Mapping[str, Value]) -> Span:
        self._ids.span = id
        return self._tracer.start_span(name, self._context, kind, dict(attributes), start_time=_ns(at))

    def _call(self, fact: Call) -> None:
        provider, _, model = self._specs.get(fact.role, "").partition(":")
        found: dict[str, Value] = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": self.run}
        found["gen_ai.provider.name"] = PROVIDERS.get(provider, provider or "unknown")
        found |= {"gen_ai.request.model": model or fact.model} if model or fact.model else {}
        found |= {"gen_ai.response.model": fact.model} if fact.model else {}
        found |= {"ksearch.request": fact.request, "ksearch.role": fact.role, "ksearch.node": fact.node}
        found |= {"ksearch.tokens": fact.tokens} if fact.tokens else {}
        found |= {"ksearch.usd": fact.usd} if fact.usd is not None else {}
        span = self._begin(
            f"chat {model or fact.model}".strip(), f"event {fact.seq}", fact.began, SpanKind.CLIENT, found
        )
        if fact.finish:
            span.set_attribute("gen_ai.response.finish_reasons", [fact.finish])
        if fact.error:
            span.set_attribute("error.type", "lost")
            span.set_status(Status(StatusCode.ERROR, fact.error[:MAX_TEXT]))
        self._finish(span, fact.ended)

    def _measured(self, fact: Measured) -> None:
        done = fact.evaluation
        found: dict[str, Value] = {
            "ksearch.request": fact.request,
            "ksearch.node": fact.node,
            "ksearch.program": done.program_id,
            "ksearch.verdict": done.verdict.value,
            "ksearch.evaluation": fact.count,
        }
        found |= {"ksearch.stage": done.stage} if done.stage else {}
        found |= {"ksearch.device": done.device} if done.device else {}
        span = self._begin("evaluate", f"event {fact.seq}", fact.began, SpanKind.INTERNAL, found)
        result: dict[str, Value] = {"gen_ai.evaluation.name": "speedup"}
        result["gen_ai.evaluation.score.label"] = done.verdict.value
        if done.speedup and done.latency_ms is not None:
            result["gen_ai.evaluation.score.value"] = done.speedup.value
            span.set_attribute("ksearch.latency_ms", done.latency_ms)
        if done.reason:
            result["gen_ai.evaluation.explanation"] = done.reason[:MAX_TEXT]
        # A program that fails is data, not a failure of the evaluation: the span's status stays unset.
        span.add_event("gen_ai.evaluation.result", result, _ns(fact.ended))
        self._finish(span, fact.ended)

    def _closed(self, fact: Closed) -> None:
        if self._root is None:
            return
        found: dict[str, Value] = {"ksearch.node": fact.node, "ksearch.reason": fact.reason}
        found |= {"ksearch.gain": fact.gain} if fact.gain is not None else {}
        found |= {"ksearch.predicted": fact.predicted} if fact.predicted is not None else {}
        self._root.add_event("action closed", found, _ns(fact.at))
        self._last = max(self._last, fact.at)

    def _end(self, fact: End) -> None:
        if self._root is not None:
            found = {f"ksearch.{name}": value for name, value in fact.summary.items()}
            self._root.set_attributes({**found, "ksearch.ended": fact.reason or "not ended"})
        self._last = max(self._last, fact.at)

    def _finish(self, span: Span, at: float) -> None:
        span.end(_ns(at))
        self._last = max(self._last, at)

    def close(self) -> None:
        """A root span is sent when it is over; one that is told of again, longer, takes its place by its id."""
        if self._root is not None:
            self._root.end(_ns(self._last))
        self._provider.shutdown()


def _resource() -> Resource:
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word."""
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    ours = {"service.version": __version__}
    return Resource.create(ours if named else {**ours, "service.name": "ksearch"})


def _search(fact: Start) -> dict[str, Value]:
    found: dict[str, Value] = {"gen_ai.conversation.id": fact.run, "ksearch.run": fact.run}
    for name, value in fact.parameters.items():
        found[f"ksearch.{name}"] = value if isinstance(value, str | bool | int | float) else str(value)
    return found


def _ns(at: float) -> int:
    return int(at * 1e9)


def otel_tracker(run: str, created_at: float, exporter: SpanExporter | None = None) -> OtelTracker:
    """A tracker that sends by OTLP over HTTP."""
    if exporter is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter()
    return OtelTracker(run, created_at, BatchSpanProcessor(exporter))
