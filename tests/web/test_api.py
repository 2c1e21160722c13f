"""What the server answers: the run as the core knows it, in pages, changed rows only, back in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ksearch.codec import decode_event
from ksearch.drivers import drive
from ksearch.fold import fold
from ksearch.run import Run
from ksearch.store import Store, export_run, open_store
from ksearch.types import NodeStatus, Verdict
from ksearch.web.desk import Desk
from ksearch.web.reader import RunReader
from tests.web import sample
from tests.web.conftest import client_of


def rows(client: TestClient, name: str, page: int = 7, run: str | None = None) -> list[dict[str, Any]]:
    """All rows of a list, by small pages; each row once, in its last form."""
    found: dict[int, dict[str, Any]] = {}
    since, more = 0, True
    while more:
        params = {"since": since, "limit": page} | ({"run": run} if run else {})
        body = client.get(f"/api/{name}", params=params).json()
        found |= {row.get("n", row.get("i")): row for row in body["rows"]}
        since, more = body["next"], body["more"]
    return [found[key] for key in sorted(found)]


def test_snapshot_is_the_state_that_the_core_folds(client: TestClient, viewed: Store) -> None:
    run = Run(viewed, "softmax-1")
    body = client.get("/api/snapshot").json()
    assert (body["run"], body["seq"]) == ("softmax-1", run.seq)
    assert [n["id"] for n in body["nodes"]] == list(run.state.tree)
    for row in body["nodes"]:
        node = run.state.tree[row["id"]]
        assert (row["status"], row["v"], row["program"]) == (node.status.value, node.value, node.program_id)
    head = body["head"]
    assert head["best"]["program"] == run.state.best_id
    assert head["ended"] == run.state.ended
    assert {g["name"]: g["used"] for g in head["budgets"]}["evaluations"] == run.state.evaluated
    assert sum(head["mix"].values()) == run.state.attempts


def test_cost_of_the_nodes_adds_up_to_what_was_spent(client: TestClient, viewed: Store) -> None:
    nodes = client.get("/api/snapshot").json()["nodes"]
    spent = Run(viewed, "softmax-1").state.spent
    assert sum(n["spent"]["tokens"] for n in nodes if n["spent"]) == spent.tokens
    assert sum(n["spent"]["usd"] for n in nodes if n["spent"]) == pytest.approx(spent.usd)


def test_every_attempt_is_there_with_its_verdict_and_decision(client: TestClient, viewed: Store) -> None:
    state = Run(viewed, "softmax-1").state
    attempts = rows(client, "programs")
    assert len(attempts) == state.attempts
    passed = [a for a in attempts if a["verdict"] == Verdict.PASSED]
    assert {a["program"] for a in passed} == {id for id, e in state.evaluations.items() if e.speedup}
    assert all(a["speedup"][1] <= a["speedup"][0] <= a["speedup"][2] for a in passed)
    assert [a["program"] for a in attempts if a.get("best")][-1] == state.best_id
    assert {a["verdict"] for a in attempts} > {"passed"}
    assert any(a["verdict"] in ("unparsable", "truncated") and a["program"] is None for a in attempts)


def test_calls_spans_steps_and_remarks_are_complete(client: TestClient, viewed: Store) -> None:
    log = Run(viewed, "softmax-1").log()
    count = {
        name: sum(type(e).__name__ == name for e in log) for name in ("Received", "Leased", "CycleClosed", "Planned")
    }
    assert len(rows(client, "calls")) == count["Received"]
    told = {c["kind"]: (c["sent"], c["notes"]) for c in rows(client, "calls")}
    assert told == {"plan": ("", []), "write": ('{"max_tokens": 16000}', ["no temperature"])}
    assert len(rows(client, "spans")) == count["Leased"]
    assert all(s["end"] is not None for s in rows(client, "spans"))
    kinds = [s["kind"] for s in rows(client, "steps")]
    assert kinds.count("plan") == count["Planned"]
    assert kinds.count("solved") + kinds.count("rejected") + kinds.count("cut short") == count["CycleClosed"]
    assert [r["author"] for r in rows(client, "remarks")] == ["alice"]


def test_refused_edits_are_shown_with_the_reason(client: TestClient, tmp_path: Path) -> None:
    refused = [s for s in rows(client, "steps") if s["kind"] == "refused"]
    with open_store(tmp_path / "more.db") as store:
        if not refused:  # the seed decides; another run then shows it
            sample.finished(store, "softmax-9", 60, seed=3)
            refused = [s for s in rows(client_of(Desk(store, "softmax-9")), "steps") if s["kind"] == "refused"]
    with_edits = [s for s in refused if s.get("edits")]
    assert with_edits
    assert with_edits[0]["edits"][0]["node"] == "n999"
    assert "n999" in with_edits[0]["reason"]
    assert with_edits[0]["changes"] == []


def test_only_what_changed_since_an_event_is_sent_again(live: tuple[Run, TestClient]) -> None:
    run, client = live
    drive(run, sample.desk(), sleep=lambda _: None)
    first = client.get("/api/snapshot").json()
    again = client.get("/api/snapshot", params={"since": first["seq"]}).json()
    assert again["nodes"] == []
    said = client.post(
        "/api/command",
        json={"run": "live-1", "command": {"type": "add_action", "parent_id": "root", "action": {"title": "new"}}},
        headers={"idempotency-key": "12345678"},
    )
    assert said.status_code == 200, said.text
    news = poll(client, first["seq"])
    assert [n["title"] for n in news["nodes"]] == ["new"]


def poll(client: TestClient, since: int) -> dict[str, Any]:
    import time

    for _ in range(40):
        body: dict[str, Any] = client.get("/api/snapshot", params={"since": since}).json()
        if body["seq"] > since:
            return body
        time.sleep(0.05)
    raise AssertionError("nothing new was seen within 2 s")


def test_rows_that_a_page_gathers_step_by_step_are_those_it_would_get_at_once(place: Path) -> None:
    """Incremental reading after each few events gives the same as one reading at the end."""
    with open_store(place) as store:
        log = [e.body for e in _source_log(store)]
        store.create_run("copy", {})
        gathered: dict[str, dict[str, Any]] = {}
        tries: dict[int, dict[str, Any]] = {}
        reader, since, next_try = RunReader(store, "copy", poll_s=0), 0, 0
        for at in range(0, len(log), 9):
            store.append("copy", at, log[at : at + 9])
            body = reader.snapshot(since)
            gathered |= {n["id"]: n for n in body["nodes"]}
            since = body["seq"]
            page = reader.programs(next_try, 3)
            while True:
                tries |= {t["n"]: t for t in page["rows"]}
                next_try = page["next"]
                if not page["more"]:
                    break
                page = reader.programs(next_try, 3)
        whole = RunReader(store, "copy", poll_s=0)
        assert list(gathered.values()) == whole.snapshot()["nodes"]
        assert [tries[k] for k in sorted(tries)] == sorted(whole.programs(0, 2000)["rows"], key=lambda t: t["n"])


def _source_log(store: Store) -> list[Any]:
    sample.finished(store, "source", 20, seed=5)
    return list(store.read("source"))


def test_tree_at_any_event_is_the_fold_up_to_it_and_differences_lead_there(client: TestClient, viewed: Store) -> None:
    log = [decode_event(e.body) for e in viewed.read("softmax-1")]
    nodes: dict[str, dict[str, Any]] = {}
    known: int | None = None
    for seq in (3, 40, 90, 91, 150, 60, 10, len(log)):
        params = {"at": seq} | ({} if known is None else {"known": known})
        body = client.get("/api/tree", params=params).json()
        nodes |= {n["id"]: n for n in body["nodes"]}
        for id in body["gone"]:
            del nodes[id]
        state = fold(log[:seq])
        assert nodes.keys() == state.tree.keys()
        for id, node in state.tree.items():
            assert (nodes[id]["status"], nodes[id]["v"], nodes[id]["notes"]) == (node.status, node.value, node.notes)
            if node.status is NodeStatus.ACTIVE:
                assert nodes[id]["attempts"] == len(state.cycles[id].attempts)
        assert body["best"] == state.best_id
        known = seq


def test_checkpoints_are_few_and_going_back_still_works(viewed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ksearch.web.reader.MAX_CHECKPOINTS", 4)
    monkeypatch.setattr("ksearch.web.reader.STRIDE", 4)
    reader = RunReader(viewed, "softmax-1")
    log = [decode_event(e.body) for e in viewed.read("softmax-1")]
    for seq in (0, 5, 77, 130):
        assert {n["id"] for n in reader.tree_at(seq)["nodes"]} == set(fold(log[:seq]).tree)
    assert len(reader._checkpoints) <= 5


def test_program_in_full(client: TestClient, viewed: Store) -> None:
    run = Run(viewed, "softmax-1")
    best = run.state.best_id
    assert best
    body = client.get("/api/program", params={"id": best}).json()
    assert body["sources"] == dict(run.program(best).sources)
    done = run.state.evaluations[best]
    assert [w["name"] for w in body["evaluation"]["workloads"]] == [w.workload for w in done.workloads]
    assert body["measured"]["stage_seconds"]["build"] == 0.41
    samples = body["measured"]["timing"][done.workloads[0].workload][best]
    assert len(samples) == 100
    assert sorted(samples)[50] == pytest.approx(done.workloads[0].latency_ms, rel=0.1)
    prompt = client.get(f"/api/blob/{body['attempt']['prompt']}")
    assert "Write the program" in prompt.text
    reply = client.get(f"/api/blob/{body['attempt']['raw']}")
    assert body["sources"]["kernel.cpp"] in reply.text


def test_heat_map_holds_each_workload_and_the_worst_case(client: TestClient, viewed: Store) -> None:
    state = Run(viewed, "softmax-1").state
    body = client.get("/api/workloads", params={"limit": 5}).json()
    assert body["workloads"] == list(sample.SHAPES)
    assert len(body["rows"]) == 5
    means = [r["mean"] for r in body["rows"]]
    assert means == sorted(means, reverse=True)
    for row in body["rows"]:
        done = state.evaluations[row["program"]]
        assert [c[0] for c in row["cells"]] == [w.speedup.value for w in done.workloads if w.speedup]
        assert row["worst"] == min(c[0] for c in row["cells"])
    worst = client.get("/api/workloads", params={"order": "worst", "limit": 500}).json()["rows"]
    assert [r["worst"] for r in worst] == sorted((r["worst"] for r in worst), reverse=True)


def test_stages_of_evaluations_come_from_their_records(client: TestClient, viewed: Store) -> None:
    state = Run(viewed, "softmax-1").state
    stages = client.get("/api/stages").json()["stages"]
    assert set(stages) == {id for id, done in state.evaluations.items() if done.record}
    assert next(iter(stages.values()))["seconds"] == {"build": 0.41, "smoke": 0.06, "check": 0.5, "time": 1.5}
    assert list(client.get("/api/stages", params={"limit": 1}).json()["stages"]) == list(stages)[-1:]


def test_events_come_in_pages_as_they_are_in_the_log(client: TestClient, viewed: Store) -> None:
    log, found, after = [e.body for e in viewed.read("softmax-1")], [], 0
    while body := client.get("/api/events", params={"after": after, "limit": 50}).json()["events"]:
        found += body
        after = body[-1]["seq"]
    assert [e["event"] for e in found] == log
    assert [e["seq"] for e in found] == list(range(1, len(log) + 1))


def test_exported_run_is_shown_without_its_store(viewed: Store, tmp_path: Path) -> None:
    export_run(viewed, "softmax-1", tmp_path / "run.jsonl")
    with open_store(tmp_path / "run.jsonl") as store:
        copied = client_of(Desk(store)).get("/api/snapshot").json()
    ours = client_of(Desk(viewed, "softmax-1")).get("/api/snapshot").json()
    assert copied["nodes"] == ours["nodes"]
    assert copied["head"]["best"] == ours["head"]["best"]


def test_damaged_log_is_shown_up_to_the_damage(place: Path) -> None:
    with open_store(place) as store:
        log = [e.body for e in _source_log(store)]
        store.create_run("broken", {})
        store.append("broken", 0, log[:30])
        store.append("broken", 30, [{"type": "evaluated", "v": 1, "at": 1.0, "request_id": "r9999", "evaluation": {}}])
        body = client_of(Desk(store, "broken")).get("/api/snapshot").json()
        assert body["seq"] == 30
        assert "event 31" in body["head"]["error"]
        assert body["head"]["total"] == 31
        events = client_of(Desk(store, "broken")).get("/api/events", params={"limit": 2000}).json()
        assert len(events["events"]) == 30


def test_run_that_was_never_begun_and_a_store_without_runs_say_so(place: Path) -> None:
    with open_store(place) as store:
        none = client_of(Desk(store)).get("/api/snapshot")
        assert none.status_code == 503
        assert "no run yet" in none.json()["error"]
        store.create_run("named", {})
        body = client_of(Desk(store, "named")).get("/api/snapshot").json()
        assert body["seq"] == 0
        assert [n["id"] for n in body["nodes"]] == ["root"]


def test_missing_record_and_sources_are_named_not_fatal(place: Path) -> None:
    with open_store(place) as store:
        log = [e.body for e in _source_log(store)]
    with open_store(place.with_name("bare.db")) as bare:  # the events alone, no blobs
        bare.create_run("bare", {})
        bare.append("bare", 0, log)
        client = client_of(Desk(bare, "bare"))
        best = client.get("/api/snapshot").json()["head"]["best"]["program"]
        body = client.get("/api/program", params={"id": best}).json()
        assert best in body["missing"]
        assert body["measured"] is None
        assert body["evaluation"]["verdict"] == "passed"


def test_numbers_that_are_not_finite_are_null_with_their_place(place: Path) -> None:
    with open_store(place) as store:
        run = sample.finished(store, "softmax-1", 12)
        best = run.state.best_id or ""
        record = json.loads(store.get_blob(run.state.evaluations[best].record or ""))
        record["load"] = [float("nan"), float("inf"), 1.0]
        import hashlib
        from dataclasses import replace

        data = json.dumps(record).encode()
        bad = replace(run.state.evaluations[best], record=hashlib.sha256(data).hexdigest())
        log = [e.body for e in store.read("softmax-1")]
        from ksearch.codec import encode_evaluation

        for body in log:
            if body["type"] == "evaluated" and body["evaluation"]["program_id"] == best:
                body["evaluation"] = encode_evaluation(bad)
        store.create_run("nan", {})
        store.append("nan", 0, log, [data])
        reply = client_of(Desk(store, "nan")).get("/api/program", params={"id": best})
    assert "NaN" not in reply.text.split('"non_finite"')[0]
    body = json.loads(reply.text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert body["measured"]["load"] == [None, None, 1.0]
    assert body["non_finite"] == {"/measured/load/0": "NaN", "/measured/load/1": "Infinity"}
