"""A softmax search in a few cycles, driven through the real core: what prompts and views are tested on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ksearch import events as ev
from ksearch import search, steer
from ksearch.definition import AxisDomain, Floor, TaskSpec, Tensor, Tolerance, Workload
from ksearch.fold import apply
from ksearch.prompts import PromptView
from ksearch.protocol import Budget, Cost, Holder, Kind, Plan, Refusal, Reply, Request, SearchConfig
from ksearch.state import State
from ksearch.types import Action, Evaluation, Insert, Program, Prune, Ratio, Update, Verdict, WorkloadResult

BASELINE = Program({"baseline.cpp": '// BASELINE SOURCE\nextern "C" void run() {}\n'}, "baseline.cpp::run", "cpp")
ME = Holder("me")


def task(**changes: object) -> TaskSpec:
    fields: dict[str, object] = {
        "name": "softmax",
        "title": "Row softmax, fp32",
        "description": "y[r, c] = exp(x[r, c] - m[r]) / sum over c of exp(x[r, c] - m[r])",
        "entry_point": "run",
        "axes": ("rows", "cols"),
        "inputs": (Tensor("x", "float32", ("rows", "cols")),),
        "outputs": (Tensor("y", "float32", ("rows", "cols")),),
        "workloads": (
            Workload("small", {"rows": 256, "cols": 197}),
            Workload("large", {"rows": 2000, "cols": 2500}),
            Workload("one", {"rows": 1, "cols": 1}, timed=False),
        ),
        "tolerance": {"float32": Tolerance(2e-4, 1e-8, 1e-4)},
        "baseline": BASELINE,
        "domain": {"rows": AxisDomain(1, 4096), "cols": AxisDomain(1, 65536)},
        "floor": Floor("8 * rows * cols", "4 * rows * cols"),
        "forbid": ("openblas",),
    }
    return TaskSpec(**{**fields, **changes})  # type: ignore[arg-type]


def program(text: str) -> Program:
    return Program(
        {"kernel.cpp": f'// {text}\nextern "C" void run(const float* x, float* y) {{}}\n'}, "kernel.cpp::run", "cpp"
    )


def ratio(value: float, noise: float = 0.015) -> Ratio:
    return Ratio(value, value * (1 - noise), value * (1 + noise))


def passed(program_id: str, speedup: float, against: dict[str, float], flags: tuple[str, ...] = ()) -> Evaluation:
    ratios = {id: ratio(v) for id, v in against.items()}
    workloads = tuple(
        WorkloadResult(
            name, Verdict.PASSED, latency_ms=base / speedup, baseline_ms=base, floor_ms=floor, speedup=ratio(speedup),
            against=ratios,
        )
        for name, base, floor in (("small", 0.21, 0.011), ("large", 21.0, 2.1))
    )  # fmt: skip
    return Evaluation(
        program_id, Verdict.PASSED, latency_ms=1 / speedup, speedup=ratio(speedup), against=ratios,
        workloads=workloads, flags=flags, stage="confirm",
    )  # fmt: skip


def failed(program_id: str, verdict: Verdict, reason: str, log: str = "") -> Evaluation:
    return Evaluation(program_id, verdict, reason=reason, stage="build" if log else "check", log=log)


@dataclass
class Run:
    """Answers are given one at a time; everything recorded is kept."""

    config: SearchConfig = field(default_factory=lambda: SearchConfig(budget=Budget(60, usd=5.0), stagnation=3))
    log: list[ev.AnyEvent] = field(default_factory=list)
    programs: dict[str, Program] = field(default_factory=dict)
    speedups: dict[str, float] = field(default_factory=dict)
    state: State = field(default_factory=State)
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.record([ev.RunStarted(config=self.config, at=self.now, context={"task": "softmax"})])

    def record(self, events: list[ev.Event]) -> None:
        for event in events:
            self.log.append(event)  # type: ignore[arg-type]
            self.state = apply(self.state, event)

    def next(self, kind: Kind) -> Request:
        asked = search.ask(self.state, self.now)
        assert isinstance(asked, Request), asked
        assert asked.kind is kind, asked
        self.record(search.lease(self.state, asked, ME, self.now, 600))
        return asked

    def tell(self, request: Request, reply: Reply) -> None:
        self.now += 10
        if request.kind is not Kind.EVALUATE:
            self.record([ev.Received(at=self.now, request_id=request.id, raw="00", cost=Cost(900, 0.01))])
        self.record(search.tell(self.state, request.id, reply, self.now))

    def plan(self, *edits: Insert | Update | Prune, assessment: str = "") -> None:
        self.tell(self.next(Kind.PLAN), Plan(edits, assessment))

    def write(self, text: str, outcome: float | tuple[Verdict, str, str]) -> str:
        """One attempt. `outcome`: a speedup over the baseline, or verdict, reason and log."""
        written = program(text)
        self.programs[written.id] = written
        self.tell(self.next(Kind.WRITE), written)
        request = self.next(Kind.EVALUATE)
        if isinstance(outcome, float):
            self.speedups[written.id] = outcome
            rivals = {id: outcome / self.speedups[id] for id in request.against}
            self.tell(request, passed(written.id, outcome, rivals))
        else:
            self.tell(request, failed(written.id, *outcome))
        return written.id

    def write_refused(self, verdict: Verdict, reason: str) -> None:
        self.tell(self.next(Kind.WRITE), Refusal(verdict, reason))

    def command(self, wanted: ev.Command, author: str = "ada") -> None:
        self.record(steer.command(self.state, wanted, author, self.now))

    def source_of(self) -> Callable[[str], Program | None]:
        return self.programs.get

    def view(self, kind: Kind, **changes: object) -> PromptView:
        """The view of the next request, which must be of this kind."""
        asked = search.ask(self.state, self.now)
        assert isinstance(asked, Request)
        assert asked.kind is kind
        given: dict[str, object] = {"reply_form": "REPLY FORM: as asked.", "reference": "def reference(): ...\n"}
        given |= {"hardware": "CPU: a test machine, AVX-512", "guide": "# Guide\n\nUse vectors.", **changes}
        the_task = given.pop("task", None) or task()
        return PromptView.gather(
            asked, self.state, self.log, the_task, source_of=self.programs.get, **given  # type: ignore[arg-type]
        )  # fmt: skip


LOG = "kernel.cpp: In function 'run':\nkernel.cpp:12:5: error: 'm' was not declared in this scope\n"


def vectorise(**changes: object) -> Action:
    base: dict[str, object] = {
        "title": "Vectorise the exponential",
        "rationale": "expf is scalar and takes 80% of the time.",
        "difficulty": 2,
        "predicted_speedup": 4.0,
    }
    return Action(**{**base, **changes})  # type: ignore[arg-type]


def short_search() -> Run:
    """Two cycles closed (one solved, one rejected), one planned further; the next request is a write."""
    run = first_cycle()
    run.plan(
        Insert("n1", Action("Two rows at once", "Latency of the reduction.", 2, 1.2), 0.8),
        Insert("n1", Action("Non-temporal stores", "", 3, 1.3, ("large",)), 0.6, name="nt"),
        Insert("nt", Action("Prefetch the next row", "", 3, 1.1), 0.5),
        Prune("n3", "contained in n1"),
        assessment="The exponential was the bottleneck; memory binds now.",
    )
    for i in range(3):
        run.write(f"two rows {i}", (Verdict.WRONG_VALUES, f"y[{i}, 3] is 0.1, expected 0.2 on small", ""))
    run.plan(Update("n2", value=0.3, notes="Only for ragged rows."))
    return run


def first_cycle() -> Run:
    """One cycle, closed as solved by stagnation: the next request is a plan."""
    run = Run()
    run.plan(
        Insert("root", vectorise(), 0.9),
        Insert("root", Action("Mask the ragged end", "", 2, 1.05, ("small",)), 0.5),
        Insert("root", Action("Table lookup for exp", "", 4, 1.5, enabling=True), 0.2),
    )
    run.write("first", (Verdict.COMPILE_ERROR, "kernel.cpp:12:5: error: 'm' was not declared in this scope", LOG))
    run.write("second", 2.5)
    run.write("third", 3.1)
    run.write_refused(Verdict.UNPARSABLE, "no code block in the reply")
    run.write("fourth", 3.1)
    run.write("fifth", (Verdict.WRONG_VALUES, "y[0, 0] is 0.5, expected 0.25 (workload large)", ""))
    return run
