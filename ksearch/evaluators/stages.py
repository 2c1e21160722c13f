"""Is it right? Smoke, check, and the last look: whatever a runner says, the oracle looks at the buffers."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from ksearch.definition import AxisDomain, Workload
from ksearch.evaluators.bench import Bench
from ksearch.evaluators.defences import Defence
from ksearch.evaluators.subject import Subject
from ksearch.evaluators.verdicts import Failed
from ksearch.types import Verdict

_JUDGING = (
    Defence.ELEMENTWISE,
    Defence.NORM,
    Defence.NON_FINITE,
    Defence.INPUT_HASH,
    Defence.CANARY,
    Defence.STALE_OUTPUT,
    Defence.LATE_WRITE,
)
_PRECISION_FACTOR = 40.0  # between the rounding of float32 and of the next lower types lie factors of 500 and more
_EPSILON = {"float64": 2.0**-53, "float32": 2.0**-24, "tf32": 2.0**-11, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_LARGEST_KEPT_BYTES = 512 << 20


def judging_off(bench: Bench) -> list[str]:
    return [str(d) for d in _JUDGING if not bench.options.on(d)]


def poison(bench: Bench, kind: str) -> str:
    return kind if bench.options.on(Defence.POISON) else "none"


class Errors(dict[str, dict[str, float]]):
    """Largest errors seen, by workload: max_abs, max_rel, norm."""

    def take(self, workload: str, answer: Mapping[str, Any]) -> None:
        mine = self.setdefault(workload, {"max_abs": 0.0, "max_rel": 0.0, "norm": 0.0})
        for name in mine:
            mine[name] = max(mine[name], float(answer.get(name, 0.0)))


class Checker:
    """Runs one subject against the reference."""

    def __init__(self, bench: Bench, subject: Subject) -> None:
        self.bench, self.subject = bench, subject
        self.errors = Errors()
        self.call_ms: dict[str, float] = {}
        self.off = judging_off(bench)

    def smoke(self) -> None:
        """The smallest workload, once.

        Raises:
            Failed
        """
        smallest = min(self.bench.spec.workloads, key=lambda w: self.bench.set_bytes(w.axes))
        self._named(smallest, lambda: self._once(smallest, 1, self.bench.spec.limits.smoke_s))

    def check(
        self, workloads: Sequence[Workload] | None = None, hopeless_ms: Mapping[str, float] | None = None
    ) -> None:
        """Every workload, twice with different poison, and the awkward values.

        Args:
            hopeless_ms: workload -> time of a call. A program that takes longer on all of these is out after two calls
                of each, whose values are checked all the same.

        Raises:
            Failed
        """
        every = list(workloads if workloads is not None else self.bench.spec.workloads)
        limits = hopeless_ms or {}
        slow: list[Workload] = []
        for workload in sorted(every, key=lambda w: w.name not in limits):
            if workload.name not in limits and limits and len(slow) == len(limits):
                break
            self._named(workload, lambda: self._once(workload, 2, self.bench.spec.limits.check_s))  # noqa: B023
            if self.call_ms[workload.name] > limits.get(workload.name, math.inf):
                slow.append(workload)
            else:
                self._named(workload, lambda: self._again(workload))  # noqa: B023
            self._keep(workload)
        if limits and len(slow) == len(limits):
            raise self._hopeless(slow, limits)
        for workload in slow:
            self._named(workload, lambda: self._whole(workload))  # noqa: B023
            self._keep(workload)

    def _keep(self, workload: Workload) -> None:
        if self.bench.set_bytes(workload.axes) > _LARGEST_KEPT_BYTES:
            self.forget(workload)

    def _hopeless(self, slow: Sequence[Workload], limits: Mapping[str, float]) -> Failed:
        worst = min(slow, key=lambda w: self.call_ms[w.name] / limits[w.name])
        text = (
            f"hopeless: a call takes {self.call_ms[worst.name]:.3g} ms, on every timed workload many times as long as "
            f"what it has to beat (from {limits[worst.name]:.3g} ms a call nothing more is looked at)"
        )
        return Failed(Verdict.TIMEOUT, text, self.subject.log, worst.name)

    def forget(self, workload: Workload) -> None:
        group = f"{workload.name}/c"
        self.subject.forget(group)

    def _named(self, workload: Workload, step: Any) -> None:
        try:
            step()
        except Failed as failed:
            failed.workload = workload.name
            raise

    def _once(self, workload: Workload, count: int, limit_s: float) -> None:
        group, key = f"{workload.name}/c", f"{self.subject.key}/{workload.name}/c"
        self.subject.map(group, workload.axes, count)
        sets = list(range(count))
        if self.subject.program.language in self.bench.device.late_compilers:
            limit_s += self.bench.spec.limits.build_s  # the first call of each size compiles
        self._fill(key, sets, "nan")
        ns = self.subject.run(group, sets, flush=False, limit_s=limit_s)
        self.call_ms[workload.name] = min(ns) / 1e6
        self._judge(workload, key, sets, keep=True)

    def _whole(self, workload: Workload) -> None:
        self._once(workload, 2, self.bench.spec.limits.check_s)
        self._again(workload)

    def _again(self, workload: Workload) -> None:
        """The same values over other poison, and the awkward values."""
        limit_s = self.bench.spec.limits.check_s
        group, key = f"{workload.name}/c", f"{self.subject.key}/{workload.name}/c"
        if self.bench.options.on(Defence.SECOND_POISON):
            self.bench.oracle.ask({"do": "again", "key": key, "sets": [0], "poison": poison(self.bench, "values")})
            self.subject.run(group, [0], flush=False, limit_s=limit_s)
            self._judge(workload, key, [0], keep=False)
            self._fault(self.bench.oracle.ask({"do": "repeat", "key": key, "sets": [0], "off": self.off})[0])
        count = self.bench.oracle.ask({"do": "count_awkward", "axes": dict(workload.axes)})[0]["count"]
        for case in range(count if self.bench.options.on(Defence.AWKWARD) else 0):
            self._fill(key, [0], "nan", awkward=case)
            self.subject.run(group, [0], flush=False, limit_s=limit_s)
            self._judge(workload, key, [0], keep=False, case=case)

    def _fill(self, key: str, sets: list[int], kind: str, **more: Any) -> None:
        order = {"do": "fill", "keys": [key], "sets": sets, "expect": sets, "poison": poison(self.bench, kind)}
        self.bench.oracle.ask({**order, **more})

    def _judge(self, workload: Workload, key: str, sets: list[int], *, keep: bool, case: int | None = None) -> None:
        order = {"do": "judge", "key": key, "sets": sets, "off": self.off, "keep": keep}
        answer, _ = self.bench.oracle.ask(order)
        self._fault(answer, "" if case is None else f" (awkward values, case {case})", workload.name)
        if case is None:  # errors on extreme values say nothing about the precision of the arithmetic
            self.errors.take(workload.name, answer)

    def _fault(self, answer: Mapping[str, Any], where: str = "", workload: str = "") -> None:
        if answer["fault"]:
            if workload:
                self.errors.take(workload, answer)
            fault = answer["fault"]
            raise Failed(Verdict(fault["verdict"]), fault["reason"] + where, self.subject.log)

    def precision(self, baseline: Errors) -> None:
        """Where a task names a least precision: is the error that of arithmetic in it?

        Raises:
            Failed: LOWER_PRECISION.
        """
        least = self.bench.spec.precision
        if least == "tolerance" or not self.bench.options.on(Defence.PRECISION):
            return
        for name, found in self.errors.items():
            limit = _PRECISION_FACTOR * max(baseline.get(name, {}).get("norm", 0.0), _EPSILON[least])
            if found["norm"] > limit:
                text = (
                    f"relative error {found['norm']:.2e} is beyond {limit:.2e}: the task asks for arithmetic in "
                    f"{least}, this looks like less"
                )
                raise Failed(Verdict.LOWER_PRECISION, text, workload=name)

    def late(self) -> None:
        """At the end: are the outputs that were judged first still what they were?

        Raises:
            Failed: LATE_WRITE.
        """
        if not self.bench.options.on(Defence.LATE_WRITE):
            return
        for workload in self.bench.spec.workloads:
            if self.subject.sets.get(f"{workload.name}/c", 0) < 2:
                continue
            key = f"{self.subject.key}/{workload.name}/c"
            answer, _ = self.bench.oracle.ask({"do": "late", "key": key, "sets": [1]})
            self._named(workload, lambda: self._fault(answer))  # noqa: B023


def unseen(bench: Bench, count: int, rng: random.Random) -> list[Workload]:
    """Shapes from the task's domain that no workload has, no larger than the largest workload.

    Empty where the domain does not cover every axis.
    """
    spec = bench.spec
    if set(spec.domain) != set(spec.axes):
        return []
    largest = max(bench.set_bytes(w.axes) for w in spec.workloads)
    seen = [dict(w.axes) for w in spec.workloads]
    found: list[Workload] = []
    for _ in range(200):
        axes = {name: _draw(spec.domain[name], rng) for name in spec.axes}
        try:
            fits = 0 < bench.set_bytes(axes) <= largest and spec.allows(axes)
        except ValueError:
            continue
        if fits and axes not in seen:
            seen.append(axes)
            label = ",".join(f"{k}={v}" for k, v in axes.items())
            found.append(Workload(f"unseen {label}", axes, timed=False))
        if len(found) == count:
            break
    return found


def _draw(domain: AxisDomain, rng: random.Random) -> int:
    if domain.values:
        return int(rng.choice(domain.values))
    step = domain.multiple_of
    low, high = -(-domain.min // step), domain.max // step
    # Evenly in the logarithm: small and large sizes are different code paths.
    return step * min(high, max(low, round(math.exp(rng.uniform(math.log(max(low, 1)), math.log(high + 1))))))
