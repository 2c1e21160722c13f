"""Writes a golden log: every event type and command at least once. Run it by hand for a new version of the format.

    python -m tests.codec.make_golden tests/codec/golden/v1.jsonl

Golden logs are never rewritten: a changed format gets a new file, and the old ones must still be read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ksearch import events as ev
from ksearch.codec import encode_event
from ksearch.fold import fold
from ksearch.protocol import Budget, Cost, Holder, Kind, Plan, Request, SearchConfig
from ksearch.types import (
    Action,
    Evaluation,
    Insert,
    Node,
    Origin,
    Prune,
    Ratio,
    Update,
    Verdict,
    WorkloadResult,
)

ME = Holder("loop", "host", "boot", 4711, "12345")
BLOB = "ab" * 32


def asked(n: int, kind: Kind, node: str, **more: object) -> list[ev.Event]:
    request = Request(f"r{n}", kind, node, **more)  # type: ignore[arg-type]
    held = ev.Leased(
        at=n + 0.5, request_id=f"r{n}", holder=ME, deadline=n + 60.0, reserved=Cost(1000, 0.02), prompt=BLOB
    )
    return [ev.Asked(at=float(n), request=request), held]


def received(n: int) -> ev.Event:
    return ev.Received(at=n + 0.6, request_id=f"r{n}", raw=BLOB, cost=Cost(700, 0.01), model="m", finish="stop")


def evaluation(program_id: str, speedup: float, **against: Ratio) -> Evaluation:
    ratio = Ratio(speedup, speedup * 0.99, speedup * 1.01)
    row = WorkloadResult("small", Verdict.PASSED, "", 0.5, 0.5 * speedup, 0.1, ratio, against, 1e-7, 1e-6)
    return Evaluation(
        program_id,
        Verdict.PASSED,
        "",
        "time",
        0.5,
        ratio,
        against,
        (row,),
        "log",
        ("odd variance",),
        True,
        "cpu",
        BLOB,
        1.5,
    )


def story() -> list[ev.Event]:
    plan = (
        Insert("root", Action("tile", "why", 2, 1.5, ("small",), True), 0.8, "a", "n1"),
        Insert("n1", Action("unroll"), 0.4, "b", "n2"),
        Update("n1", 0.9, 3, "soon"),
    )
    first, second = "1" * 64, "2" * 64
    config = SearchConfig(Budget(30, 90, 10_000, 5.0, 3600.0), stagnation=1, width=1, reserve=Cost(1000, 0.02))
    return [
        ev.RunStarted(at=0.0, config=config, context={"task": "softmax"}),
        *asked(0, Kind.PLAN, "root", why="start"),
        ev.Expired(at=0.7, request_id="r0", reason="its holder is dead"),
        *asked(0, Kind.PLAN, "root", why="start")[1:],
        ev.PlanRefused(at=0.8, request_id="r0", reason="no", offered=Plan((Prune("n9", "x"),), "hm"), verdict=None),
        *asked(0, Kind.PLAN, "root", why="start")[1:],
        received(0),
        ev.Planned(at=1.0, request_id="r0", edits=plan, dropped=("overtaken: x",), assessment="start simple"),
        *asked(1, Kind.WRITE, "n1"),
        ev.WorkLost(at=1.7, request_id="r1", reason="503"),
        *asked(1, Kind.WRITE, "n1")[1:],
        ev.Written(at=2.0, request_id="r1", program_id=first),
        *asked(2, Kind.EVALUATE, "n1", program_id=first),
        ev.Evaluated(at=3.0, request_id="r2", evaluation=evaluation(first, 1.5)),
        ev.Judged(
            at=3.0,
            node_id="n1",
            attempt=0,
            improved=True,
            beats_parent=True,
            new_best=True,
            versus_parent=Ratio(1.5, 1.485, 1.515),
        ),
        *asked(3, Kind.WRITE, "n1", program_id=first),
        ev.WriteFailed(at=4.0, request_id="r3", verdict=Verdict.DUPLICATE, reason="seen", program_id=first),
        ev.Judged(at=4.0, node_id="n1", attempt=1, improved=False, beats_parent=False, new_best=False),
        ev.CycleClosed(
            at=4.0,
            node_id="n1",
            reason="stagnation",
            program_id=first,
            speedup=Ratio(1.5, 1.485, 1.515),
            gain=Ratio(1.5, 1.485, 1.515),
        ),
        *asked(4, Kind.PLAN, "n1", why="closed"),
        ev.PlanAbandoned(at=4.5, request_id="r4", reason="no"),
        ev.Ignored(at=4.6, request_id="r4", reason="late"),
        *commands(),
        ev.Submitted(
            at=6.0,
            node_id="n4",
            program_id=second,
            author="eve",
            created=Node("n4", "n1", Action("by shape"), origin=Origin.PORTFOLIO),
            members=(first,),
        ),
        ev.Paused(at=6.5, reason="evaluate was lost 4 times"),
        ev.Ended(at=7.0, reason="budget: usd"),
    ]


def commands() -> list[ev.Event]:
    said: list[ev.Command] = [
        ev.Pause("lunch"),
        ev.Resume(),
        ev.Pin("n2"),
        ev.Boost("n2", 0.7),
        ev.AddAction("n1", Action("mine", predicted_speedup=2.0), 0.6, "n3"),
        ev.PruneNode("n3", "no"),
        ev.SetBudget(Budget(40)),
        ev.SetParallel(4, 2),
        ev.Note("good", "n1", "1" * 64),
        ev.Review("1" * 64, True, "checked"),
        ev.Stop("enough"),
        ev.Resume(),
    ]
    return [ev.Commanded(at=5.0, command=c, author="ada") for c in said]


def main(path: str) -> None:
    events = story()
    fold(events)  # it is a log that can be
    text = "".join(json.dumps(encode_event(e), sort_keys=True) + "\n" for e in events)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("x") as file:  # never over an old one
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
