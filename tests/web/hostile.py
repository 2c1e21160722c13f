"""A run in which every text that a model or a kernel can write is an attack, or merely awful."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from ksearch import events as ev
from ksearch.drivers import Answer, Desk, Job, Measured, drive
from ksearch.protocol import Budget, Cost, Lost, Plan, Refusal, SearchConfig
from ksearch.run import Run
from ksearch.store import Store
from ksearch.types import Action, Evaluation, Insert, Program, Prune, Ratio, Verdict, WorkloadResult

SCRIPT = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'`${window.pwned=1}"
RIGHT_TO_LEFT = "\u202eتسلسل مقلوب\u202c abc"
LINE = "x" * 1_000_000
NASTY = f"{SCRIPT} {RIGHT_TO_LEFT} \u0000\u0007\ufffe &lt;b&gt; %3Cscript%3E javascript:alert(1)"


@dataclass
class Mind:
    """Planner and writer both."""

    plans: int = 0

    def prompt(self, job: Job) -> bytes:
        return json.dumps({"system": NASTY, "text": f"{NASTY}\n{LINE}"}).encode()

    def answer(self, job: Job, prompt: bytes) -> Answer:
        raw = f"{job.request.id} {NASTY}\n".encode() + b"\xff\xfe\x00" + LINE.encode()
        return Answer(raw, Cost(10, 0.001), NASTY, NASTY)

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Program | Refusal:
        if job.request.kind == "plan":
            return self._plan(job)
        if job.request.id == "r2":
            return Refusal(Verdict.UNPARSABLE, NASTY)
        text = f"// {NASTY}\n// {job.request.id}\n{LINE}\nint main() {{ return 0; }}\n"
        return Program({f"{SCRIPT.replace('/', '')}.cpp": text}, f"{SCRIPT.replace('/', '')}.cpp::run", NASTY)

    def _plan(self, job: Job) -> Plan:
        self.plans += 1
        if self.plans == 1:
            return Plan((Prune(NASTY, NASTY),), NASTY)
        action = Action(NASTY, NASTY, 3, 1.5, workloads=(NASTY,))
        return Plan((Insert("root", action, 0.9),), NASTY)


class Bench:
    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        ratio = Ratio(1.5, 1.4, 1.6)
        work = (WorkloadResult(NASTY, Verdict.PASSED, NASTY, 1.0, 1.5, 0.5, ratio, {}, 1e-7, 1e-6),)
        nan = float("nan")
        tracks = {NASTY: {"samples_ns": [{"program": program.id, "turns": [[nan, 1e6, float("inf"), 1.1e6]]}]}}
        body = {"machine": {NASTY: NASTY}, "load": [nan], "stage_seconds": {NASTY: 1.0}, "seeds": {NASTY: NASTY},
                "build": {"command": [NASTY], "log": f"{NASTY}\n{LINE}", "seconds": nan, "compiler": NASTY},
                "timing": [{"workloads": tracks}]}  # fmt: skip
        record = json.dumps(body).encode()
        done = Evaluation(
            program.id, Verdict.PASSED, NASTY, NASTY, 1.0, ratio, {}, work, NASTY, (NASTY,), False, NASTY,
            hashlib.sha256(record).hexdigest(), 1.0,
        )  # fmt: skip
        return Measured(done, record)


def hostile_run(store: Store) -> Run:
    run = Run.create(store, "hostile-1", SearchConfig(Budget(3), stagnation=2), {"task": NASTY, NASTY: NASTY})
    mind = Mind()
    drive(run, Desk(mind, mind, Bench()), sleep=lambda _: None)
    run.command(ev.Note(NASTY, "n1"), NASTY)
    run.command(ev.Review(next(iter(run.state.evaluations)), False, NASTY), NASTY)
    return run
