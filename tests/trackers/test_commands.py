"""--track and `ksearch track` at the command line, against a collector that is really listening."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra `otel` is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.cli.shell import shell_in

FAKE = ("run", "--model", "fake:1", "--name", "fake-1", "--evaluations", "5", "--quiet")


class Collector(ThreadingHTTPServer):
    spans: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        import gzip

        body = self.rfile.read(int(self.headers["content-length"]))
        body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.server.spans += [span.name for span in scope.spans]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector(("127.0.0.1", 0), _Handler) as server:
        server.spans = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def address(collector: Collector) -> str:
    return f"http://127.0.0.1:{collector.server_port}"


def test_a_search_is_traced_while_it_goes_on_and_again_afterwards(tmp_path: Path, collector: Collector) -> None:
    shell = shell_in(tmp_path)
    shell(*FAKE, "--track", "otel", OTEL_EXPORTER_OTLP_ENDPOINT=address(collector))
    live = sorted(collector.spans)
    assert live.count("evaluate") == 5
    assert live.count("search") == 1
    collector.spans.clear()
    out = shell("track", "fake-1", "--to", "otel", OTEL_EXPORTER_OTLP_ENDPOINT=address(collector))
    assert "events told to otel" in out
    assert sorted(collector.spans) == live


def test_the_setting_in_the_file_is_enough(tmp_path: Path, collector: Collector) -> None:
    (tmp_path / "ksearch.toml").write_text('track = "otel"\n')
    shell_in(tmp_path)(*FAKE, OTEL_EXPORTER_OTLP_ENDPOINT=address(collector))
    assert collector.spans.count("evaluate") == 5


def test_off_by_default(tmp_path: Path, collector: Collector) -> None:
    shell_in(tmp_path)(*FAKE, OTEL_EXPORTER_OTLP_ENDPOINT=address(collector))
    assert collector.spans == []


def test_an_unknown_tracker_begins_nothing(tmp_path: Path) -> None:
    shell = shell_in(tmp_path)
    assert "'tensorbord' is no tracker" in shell.fails(*FAKE, "--track", "tensorbord", code=2)
    assert shell.json("runs")["runs"] == []
    shell(*FAKE)
    assert "name a tracker" in shell.fails("track", "fake-1", code=2)
