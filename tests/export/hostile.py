"""A run whose every text tries to become something else."""

from __future__ import annotations

from collections.abc import Sequence

from ksearch import events as ev
from ksearch.drivers import Answer, Desk, Job, Measured, drive
from ksearch.protocol import Budget, Cost, Plan, Refusal, SearchConfig
from ksearch.run import Run
from ksearch.store import Store
from ksearch.types import Action, Evaluation, Insert, Program, Ratio, Verdict, WorkloadResult

MARK = "globalThis.PWNED=1"
HOSTILE = (
    f"</script><script>{MARK}</script><!--<script>--><img src=x onerror={MARK}>"
    f"</style></textarea>{{{{7*7}}}}${{{MARK}}}`;{MARK}//\u202e\u2066evil\u2028\u2029\x00\x07\x1b[2J\ufeff'\"&lt;\\u003c"
)
LONG = "x" * 1_000_000 + "</script>"


class Mind:
    """Planner and writer in one."""

    def prompt(self, job: Job) -> bytes:
        return HOSTILE.encode()

    def answer(self, job: Job, prompt: bytes) -> Answer:
        raw = f"{job.request.id}\n{HOSTILE}\n{LONG}\xff".encode("latin-1", "replace")
        return Answer(raw, Cost(5, 0.1), HOSTILE, HOSTILE)

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Program | Refusal:
        if job.request.kind == "plan":
            return Plan((Insert("root", Action(HOSTILE, LONG), 0.5),), HOSTILE + LONG)
        if job.request.id.endswith("3"):
            return Refusal(Verdict.UNPARSABLE, HOSTILE)
        return Program({"kernel.cpp": f"// {job.request.id}\n{HOSTILE}\n{LONG}"}, "kernel.cpp::run", "cpp")


class Evaluator:
    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured:
        ratio = Ratio(1.5, 1.4, 1.6)
        rows = (WorkloadResult(HOSTILE, Verdict.PASSED, HOSTILE, 1.0, 1.5, 0.5, ratio),)
        flags = (HOSTILE, "looked at")
        against_ids = {p.id: Ratio(1.0, 0.9, 1.1) for p in against}
        done = Evaluation(program.id, Verdict.PASSED, HOSTILE, "time", 1.0, ratio, against_ids, rows, HOSTILE, flags,
                          device=HOSTILE)  # fmt: skip
        return Measured(done)


def hostile_run(store: Store, name: str = "hostile") -> Run:
    context = {"task": HOSTILE, "version": HOSTILE, HOSTILE: HOSTILE}
    run = Run.create(store, name, SearchConfig(Budget(3), stagnation=2), context)
    run.command(ev.Note(HOSTILE), HOSTILE)
    drive(run, Desk(Mind(), Mind(), Evaluator()), sleep=lambda _: None)
    return run
