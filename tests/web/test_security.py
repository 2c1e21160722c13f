"""Who is answered, and how much: hosts, origins, tokens, ids, sizes. One test for each rule."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ksearch.errors import BadInput
from ksearch.run import Run
from ksearch.store import Store, open_store
from ksearch.web import security
from ksearch.web.app import MAX_BLOB, MAX_PAGE, STATIC
from ksearch.web.desk import MAX_KEYS, Desk
from ksearch.web.serve import Place, listen
from tests.web.conftest import HERE, TOKEN, client_of

ADDRESSES = ["/", "/static/js/app.js", "/api/runs", "/api/snapshot", "/api/tree?at=1", "/api/programs", "/api/steps",
             "/api/calls", "/api/spans", "/api/remarks", "/api/workloads", "/api/events", "/api/stream",
             f"/api/program?id={'0' * 64}", f"/api/sources?id={'0' * 64}", f"/api/blob/{'0' * 64}"]  # fmt: skip


# --- token ---


@pytest.mark.parametrize("address", ADDRESSES)
def test_nothing_is_answered_without_the_token(viewed: Store, address: str) -> None:
    stranger = client_of(Desk(viewed, "softmax-1"), signed_in=False)
    reply = stranger.get(address)
    assert reply.status_code == 401
    assert "softmax" not in reply.text


@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + "x", "ä" * 10, TOKEN.upper()])
def test_wrong_tokens_are_refused_everywhere(viewed: Store, wrong: str) -> None:
    stranger = client_of(Desk(viewed, "softmax-1"), signed_in=False)
    assert stranger.get("/", params={"token": wrong}).status_code == 401
    assert stranger.get("/api/runs", headers={"authorization": f"Bearer {wrong}".encode()}).status_code == 401
    assert stranger.get("/api/runs", headers={"cookie": f"ksearch_token_8321={wrong}".encode()}).status_code == 401


def test_token_in_the_address_becomes_a_cookie_and_leaves_the_address(viewed: Store) -> None:
    stranger = client_of(Desk(viewed, "softmax-1"), signed_in=False)
    reply = stranger.get("/", params={"token": TOKEN})
    assert reply.status_code == 303
    assert reply.headers["location"] == "./"
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/api/runs").status_code == 200


def test_token_in_the_address_opens_no_data(viewed: Store) -> None:
    stranger = client_of(Desk(viewed, "softmax-1"), signed_in=False)
    assert stranger.get("/api/runs", params={"token": TOKEN}).status_code == 401


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, viewed: Store) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, token: bytes) -> bool:
        seen.append((given, token))
        return given == token

    monkeypatch.setattr("ksearch.web.security.hmac.compare_digest", compare)
    client = client_of(Desk(viewed, "softmax-1"))
    assert client.get("/api/runs").status_code == 200
    assert (TOKEN.encode(), TOKEN.encode()) in seen


# --- host and origin ---


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8321", "", "127.0.0.2", "[::2]:1", "a]b"]
)
def test_other_host_names_are_refused_so_that_rebinding_fails(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:8321", "[::1]:8321", "LOCALHOST"])
def test_loopback_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8321", "junk", "http://["]
)
def test_requests_from_other_origins_are_refused(client: TestClient, origin: str) -> None:
    for reply in (
        client.get("/api/runs", headers={"origin": origin}),
        client.post("/api/command", json={}, headers={"origin": origin}),
    ):
        assert reply.status_code == 403


def test_own_origin_is_answered_and_cross_site_fetches_are_not(client: TestClient) -> None:
    assert client.get("/api/runs", headers={"origin": HERE}).status_code == 200
    assert client.get("/api/runs", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    for site in ("cross-site", "same-site"):
        assert client.get("/api/runs", headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client: TestClient, method: str) -> None:
    assert client.request(method, "/api/runs").status_code == 405


# --- headers ---


@pytest.mark.parametrize("address", ["/", "/api/runs", "/static/js/app.js", "/nowhere"])
def test_policy_allows_nothing_inline_and_nothing_from_elsewhere(client: TestClient, address: str) -> None:
    headers = client.get(address).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_pages_load_nothing_from_elsewhere_and_hold_no_inline_script() -> None:
    for path in STATIC.rglob("*"):
        if path.suffix not in (".html", ".js", ".css") or "vendor" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        assert "http://" not in text.replace("http://www.w3.org", ""), path
        assert "https://" not in text, path
        assert "innerHTML" not in text.replace("dangerouslySetInnerHTML", "innerHTML"), path
        assert "eval(" not in text, path
    index = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "<script>" not in index
    assert " style=" not in index
    assert " on" + "click" not in index


def test_blobs_are_plain_text_that_runs_nothing(client: TestClient, viewed: Store) -> None:
    run = Run(viewed, "softmax-1")
    reply = client.get(f"/api/blob/{run.state.best_id}")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in reply.headers["content-security-policy"]
    assert "immutable" in reply.headers["cache-control"]
    assert client.get("/api/runs").headers["cache-control"] == "no-store"


# --- ids only ---


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "%00" * 64]
)
def test_only_hashes_name_blobs(client: TestClient, name: str) -> None:
    assert client.get(f"/api/blob/{name}").status_code in (404, 422)


@pytest.mark.parametrize(
    "path", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "js/../../app.py", "/etc/passwd", "....//app.py"]
)
def test_static_files_stay_in_their_folder(client: TestClient, path: str) -> None:
    reply = client.get(f"/static/{path}")
    assert reply.status_code == 404
    assert "import" not in reply.text


@pytest.mark.parametrize("run", ["../x", "a/b", "", "a" * 101, "x;y", "x\ny", "ü"])
def test_only_names_of_runs_name_runs(client: TestClient, run: str) -> None:
    assert client.get("/api/snapshot", params={"run": run}).status_code == 422


def test_unknown_runs_programs_and_blobs_are_404(client: TestClient) -> None:
    assert client.get("/api/snapshot", params={"run": "nobody"}).status_code == 404
    assert client.get("/api/program", params={"id": "0" * 64}).status_code == 404
    assert client.get(f"/api/blob/{'0' * 64}").status_code == 404


# --- limits ---


def test_long_bodies_are_refused_before_they_are_read(client: TestClient) -> None:
    long = b"x" * (security.MAX_BODY + 1)
    assert client.post("/api/command", content=long).status_code == 413
    assert client.get("/api/runs", headers={"content-length": "-1"}).status_code == 413


def test_long_bodies_without_a_length_end_at_the_limit(client: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(security.MAX_BODY // 1000 + 50):
            yield b'"' + b"x" * 999

    reply = client.post("/api/command", content=endless(), headers={"content-type": "application/json"})
    assert reply.status_code in (400, 413, 422)


def test_long_queries_are_refused(client: TestClient) -> None:
    assert client.get(f"/api/runs?x={'y' * security.MAX_QUERY}").status_code == 414


@pytest.mark.parametrize(
    "query", ["limit=0", f"limit={MAX_PAGE + 1}", "since=-1", "since=1e3", "since=99999999999999999999", "limit=x"]
)
def test_pages_have_a_limit_and_numbers_are_numbers(client: TestClient, query: str) -> None:
    for name in ("programs", "steps", "calls", "spans", "remarks"):
        reply = client.get(f"/api/{name}?{query}")
        assert reply.status_code == 422
        assert "error" in reply.json()


def test_blobs_come_in_pages(place: Path) -> None:
    with open_store(place) as store:
        data = bytes(range(256)) * (5 * 4096)  # 5 MiB
        sha = store.put_blob(data)
        store.create_run("x", {})
        client = client_of(Desk(store, "x"))
        reply = client.get(f"/api/blob/{sha}")
        assert len(reply.content) == MAX_BLOB
        assert reply.headers["x-total-bytes"] == str(len(data))
        second = client.get(f"/api/blob/{sha}", params={"offset": MAX_BLOB, "limit": 100})
        assert second.content == data[MAX_BLOB : MAX_BLOB + 100]
        assert client.get(f"/api/blob/{sha}", params={"limit": MAX_BLOB + 1}).status_code == 422


# --- commands ---


def command(client: TestClient, body: Any, key: str = "key-00000001", **headers: str) -> Any:
    sent = {"run": "live-1", "command": body}
    return client.post("/api/command", json=sent, headers={"idempotency-key": key, **headers})


def test_command_becomes_an_event_with_its_author(live: tuple[Run, TestClient]) -> None:
    run, client = live
    reply = command(client, {"type": "pause", "reason": "lunch"})
    assert reply.status_code == 200
    assert run.refresh().paused == "lunch"
    last = [e.body for e in run.store.read("live-1")][reply.json()["from"] - 1]
    assert (last["type"], last["author"], last["command"]) == (
        "commanded",
        "alice",
        {"type": "pause", "reason": "lunch"},
    )


@pytest.mark.parametrize(
    "body",
    [
        {"type": "note", "text": "hello"},
        {"type": "stop", "reason": "enough"},
        {"type": "set_budget", "budget": {"evaluations": 99, "usd": 2.5}},
        {"type": "add_action", "parent_id": "root", "value": 0.9, "action": {"title": "Tile it", "difficulty": 2}},
    ],
)
def test_verbs_are_taken(live: tuple[Run, TestClient], body: dict[str, Any]) -> None:
    run, client = live
    reply = command(client, body)
    assert reply.status_code == 200, reply.text
    assert run.refresh() is run.state
    assert any(e.body["type"] == "commanded" for e in run.store.read("live-1"))


def test_verbs_on_a_node_are_taken(live: tuple[Run, TestClient]) -> None:
    run, client = live
    assert (
        command(client, {"type": "add_action", "parent_id": "root", "action": {"title": "A"}}, "k-add-000").status_code
        == 200
    )
    assert command(client, {"type": "pin", "node_id": "n1"}, "k-pin-000").status_code == 200
    assert command(client, {"type": "boost", "node_id": "n1", "value": 0.95}, "k-boost-0").status_code == 200
    node = run.refresh().tree["n1"]
    assert (node.pinned, node.value) == (True, 0.95)
    assert command(client, {"type": "prune_node", "node_id": "n1", "reason": "no"}, "k-prune-0").status_code == 200
    assert run.refresh().tree["n1"].status == "pruned"


def test_same_key_is_carried_out_once(live: tuple[Run, TestClient]) -> None:
    run, client = live
    body = {"type": "note", "text": "once"}
    replies: list[Any] = []
    threads = [threading.Thread(target=lambda: replies.append(command(client, body).json())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == 4
    assert all(r == replies[0] for r in replies)
    assert sum(e.body["type"] == "commanded" for e in run.store.read("live-1")) == 1
    assert command(client, body, "key-00000002").json() != replies[0]


def test_keys_are_forgotten_at_last(live: tuple[Run, TestClient], monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_KEYS == 1000
    monkeypatch.setattr("ksearch.web.desk.MAX_KEYS", 2)
    run, client = live
    for i in range(4):
        command(client, {"type": "note", "text": "x"}, f"key-000000{i}0")
    command(client, {"type": "note", "text": "x"}, "key-00000000")
    assert sum(e.body["type"] == "commanded" for e in run.store.read("live-1")) == 5


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"type": "launch"}, 422),
        ({"type": "pause", "reason": 7}, 422),
        ({"type": "pause", "extra": 1}, 422),
        ({"type": "boost", "node_id": "root", "value": 0.5}, 409),
        ({"type": "boost", "node_id": "n77", "value": 0.5}, 409),
        ({"type": "prune_node", "node_id": "root"}, 409),
        ({"type": "resume"}, 409),
        ({"type": "set_budget", "budget": {"evaluations": -1}}, 422),
        ({"type": "add_action", "parent_id": "root", "action": {"title": " "}}, 422),
        ({}, 422),
        ("pause", 422),
    ],
)
def test_bad_commands_are_refused_with_the_reason_and_record_nothing(
    live: tuple[Run, TestClient], body: Any, status: int
) -> None:
    run, client = live
    reply = command(client, body)
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]
    assert run.store.run("live-1").seq == run.seq


def test_commands_need_a_key_and_json(live: tuple[Run, TestClient]) -> None:
    run, client = live
    sent = {"run": "live-1", "command": {"type": "pause"}}
    assert client.post("/api/command", json=sent).status_code == 422
    assert client.post("/api/command", json=sent, headers={"idempotency-key": "short"}).status_code == 422
    form = client.post(
        "/api/command",
        content=json.dumps(sent),
        headers={"content-type": "text/plain", "idempotency-key": "key-00000001"},
    )
    assert form.status_code in (415, 422)
    assert run.store.run("live-1").seq == run.seq


def test_numbers_that_are_not_finite_are_not_taken(live: tuple[Run, TestClient]) -> None:
    run, client = live
    text = '{"run":"live-1","command":{"type":"boost","node_id":"root","value":NaN}}'
    headers = {"content-type": "application/json", "idempotency-key": "key-00000001"}
    assert client.post("/api/command", content=text, headers=headers).status_code in (400, 422)
    assert run.store.run("live-1").seq == run.seq


def test_store_for_viewing_takes_no_commands(viewed: Store) -> None:
    client = client_of(Desk(viewed, "softmax-1"))
    reply = client.post(
        "/api/command",
        json={"run": "softmax-1", "command": {"type": "resume"}},
        headers={"idempotency-key": "key-00000001"},
    )
    assert reply.status_code == 409
    assert "viewing only" in reply.json()["error"]


# --- where it listens ---


def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    with listen(Place()) as sock:
        assert sock.getsockname()[0] == "127.0.0.1"
        with pytest.raises(BadInput, match="cannot listen"):
            listen(Place(port=sock.getsockname()[1], host="203.0.113.1"))
