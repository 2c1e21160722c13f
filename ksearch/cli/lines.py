"""Events as lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from ksearch import events as ev
from ksearch.state import State
from ksearch.types import Insert, Prune, Ratio, Update


def times(ratio: Ratio | None) -> str:
    """ "1.50x (1.45 to 1.56)": value and 95% interval."""
    return "" if ratio is None else f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"


def event_line(event: ev.Event, state: State) -> str:
    """One line on an event; `state` is the state after it. Empty for what only machinery cares about."""
    match event:
        case ev.RunStarted(config=config):
            return f"begun: {config.budget.evaluations} evaluations"
        case ev.Asked(request=request):
            return f"{request.id} asked: {request.kind} at {_named(state, request.node_id)}"
        case ev.Leased(request_id=id, holder=holder):
            return f"{id} taken by {holder.name}"
        case ev.Expired(request_id=id, reason=reason):
            return f"{id} is free again: {reason}"
        case ev.Received(request_id=id, cost=cost, notes=notes):
            paid = "at an unknown price" if cost.usd is None else f"{cost.usd:.4f} USD"
            return "; ".join([f"{id} answered: {cost.tokens} tokens, {paid}", *notes])
        case ev.Commanded(command=command, author=author):
            return f"{author}: {command_words(command)}"
    return _answer_line(event) or _course_line(event, state)


def _answer_line(event: ev.Event) -> str:
    match event:
        case ev.Planned(request_id=id, edits=edits, dropped=dropped):
            parts = [edit_words(e) for e in edits] or ["nothing to change"]
            return f"{id} planned: " + "; ".join([*parts, *dropped])
        case ev.PlanRefused(request_id=id, reason=reason):
            return f"{id} plan refused: {reason}"
        case ev.PlanAbandoned(request_id=id, reason=reason):
            return f"{id} plan given up: {reason}"
        case ev.Written(request_id=id, program_id=program):
            return f"{id} written: program {program[:12]}, to be measured"
        case ev.WriteFailed(request_id=id, verdict=verdict, reason=reason):
            return f"{id} {verdict}: {reason}"
        case ev.Evaluated(request_id=id, evaluation=done):
            what = times(done.speedup) or done.reason
            return f"{id} {done.verdict}: program {done.program_id[:12]}, {what}"
        case ev.WorkLost(request_id=id, reason=reason):
            return f"{id} lost, to be asked again: {reason}"
        case ev.Ignored(request_id=id, reason=reason):
            return f"{id} ignored: {reason}"
    return ""


def _course_line(event: ev.Event, state: State) -> str:
    match event:
        case ev.Judged(node_id=node, attempt=index):
            better = "improved" if event.versus_best else "the first that passed"
            ahead = f", {times(event.versus_best)} over the cycle's best before" if event.versus_best else ""
            word = f"new best of the run{ahead}" if event.new_best else better if event.improved else "no improvement"
            return f"{node} attempt {index + 1}: {word}"
        case ev.CycleClosed(node_id=node, reason=reason, program_id=program):
            failed = "open again" if event.unfinished else "rejected"
            what = f"solved, {times(event.speedup)}" if program else failed
            return f"{_named(state, node)} {what} ({reason})"
        case ev.Submitted(node_id=node, program_id=program, author=author):
            return f"{author} submitted program {program[:12]} at {_named(state, node)}"
        case ev.Paused(reason=reason, author=author):
            return f"paused by {author}: {reason}"
        case ev.Ended(reason=reason):
            return f"ended: {reason}"
    return ""


def _named(state: State, node_id: str) -> str:
    node = state.tree.get(node_id)
    return node_id if node is None or node.parent_id is None else f'{node_id} "{node.action.title}"'


def edit_words(edit: Insert | Update | Prune) -> str:
    match edit:
        case Insert(parent_id=parent, action=action, value=value, id=id):
            return f'new {id} under {parent} "{action.title}" V {value:.2f}'
        case Update(node_id=node):
            return f"{node} updated"
        case Prune(node_id=node):
            return f"{node} pruned"


def command_words(command: ev.Command) -> str:
    match command:
        case ev.Pause(reason):
            return f"pause {reason}".rstrip()
        case ev.Resume():
            return "resume"
        case ev.Stop(reason):
            return f"stop {reason}".rstrip()
        case ev.SetBudget(budget):
            return f"budget {budget.evaluations} evaluations"
        case ev.SetParallel(active, width):
            return f"at once from now on: actions {active}, programs for each {width}"
        case ev.Note(text):
            return f"note: {text}"
        case ev.Review(program, accept):
            return f"{'accepts' if accept else 'does not accept'} program {program[:12]}"
    return _node_words(command)


def _node_words(command: ev.Pin | ev.Boost | ev.PruneNode | ev.AddAction) -> str:
    match command:
        case ev.Pin(node, pinned):
            return f"{'pin' if pinned else 'unpin'} {node}"
        case ev.Boost(node, value):
            return f"boost {node} to V {value:.2f}"
        case ev.PruneNode(node):
            return f"prune {node}"
        case ev.AddAction(parent, action, _, id):
            return f'add {id} under {parent} "{action.title}"'


def lines(events: Sequence[ev.Event], state: State) -> list[str]:
    """The lines of what one answer brought about."""
    return [text for event in events if (text := event_line(event, state))]
