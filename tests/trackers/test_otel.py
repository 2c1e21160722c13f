"""OpenTelemetry with the real SDK: what a collector would get."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.trace import SpanKind, StatusCode

from ksearch import events as ev
from ksearch.drivers import drive
from ksearch.fold import apply
from ksearch.protocol import Budget, SearchConfig
from ksearch.run import Run
from ksearch.state import State
from ksearch.store import open_store
from ksearch.testing.fakes import fake_desk
from ksearch.trackers import Feed, feed_all
from ksearch.trackers.otel import OtelTracker

CREATED_AT = 1_700_000_000.0


def searched() -> Run:
    context = {"task": "softmax", "config": '{"model": "google:gemini-x", "writer_model": "openai:gpt-5"}'}
    run = Run.create(open_store(":memory:"), "fake-1", SearchConfig(Budget(8)), context)
    drive(run, fake_desk(1), sleep=lambda _: None)
    return run


@pytest.fixture(scope="module")
def run() -> Run:
    return searched()


def told(log: list[ev.Event]) -> tuple[ReadableSpan, ...]:
    exporter = InMemorySpanExporter()
    tracker = OtelTracker("fake-1", CREATED_AT, SimpleSpanProcessor(exporter))
    feed_all("fake-1", log, tracker.take)
    tracker.close()
    return exporter.get_finished_spans()


def test_each_model_call_is_a_client_span_by_the_conventions(run: Run) -> None:
    spans = [span for span in told(run.log()) if span.name.startswith("chat")]
    received = [event for event in run.log() if isinstance(event, ev.Received)]
    assert len(spans) == len(received) > 3
    known = {value for name, value in vars(conventions).items() if name.startswith("GEN_AI_")}
    for span in spans:
        assert span.kind is SpanKind.CLIENT
        facts = span.attributes
        assert facts["gen_ai.operation.name"] == "chat"
        role = facts["ksearch.role"]
        provider, model = {"plan": ("gcp.gemini", "gemini-x"), "write": ("openai", "gpt-5")}[role]
        assert (facts["gen_ai.provider.name"], facts["gen_ai.request.model"]) == (provider, model)
        assert span.name == f"chat {model}"
        assert {name for name in facts if name.startswith("gen_ai.")} <= known
        assert all(name.startswith(("gen_ai.", "ksearch.")) for name in facts)
    assert [span.end_time for span in spans] == [int(event.at * 1e9) for event in received]


def test_each_evaluation_is_a_span_with_a_result_event(run: Run) -> None:
    spans = [span for span in told(run.log()) if span.name == "evaluate"]
    measured = [event.evaluation for event in run.log() if isinstance(event, ev.Evaluated)]
    assert len(spans) == len(measured) == 8
    for span, done in zip(spans, measured, strict=True):
        (result,) = span.events
        assert result.name == "gen_ai.evaluation.result"
        assert result.attributes["gen_ai.evaluation.name"] == "speedup"
        assert result.attributes["gen_ai.evaluation.score.label"] == done.verdict
        assert result.attributes.get("gen_ai.evaluation.score.value") == (done.speedup.value if done.speedup else None)
        assert span.status.status_code is StatusCode.UNSET


def test_all_spans_are_below_one_root_that_sums_up(run: Run) -> None:
    spans = told(run.log())
    (root,) = [span for span in spans if span.parent is None]
    assert root.name == "search"
    assert {span.parent.span_id for span in spans if span.parent} == {root.context.span_id}
    assert root.attributes["ksearch.evaluations"] == 8
    assert root.attributes["ksearch.ended"] == "budget: evaluations"
    assert root.attributes["ksearch.budget.evaluations"] == 8
    assert root.start_time <= min(span.start_time for span in spans)
    assert root.end_time >= max(span.end_time for span in spans)
    assert root.resource.attributes["service.name"] == "ksearch"


def test_told_twice_is_the_same_trace(run: Run) -> None:
    once, again = ({(s.context.trace_id, s.context.span_id, s.name) for s in told(run.log())} for _ in range(2))
    assert once == again
    assert len(once) == len(told(run.log()))  # no two spans share an id


def test_told_live_is_told_afterwards(run: Run) -> None:
    exporter, state = InMemorySpanExporter(), State()
    tracker = OtelTracker("fake-1", CREATED_AT, SimpleSpanProcessor(exporter))
    feed = Feed("fake-1", tracker.take)
    for event in run.log():
        state = apply(state, event)
        feed(event, state)
    tracker.close()
    live, later = ([(s.name, s.start_time, s.end_time, dict(s.attributes)) for s in spans]
                   for spans in (exporter.get_finished_spans(), told(run.log())))  # fmt: skip
    assert live == later


def test_a_run_cut_short_at_any_event_can_be_told(run: Run) -> None:
    log = run.log()
    for count in range(1, len(log)):
        spans = told(log[:count])
        assert next(s for s in spans if s.parent is None).attributes["ksearch.ended"] == "not ended"


def test_a_lost_call_is_an_error(run: Run) -> None:
    log, at = run.log(), run.state.last_at
    asked = next(i for i, e in enumerate(log) if isinstance(e, ev.Leased))
    spans = told([*log[: asked + 1], ev.WorkLost(at=at, request_id=log[asked].request_id, reason="no line")])
    (call,) = [span for span in spans if span.name.startswith("chat")]
    assert call.status.status_code is StatusCode.ERROR
    assert call.status.description == "no line"
    assert call.attributes["error.type"] == "lost"


@pytest.mark.parametrize(("variable", "name"), [(None, "ksearch"), ("kernels", "kernels")])
def test_the_service_name_is_the_users(run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, name: str) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    if variable:
        monkeypatch.setenv("OTEL_SERVICE_NAME", variable)
    assert told(run.log())[0].resource.attributes["service.name"] == name
