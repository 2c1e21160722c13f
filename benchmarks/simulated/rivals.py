"""Three policies beside ours. Each spends one evaluation per attempt, and believes paired measurements only."""

from __future__ import annotations

import random

from simulated.world import Mind, Solution, Task, Writer, measured_gain, surely_faster

ISLANDS, MIGRATION = 4, 20  # populations; evaluations between two exchanges of their best
EXPLOIT = 0.7  # chance that a parent is the winner of a tournament, else any
TOURNAMENT = 3
MORE = 0.5  # chance of taking one more idea into the same attempt
MORE_AT_ONCE = 0.75  # the same where all has to be done in one go
MOST = 8  # ideas in one attempt


def best_of_n(task: Task, mind: Mind, evaluations: int, rng: random.Random) -> list[float]:
    """Whole programs in one go, each from the baseline and from nothing learned."""
    writer, best, curve = Writer(task, rng), {}, []
    for _ in range(evaluations):
        found = writer.carry_out({}, several(mind, {}, rng, MORE_AT_ONCE))
        if found is not None and surely_faster(measured_gain(task, found, best, rng)):
            best = found
        curve.append(task.log_speed(best))
    return curve


def greedy(task: Task, mind: Mind, evaluations: int, rng: random.Random) -> list[float]:
    """Changes the best program; keeps only what improves it."""
    writer, best, curve = Writer(task, rng), {}, []
    for _ in range(evaluations):
        found, ideas = mutate(mind, writer, best, rng)
        if found is not None:
            gain = measured_gain(task, found, best, rng)
            remember(mind, ideas, gain)
            best = found if surely_faster(gain) else best
        curve.append(task.log_speed(best))
    return curve


def islands(task: Task, mind: Mind, evaluations: int, rng: random.Random) -> list[float]:
    """Populations that keep every distinct structure, slower ones too; parents by tournament; the best migrate."""
    writer, best, curve = Writer(task, rng), {}, []
    archives: list[dict[frozenset[int], Solution]] = [{frozenset(): {}} for _ in range(ISLANDS)]
    for n in range(evaluations):
        archive = archives[n % ISLANDS]
        parent = choose_parent(task, archive, rng)
        found, ideas = mutate(mind, writer, parent, rng)
        if found is not None:
            remember(mind, ideas, measured_gain(task, found, parent, rng))
            keep(task, archive, found, rng)
            best = found if surely_faster(measured_gain(task, found, best, rng)) else best
        if n % MIGRATION == MIGRATION - 1:
            leaders = [max(a.values(), key=task.log_speed) for a in archives]
            for i, leader in enumerate(leaders):
                keep(task, archives[(i + 1) % ISLANDS], leader, rng)
        curve.append(task.log_speed(best))
    return curve


def choose_parent(task: Task, archive: dict[frozenset[int], Solution], rng: random.Random) -> Solution:
    programs = list(archive.values())
    if rng.random() < EXPLOIT:
        return max((rng.choice(programs) for _ in range(TOURNAMENT)), key=task.log_speed)
    return rng.choice(programs)


def keep(task: Task, archive: dict[frozenset[int], Solution], found: Solution, rng: random.Random) -> None:
    """The best program of each set of ideas."""
    old = archive.get(frozenset(found))
    if old is None or surely_faster(measured_gain(task, found, old, rng)):
        archive[frozenset(found)] = found


def mutate(mind: Mind, writer: Writer, parent: Solution, rng: random.Random) -> tuple[Solution | None, list[int]]:
    """One attempt on a program: something new, or something that is in it done better, evenly."""
    ideas = several(mind, parent, rng, MORE) if not parent or rng.random() < 0.5 else []
    if ideas or not parent:
        return writer.carry_out(parent, ideas), ideas
    return writer.improve(parent, rng.choice(list(parent))), []


def several(mind: Mind, done: Solution, rng: random.Random, more: float) -> list[int]:
    """Ideas to carry out in one attempt: one, and again one more by chance. Later steps come in sight on the way."""
    ideas: list[int] = []
    while len(ideas) < MOST and (idea := mind.choose([*done, *ideas], rng)) is not None:
        ideas.append(idea)
        if rng.random() >= more:
            break
    return ideas


def remember(mind: Mind, ideas: list[int], gain: float) -> None:
    """Where one idea alone was carried out, its effect is known from now on."""
    if len(ideas) == 1:
        mind.learn(ideas[0], gain)
