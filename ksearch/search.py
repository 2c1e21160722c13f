"""K-Search (arXiv 2602.19128): the whole algorithm, with no input or output.

    plan -> select an open action -> (write -> evaluate)* until it stagnates -> close -> plan ...

`ask` says what is wanted next, whoever does it: an API model, a coding agent, a recorded transcript. `tell`
checks an answer and returns the events to record; `due` does the same for what time brings, and `steer` for
what people say. None of them changes anything: `fold.apply` does, once an event is in the log. Every decision
(the node, the edits, what improved, why a cycle closed) is in the events, so a replay never decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ksearch import events as ev
from ksearch import tree as trees
from ksearch.budget import can_go_on, finished, in_motion, spent_out
from ksearch.errors import InvalidEdit, InvalidReply
from ksearch.fold import apply
from ksearch.protocol import Cost, Done, Holder, Kind, Lost, Plan, Refusal, Reply, Request, Wait
from ksearch.state import EMPTY, Cycle, Pending, State, faster_on, measured_or_waiting, versus, was_asked
from ksearch.types import Evaluation, Node, Program, Verdict
from ksearch.waiting import goes_on, pauses
from ksearch.writers import choose_writer

ALL_KINDS = frozenset(Kind)
_WANTED = {Kind.PLAN: "a Plan", Kind.WRITE: "a Program", Kind.EVALUATE: "an Evaluation"}


# --- ask: what is wanted next -------------------------------------------------------------------------------------


def ask(state: State, now: float, kinds: frozenset[Kind] = ALL_KINDS) -> Request | Wait | Done:
    """The next piece of work of a kind that the caller can do. Record it with `lease` before it starts."""
    if state.ended:
        return Done(state.ended)
    if state.paused:
        return Wait(f"paused: {state.paused}", state.paused_until)
    others: set[str] = set()
    for request in _wanted(state, now):
        if request.kind in kinds:
            return request
        others.add(request.kind)
    leases = [p.lease.deadline for p in state.pending.values() if p.lease]
    if not others and (why := finished(state, now)):
        return Done(why)
    return Wait(f"{', '.join(sorted(others))} is wanted" if others else "work is out", min(leases, default=None))


def _wanted(state: State, now: float) -> Iterator[Request]:
    """All that could be handed out, most urgent first: what is paid for is measured before more is bought."""
    yield from (p.request for p in state.pending.values() if can_go_on(state, p, now))
    yield from _unmeasured(state)
    if state.stopping or spent_out(state, now):
        return
    out = {(p.request.node_id, p.request.why) for p in state.pending.values() if p.request.kind is Kind.PLAN}
    for node_id, why in state.plans_due:
        if (node_id, why) not in out:
            yield _new(state, Kind.PLAN, node_id, why=why)
    for node_id, cycle in state.cycles.items():
        behind = cycle.unresolved and cycle.unresolved[0].round < cycle.attempts[-1].round  # somebody submitted one
        if not (cycle.single or behind) and (len(cycle.round) < state.config.width or not cycle.unresolved):
            yield _new(state, Kind.WRITE, node_id, cycle.best_id or cycle.base_id)
    # a plan that is due changes the tree: a new cycle started on the old one would forestall it
    if len(state.cycles) + len(state.plans_due) < state.config.max_active and (node := select(state)):
        yield _new(state, Kind.WRITE, node.id, state.tree[trees.parent_of(node)].program_id)
    idle = not (state.cycles or state.plans_due or out or state.exhausted)
    if idle and not trees.frontier(state.tree):
        yield _new(state, Kind.PLAN, trees.ROOT, why=EMPTY)


def _unmeasured(state: State) -> Iterator[Request]:
    out = {p.request.program_id for p in state.pending.values() if p.request.kind is Kind.EVALUATE}
    for node_id, cycle in state.cycles.items():
        for attempt in cycle.unresolved:
            if attempt.program_id and attempt.program_id not in out:
                rivals = (cycle.best_id, cycle.base_id, state.best_id)
                against = tuple(dict.fromkeys(r for r in rivals if r and r != attempt.program_id))
                yield _new(state, Kind.EVALUATE, node_id, attempt.program_id, against)


def _new(
    state: State, kind: Kind, node_id: str, program_id: str | None = None, against: tuple[str, ...] = (), why: str = ""
) -> Request:
    writer = choose_writer(state) if kind is Kind.WRITE else ""
    return Request(f"r{state.asked}", kind, node_id, program_id, against, why, writer)


def select(state: State) -> Node | None:
    """The frontier action of highest V; harder ones only if nothing easier is open; ties to the oldest."""
    actions = trees.frontier(state.tree)
    easy = [n for n in actions if n.action.difficulty <= state.config.max_difficulty or n.pinned]
    return max(easy or actions, key=lambda n: (n.pinned, n.value), default=None)


def lease(
    state: State,
    request: Request,
    holder: Holder,
    now: float,
    seconds: float,
    reserved: Cost | None = None,
    prompt: str | None = None,
) -> list[ev.Event]:
    """Hand a request to somebody for `seconds`: recorded, and its cost reserved, before any work starts.

    `reserved`: the most it can cost; by default the run's worst case for a model call, else nothing.

    Raises:
        InvalidReply: somebody else holds it.
    """
    pending = state.pending.get(request.id)
    if pending and pending.lease:
        raise InvalidReply(f"{request.id} is held by {pending.lease.holder.name}: ask for other work")
    if reserved is None:
        free = request.kind is Kind.EVALUATE or (pending and pending.received)  # a stored reply is only read again
        reserved = Cost() if free else state.config.reserve
    asked = [] if pending else [ev.Asked(at=now, request=request)]
    id, deadline = request.id, now + seconds
    held = ev.Leased(at=now, request_id=id, holder=holder, deadline=deadline, reserved=reserved, prompt=prompt)
    return [*asked, held]


# --- tell: what an answer means ------------------------------------------------------------------------------------


def tell(state: State, request_id: str, reply: Reply, now: float, holder: Holder | None = None) -> list[ev.Event]:
    """Check a reply and return what to record. Idempotent: once answered, a request takes nothing more.

    Raises:
        InvalidReply: no such request was made, or the reply is of another kind. Nothing is to be recorded.
    """
    pending = state.pending.get(request_id)
    if pending is None:
        return _late(state, request_id, now)
    if isinstance(reply, Lost) and (not pending.lease or (holder and pending.lease.holder != holder)):
        return []  # its loss is known already, or somebody else works on it by now
    told = [_told(state, pending, reply, now)]
    if isinstance(reply, Lost):
        told += pauses(state, reply, now)
    return following(state, told, now)


def _late(state: State, request_id: str, now: float) -> list[ev.Event]:
    if request_id in state.withdrawn:
        return [ev.Ignored(at=now, request_id=request_id, reason="the work had been withdrawn before the answer came")]
    if was_asked(state, request_id):
        return []
    raise InvalidReply(f"no request {request_id!r} was made in this run: `ksearch ask` names those that are open")


def _told(state: State, pending: Pending, reply: Reply, now: float) -> ev.Event:
    request, id = pending.request, pending.request.id
    match request.kind, reply:
        case _, Lost(reason, billed):
            return ev.WorkLost(at=now, request_id=id, reason=reason, billed=billed)
        case Kind.PLAN, Plan():
            return _accept(state, pending, reply, now)
        case Kind.PLAN, Refusal(verdict, reason):
            return ev.PlanRefused(at=now, request_id=id, reason=reason, verdict=verdict)
        case Kind.WRITE, Refusal(verdict, reason):
            return ev.WriteFailed(at=now, request_id=id, verdict=verdict, reason=reason)
        case Kind.WRITE, Program() if where := measured_or_waiting(state, reply.id):
            return ev.WriteFailed(at=now, request_id=id, verdict=Verdict.DUPLICATE, reason=where, program_id=reply.id)
        case Kind.WRITE, Program():
            return ev.Written(at=now, request_id=id, program_id=reply.id)
        case Kind.EVALUATE, Evaluation(program_id=request.program_id):
            return ev.Evaluated(at=now, request_id=id, evaluation=reply)
        case Kind.EVALUATE, Evaluation():
            raise InvalidReply(f"{request.id} asks for program {request.program_id}, not {reply.program_id}")
    raise InvalidReply(f"{request.id} wants {_WANTED[request.kind]}: a {type(reply).__name__} does not answer it")


def _accept(state: State, pending: Pending, plan: Plan, now: float) -> ev.Event:
    """All edits or none; only those that other events have overtaken since it was asked are left out."""
    request_id = pending.request.id
    try:
        taken, dropped = trees.accept(state.tree, pending.seen, plan.edits, state.config.max_new_nodes)
    except InvalidEdit as error:
        return ev.PlanRefused(at=now, request_id=request_id, reason=str(error), offered=plan)
    return ev.Planned(at=now, request_id=request_id, edits=taken, dropped=dropped, assessment=plan.assessment)


# --- what follows: judging, closing, giving up, ending --------------------------------------------------------------


def due(state: State, now: float, dead: Callable[[Holder], bool] = lambda _: False) -> list[ev.Event]:
    """What time has brought: a pause is over, leases of the late and the dead expire, and all that follows."""
    events = goes_on(state, now)
    for id, pending in state.pending.items():
        if pending.lease and pending.lease.deadline < now:
            events.append(ev.Expired(at=now, request_id=id, reason="the lease ran out"))
        elif pending.lease and dead(pending.lease.holder):
            events.append(ev.Expired(at=now, request_id=id, reason="its holder is dead"))
    return following(state, events, now)


def following(state: State, events: list[ev.Event], now: float) -> list[ev.Event]:
    """The events, and those that follow from them until nothing more does."""
    for event in events:
        state = apply(state, event)
    events = list(events)
    while (follows := _next(state, now)) is not None:
        events.append(follows)
        state = apply(state, follows)
    return events


def _next(state: State, now: float) -> ev.Event | None:
    for node_id, cycle in state.cycles.items():
        if decided := _judge(state, node_id, cycle, now) or _close(state, node_id, cycle, now):
            return decided
    for pending in state.pending.values():
        if given_up := _give_up(state, pending, now):
            return given_up
    if not state.ended and (why := finished(state, now)):
        return ev.Ended(at=now, reason=why)
    return None


def _judge(state: State, node_id: str, cycle: Cycle, now: float) -> ev.Judged | None:
    """Attempts count in the order of their requests. Only a paired interval above 1 is an improvement."""
    # at the end, those that will never come hold up nobody
    ending = (state.stopping or spent_out(state, now)) and not in_motion(state, now)
    index = next((i for i, a in enumerate(cycle.attempts) if a.judged is None and (a.verdict or not ending)), None)
    if index is None or cycle.attempts[index].verdict is None:
        return None
    done = state.evaluations.get(cycle.attempts[index].program_id or "")
    if done is None or done.speedup is None or cycle.attempts[index].verdict is not Verdict.PASSED:
        return ev.Judged(at=now, node_id=node_id, attempt=index, improved=False, beats_parent=False, new_best=False)
    best, run_best = versus(state, done, cycle.best_id), versus(state, done, state.best_id)
    parent = versus(state, done, cycle.base_id) if cycle.base_id else done.speedup
    new_best = run_best.faster if run_best else state.best_id is None
    aim = state.tree[node_id].action.workloads
    # what surely beats the run's best, or the cycle's where it was aimed, is not held back by noise elsewhere
    sure = new_best or faster_on(done, cycle.best_id, aim)
    improved = best.faster or (sure and best.value >= 1) if best else cycle.best_id is None
    ahead = parent is not None and (parent.faster or (parent.value >= 1 and faster_on(done, cycle.base_id, aim)))
    return ev.Judged(
        at=now,
        node_id=node_id,
        attempt=index,
        improved=improved,
        beats_parent=ahead,
        new_best=new_best,
        versus_best=best,
        versus_parent=parent,
    )


def _close(state: State, node_id: str, cycle: Cycle, now: float) -> ev.CycleClosed | None:
    reason, cut = _why_close(state, node_id, cycle), None
    if reason is None and not in_motion(state, now):
        cut = "stopped" if state.stopping else spent_out(state, now)
    if (reason := reason or cut) is None:
        return None
    best = next((a for a in reversed(cycle.attempts) if a.judged and a.judged.improved), None)
    if best is None or best.program_id is None or best.judged is None:
        unfinished = cut is not None and not cycle.single  # a node made for one program is no action to go on with
        pruned = () if unfinished else trees.open_below(state.tree, node_id)
        return ev.CycleClosed(at=now, node_id=node_id, reason=reason, pruned=pruned, unfinished=unfinished)
    speedup, gain = state.evaluations[best.program_id].speedup, best.judged.versus_parent
    return ev.CycleClosed(
        at=now, node_id=node_id, reason=reason, program_id=best.program_id, speedup=speedup, gain=gain
    )


def _why_close(state: State, node_id: str, cycle: Cycle) -> str | None:
    """The rules of section 2 of the design; only between rounds, when every attempt is judged."""
    judged = [a.judged for a in cycle.attempts if a.judged]
    if len(judged) < len(cycle.attempts):
        return None
    if cycle.single:
        return "single"
    if len(cycle.round) < state.config.width:
        return None
    limit, weight = state.config.stagnation, state.config.passing_weight or 1
    passed = [a.verdict is Verdict.PASSED and not j.improved for a, j in zip(cycle.attempts, judged, strict=True)]
    counts = [weight if passing else 1 for passing in passed]
    last = max((i for i, j in enumerate(judged) if j.improved), default=-1)
    if sum(counts[last + 1 :]) >= limit:
        return "stagnation"
    first = next((i for i, j in enumerate(judged) if j.improved), len(judged))
    behind = not any(j.beats_parent for j in judged)  # under the root the parent's program is the baseline
    if behind and not state.tree[node_id].action.enabling and sum(counts[first + 1 :]) >= limit:
        return "behind_parent"
    return "attempt_limit" if len(judged) >= 3 * limit else None


def _give_up(state: State, pending: Pending, now: float) -> ev.Event | None:
    """Nothing is asked for ever. A plan can be done without; work that keeps getting lost pauses the run."""
    request, limit = pending.request, state.config.max_retries
    waits = state.paused_until is not None  # for somebody who is down: what was lost is forgotten then
    if request.kind is Kind.PLAN and not waits and len(pending.lost) + len(pending.refusals) > limit:
        last = (*pending.refusals, *pending.lost)[-1]
        return ev.PlanAbandoned(at=now, request_id=request.id, reason=last)
    if request.kind is not Kind.PLAN and len(pending.lost) > limit and not state.paused:
        return ev.Paused(at=now, reason=f"{request.kind} was lost {len(pending.lost)} times, last: {pending.lost[-1]}")
    return None
