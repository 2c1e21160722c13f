"""The server's addresses. All of them read, but one; all answer strict JSON, in pages, by ids only."""

from __future__ import annotations

import re
import threading
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Header, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from ksearch.errors import KSearchError
from ksearch.web.compare import heat_map
from ksearch.web.desk import Desk, status_of
from ksearch.web.detail import program_detail, sources
from ksearch.web.security import Guard, Rules
from ksearch.web.stages import MAX_ANSWER, Stages
from ksearch.web.stream import Streams, event_json
from ksearch.web.strict import StrictJSON

MAX_PAGE = 2000  # rows in one answer
MAX_BLOB = 1024 * 1024  # bytes of a blob in one answer
STATIC = Path(str(files("ksearch.web") / "static"))
SHA = re.compile(r"[0-9a-f]{64}")

RunName = Annotated[str | None, Query(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Since = Annotated[int, Query(ge=0, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE)]
Sha = Annotated[str, Query(pattern=r"^[0-9a-f]{64}$")]


def make_app(desk: Desk, rules: Rules) -> Guard:
    """The application, guarded. `desk` stays the caller's to close; setting `closing` ends the open streams."""
    # No pages that describe the interface: they load scripts from elsewhere. Every answer is made with `StrictJSON`
    # itself, or the framework would turn what is not finite into null without a word.
    app = FastAPI(title="K-Search", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(KSearchError, _told)
    app.add_exception_handler(RequestValidationError, _unreadable)
    _reading(app, desk)
    _objects(app, desk)
    _speaking(app, desk)
    closing = threading.Event()
    _streaming(app, desk, closing)
    app.add_api_route("/", _index, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return Guard(app, rules, closing)


def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, KSearchError)
    return StrictJSON({"error": str(error)}, status_of(error))


def _unreadable(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return StrictJSON({"error": f"{where}: {first['msg']}"}, 422)


def _index() -> Response:
    return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})


def _reading(app: FastAPI, desk: Desk) -> None:
    @app.get("/api/runs")
    def runs() -> Response:
        return StrictJSON({"runs": desk.runs(), "default": desk.default})

    @app.get("/api/snapshot")
    def snapshot(run: RunName = None, since: Since = 0) -> Response:
        return StrictJSON({**desk.reader(run).snapshot(since), "speaks": desk.writable is not None})

    @app.get("/api/tree")
    def tree(at: Since, run: RunName = None, known: Annotated[int | None, Query(ge=0, le=2**53)] = None) -> Response:
        return StrictJSON(desk.reader(run).tree_at(at, known))

    @app.get("/api/programs")
    def programs(run: RunName = None, since: Since = 0, limit: Limit = MAX_PAGE) -> Response:
        return StrictJSON(desk.reader(run).programs(since, limit))

    @app.get("/api/workloads")
    def workloads(
        run: RunName = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        order: Annotated[str, Query(pattern="^(best|worst|newest)$")] = "best",
    ) -> Response:
        reader = desk.reader(run)
        reader.refresh()
        return StrictJSON(heat_map(reader, limit, order))

    stages = Stages(desk.store)

    @app.get("/api/stages")
    def latest_stages(run: RunName = None, limit: Annotated[int, Query(ge=1, le=MAX_ANSWER)] = MAX_ANSWER) -> Response:
        return StrictJSON(stages.latest(desk.reader(run), limit))

    for name in ("steps", "calls", "spans", "remarks"):
        _list(app, desk, name)


def _list(app: FastAPI, desk: Desk, name: str) -> None:
    def listed(run: RunName = None, since: Since = 0, limit: Limit = MAX_PAGE) -> Response:
        return StrictJSON(desk.reader(run).listed(name, since, limit))

    app.add_api_route(f"/api/{name}", listed, methods=["GET"])


def _objects(app: FastAPI, desk: Desk) -> None:
    @app.get("/api/events")
    def events(run: RunName = None, after: Since = 0, limit: Limit = 200) -> Response:
        found = desk.reader(run).events(after, limit)
        return StrictJSON({"events": [event_json(e) for e in found], "next": found[-1].seq if found else after})

    @app.get("/api/program")
    def program(id: Sha, run: RunName = None) -> Response:
        found = program_detail(desk.reader(run), id)
        if found is None:
            raise HTTPException(404, f"this run has no program {id}")
        return StrictJSON(found)

    @app.get("/api/sources")
    def only_sources(id: Sha) -> Response:
        return StrictJSON(sources(desk.store, id))

    @app.get("/api/blob/{sha}")
    def blob(sha: str, offset: Since = 0, limit: Annotated[int, Query(ge=1, le=MAX_BLOB)] = MAX_BLOB) -> Response:
        if not SHA.fullmatch(sha):
            raise HTTPException(404, "a blob is named by 64 hexadecimal digits")
        data = desk.store.get_blob(sha)
        headers = {
            "cache-control": "private, max-age=31536000, immutable",
            "x-total-bytes": str(len(data)),
            # Never a page of ours, whatever is in it.
            "content-security-policy": "default-src 'none'; sandbox",
        }
        return Response(data[offset : offset + limit], headers=headers, media_type="text/plain; charset=utf-8")


def _speaking(app: FastAPI, desk: Desk) -> None:
    @app.post("/api/command")
    def command(
        command: Annotated[dict[str, Any], Body()],
        run: Annotated[str, Body(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")],
        content_type: Annotated[str, Header()],
        idempotency_key: Annotated[str, Header(min_length=8, max_length=100)],
    ) -> Response:
        # A form on another site can post text, never this type without being asked first.
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "a command is sent as application/json")
        status, answer = desk.command(run, idempotency_key, command)
        return StrictJSON(answer, status)


def _streaming(app: FastAPI, desk: Desk, closing: threading.Event) -> None:
    streams = Streams(desk, closing)

    @app.get("/api/stream")
    async def stream(
        run: RunName = None,
        after: Since = 0,
        last_event_id: Annotated[str | None, Header(max_length=20, pattern=r"^\d*$")] = None,
    ) -> Response:
        return await streams.open(run, int(last_event_id) if last_event_id else after)
