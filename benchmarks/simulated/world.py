"""A synthetic task: ideas with hidden effects, some of which pay off only together, and a mind that guesses at them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

PLAIN, CHAINS = 12, 3  # ideas that stand alone; ideas that come in steps
NOISE = 0.005  # standard deviation of a measured log ratio
HALF_WIDTH = 2 * NOISE  # of its 95% interval
TEMPERATURE = 0.3  # of every choice that a mind makes: a model does not always name its best guess

Solution = Mapping[int, float]  # idea -> how well it is carried out, 0..1


@dataclass(frozen=True, slots=True)
class Landscape:
    """What varies between families of tasks. Estimates and effects are logarithms of speed."""

    steps: int = 3  # of each chain, the first of them slower than without it; 1: no hidden structure
    fail: float = 0.5  # chance that one attempt at one step does not pass
    noise: float = 0.5  # standard deviation of an estimate: 0.5 is a factor of 1.6
    foresight: float = 0.5  # share of what a step makes possible that a mind foresees

    def __str__(self) -> str:
        steps = f"{self.steps} step{'s' * (self.steps != 1)}"
        return f"{steps}, fail {self.fail:g}, noise {self.noise:g}, foresight {self.foresight:g}"


@dataclass(frozen=True, slots=True)
class Idea:
    """One structural change. `effect`: log speed, fully carried out; `promise`: what its later steps add."""

    effect: float
    promise: float = 0.0
    after: int | None = None  # the step that has to be there first


@dataclass(frozen=True)
class Task:
    landscape: Landscape
    ideas: tuple[Idea, ...]

    def log_speed(self, done: Solution) -> float:
        """Over the baseline. A gain grows with how well it is carried out; a loss is there at once."""
        return math.fsum(max(0.0, self.ideas[i].effect) * q + min(0.0, self.ideas[i].effect) for i, q in done.items())

    def open_to(self, done: Iterable[int]) -> list[int]:
        """The ideas that can be carried out next: one sees a later step only from where it begins."""
        have = set(done)
        return [i for i, idea in enumerate(self.ideas) if i not in have and (idea.after is None or idea.after in have)]

    @property
    def optimum(self) -> float:
        """Log speed of the best program there is."""
        chains: dict[int, float] = {}
        total = 0.0
        for i, idea in enumerate(self.ideas):
            chains[i] = idea.effect + (chains[idea.after] if idea.after is not None else 0.0)
        last = [i for i in chains if all(idea.after != i for idea in self.ideas)]
        for i in last:
            best, at, have = 0.0, i, chains[i]
            while True:
                best = max(best, have)
                after = self.ideas[at].after
                if after is None:
                    break
                have, at = chains[after], after
            total += best
        return total


def make_task(landscape: Landscape, seed: int) -> Task:
    rng = random.Random(f"task {seed}")
    ideas = [Idea(rng.gauss(0, 0.15)) for _ in range(PLAIN)]
    for _ in range(CHAINS):
        whole = rng.uniform(math.log(0.9), math.log(4))  # of all its steps together: one may be in vain
        effects = [rng.uniform(math.log(0.7), math.log(0.9)), *(rng.gauss(0, 0.05) for _ in range(landscape.steps - 2))]
        effects = [*effects[: landscape.steps - 1], whole - sum(effects[: landscape.steps - 1])]
        for n, effect in enumerate(effects):
            after = len(ideas) - 1 if n else None
            ideas.append(Idea(effect, sum(effects[n + 1 :]), after))
    return Task(landscape, tuple(ideas))


class Mind:
    """Who plans: it guesses at effects, and learns them where they were measured. The same one serves every policy."""

    def __init__(self, task: Task, seed: int) -> None:
        rng, half = random.Random(f"mind {seed}"), task.landscape.noise / math.sqrt(2)
        self.task = task
        self.effect = [idea.effect + rng.gauss(0, half) for idea in task.ideas]
        self.promise = [task.landscape.foresight * idea.promise + rng.gauss(0, half) for idea in task.ideas]

    def estimate(self, idea: int) -> float:
        return self.effect[idea] + self.promise[idea]

    def learn(self, idea: int, measured: float) -> None:
        """What carrying it out alone brought. What it makes possible stays a guess."""
        self.effect[idea] = measured

    def choose(self, done: Iterable[int], rng: random.Random) -> int | None:
        """An idea for a program; None where none looks worth while."""
        worth = [i for i in self.task.open_to(done) if self.estimate(i) > 0]
        return max(worth, key=lambda i: self.estimate(i) + hesitation(rng), default=None)


def hesitation(rng: random.Random) -> float:
    """Added to an estimate before the highest is taken: it makes the choice a soft one (Gumbel)."""
    return -TEMPERATURE * math.log(-math.log(rng.random() or 1e-12))


@dataclass(frozen=True)
class Writer:
    """Who carries ideas out. Each step of each attempt fails with the landscape's chance, whatever went before."""

    task: Task
    rng: random.Random

    def passes(self, steps: int) -> bool:
        return all(self.rng.random() >= self.task.landscape.fail for _ in range(steps))

    def carry_out(self, done: Solution, ideas: Iterable[int]) -> Solution | None:
        """A program with these ideas in it, at a first go; None: it does not pass."""
        wanted = list(ideas)
        if not self.passes(len(wanted)):
            return None
        return {**done, **{i: self.rng.uniform(0.3, 0.8) for i in wanted}}

    def improve(self, done: Solution, idea: int) -> Solution | None:
        """The same ideas, one of them carried out better, or worse."""
        if not self.passes(1):
            return None
        better = done[idea] + (1 - done[idea]) * self.rng.uniform(-0.2, 0.6)
        return {**done, idea: min(1.0, max(0.0, better))}


def measured_gain(task: Task, new: Solution, old: Solution, rng: random.Random) -> float:
    """Log of old time / new time, as paired timing tells it."""
    return task.log_speed(new) - task.log_speed(old) + rng.gauss(0, NOISE)


def surely_faster(gain: float) -> bool:
    return gain > HALF_WIDTH


Policy = Callable[[Task, Mind, int, random.Random], list[float]]  # -> true log speed of its best, by evaluations
