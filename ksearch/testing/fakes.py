"""Deterministic stand-ins for a planner, a writer and an evaluator: no model, no compiler, no clock.

What they answer depends on the request and the tree alone, so an interrupted run that is resumed must come out
the same. They shout what they are asked into `calls`, for tests that count what was paid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ksearch.drivers import Answer, Desk, Job, Measured
from ksearch.protocol import Cost, Lost, Plan, Refusal
from ksearch.types import Action, Evaluation, Insert, Program, Ratio, Verdict

Note = Callable[[str], None]


def _draw(*keys: object) -> float:
    """A number in [0, 1) that depends on the keys alone."""
    digest = hashlib.sha256(json.dumps([str(k) for k in keys]).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _silent(_: str) -> None:
    return None


@dataclass
class FakePlanner:
    """Inserts two actions under the node that has just closed (or the root), with drawn values."""

    seed: int = 0
    note: Note = _silent
    cost: Cost = field(default_factory=lambda: Cost(1000, 0.01))

    def prompt(self, job: Job) -> bytes:
        return f"plan after {job.request.node_id} ({job.request.why})".encode()

    def answer(self, job: Job, prompt: bytes) -> Answer:
        self.note(f"{job.request.id} plan")
        node = job.request.node_id
        parent = node if job.state.tree[node].status in ("solved", "open") else "root"
        actions = [
            {"title": f"idea {i} after {node}", "value": round(_draw(self.seed, job.request.id, i), 3)} for i in (0, 1)
        ]
        return Answer(json.dumps({"parent": parent, "actions": actions}).encode(), self.cost, "fake")

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Refusal:
        try:
            body = json.loads(raw)
        except ValueError:
            return Refusal(Verdict.UNPARSABLE, "the fake planner's reply is not JSON")
        inserts = (
            Insert(body["parent"], Action(a["title"], predicted_speedup=1.2), a["value"]) for a in body["actions"]
        )
        return Plan(tuple(inserts), "as good a guess as any")


@dataclass
class FakeWriter:
    """Writes a text that names its request; one in six has no program in it."""

    seed: int = 0
    note: Note = _silent
    cost: Cost = field(default_factory=lambda: Cost(2000, 0.02))

    def prompt(self, job: Job) -> bytes:
        return f"write {job.request.node_id} from {job.request.program_id}".encode()

    def answer(self, job: Job, prompt: bytes) -> Answer:
        self.note(f"{job.request.id} write")
        return Answer(f"// {self.seed} {job.request.id} {job.request.node_id}\n".encode(), self.cost, "fake")

    def read(self, job: Job, raw: bytes, finish: str) -> Program | Refusal:
        if not raw.startswith(b"//") or _draw(self.seed, raw) < 1 / 6:
            return Refusal(Verdict.UNPARSABLE, "no program in the reply")
        return Program({"kernel.cpp": raw.decode()}, "kernel.cpp::run", "cpp")


@dataclass
class FakeEvaluator:
    """Measures by drawing: two in three pass, at a speedup that their text decides, with exact intervals."""

    seed: int = 0
    note: Note = _silent

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        self.note(f"{program.id[:8]} evaluate")
        if self._fails(program):
            return Measured(Evaluation(program.id, Verdict.COMPILE_ERROR, "error: it does not compile", "build"))
        mine = self._speedup(program)
        ratios = {p.id: _ratio(mine / self._speedup(p)) for p in against if not self._fails(p)}
        record = json.dumps({"speedup": mine, "fake": True}).encode()
        done = Evaluation(
            program.id,
            Verdict.PASSED,
            stage="time",
            latency_ms=1 / mine,
            speedup=_ratio(mine),
            against=ratios,
            device="fake",
            record=hashlib.sha256(record).hexdigest(),
        )
        return Measured(done, record)

    def _fails(self, program: Program) -> bool:
        return _draw(self.seed, program.id, "fails") < 1 / 3

    def _speedup(self, program: Program) -> float:
        return 0.5 + 3 * _draw(self.seed, program.id, "speedup")


@dataclass(frozen=True)
class RecordedEvaluator:
    """Answers with the evaluations of an earlier run, by program id: a replay needs no hardware."""

    evaluations: Mapping[str, Evaluation]

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        done = self.evaluations.get(program.id)
        return Measured(done) if done else Lost(f"program {program.id[:12]} is not in the record")


def fake_desk(seed: int = 0, note: Note = _silent) -> Desk:
    """All three, sharing a seed."""
    return Desk(FakePlanner(seed, note), FakeWriter(seed, note), FakeEvaluator(seed, note))


def _ratio(value: float) -> Ratio:
    return Ratio(value, value * 0.99, value * 1.01)
