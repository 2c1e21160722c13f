"""A made-up search that looks like a real one: actions, C++ sources, five shapes, records with samples, refusals.

Everything is drawn from the seed and the request, so two runs are the same. For tests and for looking at pages.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ksearch import events as ev
from ksearch.drivers import Answer, Desk, Job, Measured, drive
from ksearch.protocol import Budget, Cost, Lost, Plan, Refusal, SearchConfig
from ksearch.run import Run
from ksearch.store import Store
from ksearch.types import Action, Evaluation, Insert, Program, Prune, Ratio, Update, Verdict, WorkloadResult

SHAPES = {"rows=1,cols=4096": 4e3, "rows=64,cols=1024": 6e4, "rows=512,cols=512": 2.6e5,
          "rows=2048,cols=2048": 4.2e6, "rows=8,cols=65536": 5.2e5}  # fmt: skip
IDEAS = (
    ("Fuse max and sum into one pass", "The online recurrence reads each row once less: it is memory-bound.", 2, 1.5),
    ("Vectorise the exponential with AVX2", "A polynomial in 8 lanes; libm's scalar expf is the hot spot.", 3, 2.2),
    ("Split long rows over threads", "At rows=1 all but one core idle: reduce partial sums, then scale.", 4, 1.8),
    ("Block the columns for the L1 cache", "32 KiB hold 8,192 floats: keep the row hot between passes.", 2, 1.2),
    ("Write the result with streaming stores", "The output is not read again: skip the read for ownership.", 2, 1.15),
    ("Unroll the reduction four times", "Four independent accumulators hide the latency of the addition.", 1, 1.1),
    ("Choose the path by shape", "Short rows want the vector path without threads; long ones want both.", 3, 1.3),
    ("Replace the division by a product", "One reciprocal a row instead of a division an element.", 1, 1.05),
    ("Prefetch the next row", "Hardware prefetch stops at page ends; ask two rows ahead.", 2, 1.08),
    ("Align the scratch buffer to 64 bytes", "No load crosses a cache line any more.", 1, 1.02),
    ("Pin threads to cores", "Migrations cost warm caches; pin once at start.", 3, 1.1),
    ("Use a table of powers of two", "exp2 of the integer part by a shift into the exponent.", 3, 1.25),
)  # fmt: skip


def draw(*keys: object) -> float:
    """A number in [0, 1) that depends on the keys alone."""
    digest = hashlib.sha256(json.dumps([str(k) for k in keys]).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def source(request: str, title: str, n: int) -> str:
    unroll = 2 ** (n % 4)
    lines = [
        "#include <algorithm>", "#include <cmath>", "#include <cstdint>", "#include <immintrin.h>", "",
        f"// {title}", f"// written for {request}", "namespace {", "",
        "inline float row_max(const float* x, int64_t n) {", "  float m = -INFINITY;",
        f"  #pragma GCC unroll {unroll}", "  for (int64_t i = 0; i < n; ++i) m = std::max(m, x[i]);",
        "  return m;", "}",
        "", "}  // namespace", "", 'extern "C" void run(const float* x, float* y, int64_t rows, int64_t cols) {',
        "  for (int64_t r = 0; r < rows; ++r) {", "    const float* in = x + r * cols;",
        "    float* out = y + r * cols;",
        "    const float m = row_max(in, cols);", f"    float s[{unroll}] = {{0}};",
        "    for (int64_t i = 0; i < cols; ++i) {", "      const float e = std::exp(in[i] - m);",
        f"      s[i & {unroll - 1}] += e;", "      out[i] = e;", "    }",
        "    float total = 0;", f"    for (int k = 0; k < {unroll}; ++k) total += s[k];",
        "    const float scale = 1.0f / total;" if n % 3 else "    // divide below",
        "    for (int64_t i = 0; i < cols; ++i) " + ("out[i] *= scale;" if n % 3 else "out[i] /= total;"), "  }", "}",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


@dataclass
class Planner:
    seed: int
    pause_s: float = 0.0
    used: list[int] = field(default_factory=list)

    def prompt(self, job: Job) -> bytes:
        text = f"# Plan the search\n\nThe task: softmax over rows.\nAsked because: {job.request.why}.\n"
        return json.dumps({"system": "You plan a search for fast kernels.", "text": text}).encode()

    def answer(self, job: Job, prompt: bytes) -> Answer:
        time.sleep(self.pause_s)
        retry = len(job.state.pending[job.request.id].refusals)
        raw = f"plan {job.request.id} {retry}".encode()
        tokens = 3000 + int(4000 * draw(self.seed, raw))
        return Answer(raw, Cost(tokens, tokens * 6e-6), "planner-large", "stop")

    def read(self, job: Job, raw: bytes, finish: str) -> Plan | Refusal:
        tree, r = job.state.tree, draw(self.seed, raw)
        if r < 0.06:
            return Refusal(Verdict.UNPARSABLE, "the reply holds no JSON object: it ends inside a string at line 14")
        if 0.06 <= r < 0.14:
            return Plan((Prune("n999", "does not pay"),), "Too many ideas are open.")
        node = job.request.node_id
        parent = node if tree[node].status == "solved" else (tree[node].parent_id or "root")
        count = 3 if node == "root" else 1 + int(2 * draw(raw, "count"))
        edits: list[Insert | Update | Prune] = [self._insert(parent, len(tree) + i, raw) for i in range(count)]
        opened = [n for n in tree.values() if n.status == "open"]
        if opened and draw(raw, "update") < 0.6:
            edits.append(Update(opened[0].id, round(draw(raw, "v"), 2), notes=f"seen after {node}: still worth a try"))
        if len(opened) > 3 and draw(raw, "prune") < 0.5:
            edits.append(Prune(opened[-1].id, "the profile shows that this is not where the time goes"))
        said = (
            f"After {node}: the time is now in the second pass; memory traffic is at {60 + int(30 * r)}% of the bound."
        )
        return Plan(tuple(edits), said)

    def _insert(self, parent: str, number: int, raw: bytes) -> Insert:
        title, why, difficulty, predicted = IDEAS[number % len(IDEAS)]
        value = round(0.25 + 0.7 * draw(self.seed, raw, number), 2)
        return Insert(parent, Action(title, why, difficulty, predicted, enabling=number % 11 == 6), value)


@dataclass
class Writer:
    seed: int
    pause_s: float = 0.0

    def prompt(self, job: Job) -> bytes:
        title = job.state.tree[job.request.node_id].action.title
        text = f"# Write the program\n\nAction {job.request.node_id}: {title}\nStart from {job.request.program_id}.\n"
        return json.dumps({"system": "You write fast kernels.", "text": text}).encode()

    def answer(self, job: Job, prompt: bytes) -> Answer:
        time.sleep(self.pause_s)
        title = job.state.tree[job.request.node_id].action.title
        code = source(job.request.id, title, int(1000 * draw(self.seed, job.request.id)))
        raw = f"The second pass is the bottleneck.\n\n```cpp\n{code}```\n".encode()
        cut = draw(self.seed, job.request.id, "cut") < 0.05
        tokens = 1500 + int(2500 * draw(raw))
        paid, sent = Cost(tokens, tokens * 4e-6), '{"max_tokens": 16000}'
        return Answer(raw, paid, "writer-small", "length" if cut else "stop", sent=sent, notes=("no temperature",))

    def read(self, job: Job, raw: bytes, finish: str) -> Program | Refusal:
        if finish == "length":
            return Refusal(Verdict.TRUNCATED, "the reply was cut off at the token limit, inside the code")
        if draw(self.seed, raw, "bad") < 0.06:
            return Refusal(Verdict.UNPARSABLE, "no code block in the reply: put the whole program into one")
        text = raw.decode().split("```cpp\n")[1].split("```")[0]
        return Program({"kernel.cpp": text}, "kernel.cpp::run", "cpp")


@dataclass
class Evaluator:
    seed: int
    pause_s: float = 0.0
    count: int = 0

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        time.sleep(self.pause_s)
        self.count += 1
        r = draw(self.seed, program.id, "fails")
        for limit, verdict, stage, reason in FAILURES:
            if r < limit:
                return Measured(self._failed(program, verdict, stage, reason))
        mine = self._speedups(program)
        total = geomean(mine.values())
        others = {p.id: ratio(total / geomean(self._speedups(p).values())) for p in against}
        results = tuple(self._workload(name, value) for name, value in mine.items())
        record = self._record(program, against, results)
        flags = ("12.4 times the baseline and not confirmed: look at it before using it",) if r > 0.97 else ()
        done = Evaluation(
            program.id, Verdict.PASSED, "", "time", 0.8 / total, ratio(total), others, results,
            "kernel.cpp: compiled with g++ -O3 -march=native\n", flags, r > 0.8, "AMD EPYC 7763",
            hashlib.sha256(record).hexdigest(), 2.5,
        )  # fmt: skip
        return Measured(done, record)

    def _failed(self, program: Program, verdict: Verdict, stage: str, reason: str) -> Evaluation:
        log = "kernel.cpp:14:9: error: 'foo' was not declared in this scope\n" * 3 if stage == "build" else ""
        return Evaluation(program.id, verdict, reason, stage, log=log, device="AMD EPYC 7763", seconds=0.6)

    def _speedups(self, program: Program) -> dict[str, float]:
        base = 0.75 + 1.6 * draw(self.seed, program.id) ** 1.5 + 0.045 * len(program.sources["kernel.cpp"]) / 1000
        request = program.sources["kernel.cpp"].split("written for r")[1].split("\n")[0]
        base += min(1.6, int(request) / 90)
        return {name: base * (0.6 + 0.8 * draw(program.id, name)) for name in SHAPES}

    def _workload(self, name: str, value: float) -> WorkloadResult:
        base_ms = SHAPES[name] / 4e5 + 0.004
        return WorkloadResult(
            name, Verdict.PASSED, "", base_ms / value, base_ms, base_ms / 5.5, ratio(value), {}, 3e-7 * value, 2e-6,
        )  # fmt: skip

    def _record(self, program: Program, against: Sequence[Program], results: Sequence[WorkloadResult]) -> bytes:
        def samples(ms: float, key: str) -> list[list[float]]:
            return [[ms * 1e6 * (1 + 0.02 * math.sin(7 * i) + 0.03 * draw(key, i)) for i in range(t, t + 10)]
                    for t in range(0, 100, 10)]  # fmt: skip

        tracks = {
            w.workload: {"samples_ns": [
                {"program": program.id, "turns": samples(w.latency_ms or 1, program.id + w.workload)},
                {"program": "baseline", "turns": samples(w.baseline_ms or 1, "base" + w.workload)},
            ]}
            for w in results
        }  # fmt: skip
        body = {
            "format": 1, "task": "softmax", "stage_seconds": {"build": 0.41, "smoke": 0.06, "check": 0.5, "time": 1.5},
            "machine": {"cpu": "AMD EPYC 7763", "cores": 8}, "load": [0.12, 0.2, 0.3],
            "build": {"command": ["g++", "-O3", "-march=native", "-shared", "kernel.cpp"], "seconds": 0.41, "log": ""},
            "errors": {w.workload: {"max_abs": w.max_abs_error, "max_rel": w.max_rel_error} for w in results},
            "seeds": {w.workload: [int(1e6 * draw(program.id, w.workload, i)) for i in range(3)] for w in results},
            "sandbox": {"level": "namespaces"}, "timing": [{"candidate": program.id, "workloads": tracks}],
        }  # fmt: skip
        return json.dumps(body).encode()


FAILURES = (
    (0.09, Verdict.COMPILE_ERROR, "build", "kernel.cpp:14:9: 'foo' was not declared in this scope"),
    (0.17, Verdict.WRONG_VALUES, "check", "workload rows=8,cols=65536: 12 of 524288 values off by more than 1e-5"),
    (0.20, Verdict.TIMEOUT, "smoke", "no answer within 10 s on rows=1,cols=4096"),
    (0.22, Verdict.INPUT_CHANGED, "check", "workload rows=64,cols=1024: the input was overwritten"),
    (0.235, Verdict.TOO_FAST, "screen", "rows=2048,cols=2048: 0.6 of the least time the bytes allow"),
)


def ratio(value: float) -> Ratio:
    return Ratio(value, value * 0.985, value * 1.015)


def geomean(values: object) -> float:
    found = list(values)  # type: ignore[call-overload]
    return math.exp(sum(map(math.log, found)) / len(found))


def desk(seed: int = 3, pause_s: float = 0.0) -> Desk:
    return Desk(Planner(seed, pause_s), Writer(seed, pause_s), Evaluator(seed, pause_s))


def begin(store: Store, name: str = "softmax-1", evaluations: int = 60, clock: object = None) -> Run:
    config = SearchConfig(Budget(evaluations, tokens=2_000_000, usd=5.0, seconds=4 * 3600), stagnation=4)
    context = {"task": "softmax", "version": "0.1.0", "model": "planner-large"}
    return Run.create(store, name, config, context, clock or time.time)  # type: ignore[arg-type]


@dataclass
class Clock:
    """Seconds pass with each look, as if the work took time; the last look is about now."""

    now: float
    step: float = 4.0

    def __call__(self) -> float:
        self.now += self.step * (0.5 + draw(self.now))
        return self.now


def finished(store: Store, name: str = "softmax-1", evaluations: int = 60, seed: int = 3) -> Run:
    """A whole search, with people's words in it."""
    run = begin(store, name, evaluations, Clock(time.time() - 60 * 40 * evaluations / 60))
    run.command(ev.AddAction("root", Action("Try OpenMP over the rows", "Rows are independent.", 2, 3.0), 0.9), "alice")
    drive(run, desk(seed), sleep=lambda _: None)
    best = run.state.best_id
    if best:
        run.command(ev.Note("Looks sound: the long rows gain, the short ones do not lose.", None, best), "alice")
    return run


def main() -> None:
    import sys

    from ksearch.store import open_store

    with open_store(sys.argv[1]) as store:
        if sys.argv[2:] == ["live"]:
            drive(begin(store, "softmax-live", 200), desk(7, 0.7))
        else:
            for name, seed in (("softmax-1", 3), ("softmax-2", 5)):
                finished(store, name, 60, seed)


if __name__ == "__main__":
    main()
