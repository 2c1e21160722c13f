"""One node's story, told from the log: all that happened to it, in order, with the reasons that were given."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ksearch import events as ev
from ksearch import tree as trees
from ksearch.errors import InvalidCommand
from ksearch.prompts.profiles import one_profile
from ksearch.prompts.text import ms, one_line, paired, plural, quoted, ratio, times
from ksearch.protocol import Kind, Request
from ksearch.state import State
from ksearch.types import Evaluation, Insert, NodeStatus, Prune, Tree, TreeEdit, Update, Verdict

_INDENT = " " * 10


def node_story(events: Sequence[ev.AnyEvent], state: State, node_id: str, width: int = 80) -> str:
    """What the node is, then everything that happened to it: attempts, verdicts, decisions, plans, people's words.

    Args:
        events: the whole log.
        state: the fold of it.

    Raises:
        InvalidCommand: there is no such node.
    """
    if node_id not in state.tree:
        raise InvalidCommand(f"node {node_id!r} does not exist: `ksearch show` lists the nodes")
    start = events[0].at if events else 0.0
    teller = _Teller(state, node_id, frozenset(_ancestors(state.tree, node_id)))
    width = max(width, 60)
    lines = [_fill(text, width, "", "  ") for text in _header(state, node_id)]
    lines.append("")
    for event in events:
        for i, text in enumerate(teller.tell(event)):
            label = f"{_clock(event.at - start):>8}  " if i == 0 else _INDENT
            lines.append(_fill(text, width, label, _INDENT))
    return "\n".join(line.rstrip() for line in lines)


def _fill(text: str, width: int, first: str, rest: str) -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _clock(seconds: float) -> str:
    whole = int(max(0.0, seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _ancestors(tree: Tree, node_id: str) -> Iterator[str]:
    at = tree[node_id].parent_id
    while at:
        yield at
        at = tree[at].parent_id


def _header(state: State, node_id: str) -> list[str]:
    node = state.tree[node_id]
    action = node.action
    if node_id == trees.ROOT:
        return ["root: the baseline that every program is measured against"]
    facts = [f"under {node.parent_id}", node.status.value, f"V {node.value:.2f}", f"difficulty {action.difficulty}"]
    facts += ["enabling step"] if action.enabling else []
    facts += [f"aims at {one_line(', '.join(action.workloads))}"] if action.workloads else []
    facts += ["pinned"] if node.pinned else []
    lines = [f"{node.id}  {one_line(action.title)}", ", ".join(facts)]
    predicted = times(action.predicted_speedup) if action.predicted_speedup is not None else "nothing"
    nothing = {NodeStatus.REJECTED: "no attempt passed", NodeStatus.PRUNED: "never tried"}.get(node.status)
    measured = f"measured {ratio(node.gain)}" if node.gain else nothing or "not measured yet"
    lines.append(f"predicted {predicted} over its parent, {measured}")
    if node.speedup and node.program_id:
        lines.append(f"program {node.program_id[:12]}: {ratio(node.speedup)} over the baseline")
    lines += [f"why: {one_line(action.rationale, 1000)}"] if action.rationale else []
    lines += [f"notes: {one_line(node.notes, 1000)}"] if node.notes else []
    return lines


@dataclass
class _Teller:
    """Walks the log once; knows which requests and programs are this node's."""

    state: State
    node_id: str
    ancestors: frozenset[str]
    requests: dict[str, Request] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # request id or program id -> attempt
    models: dict[str, str] = field(default_factory=dict)
    asked_with: str = ""  # the parameters of the call told last
    count: int = 0  # attempts in all
    start: int = 0  # attempts before the present cycle
    closed: bool = False

    def tell(self, event: ev.AnyEvent) -> list[str]:
        match event:
            case ev.Asked(request=request):
                self._asked(request)
            case ev.Received(request_id=id) if id in self.requests:
                return self._received(event)
            case ev.Planned():
                return self._planned(event)
            case ev.Submitted() if event.node_id == self.node_id:
                return self._submitted(event)
            case ev.Judged() if event.node_id == self.node_id and (event.improved or event.versus_parent):
                return [_judged(event, self.start + event.attempt + 1)]
            case ev.CycleClosed():
                return self._cycle_closed(event)
            case ev.Commanded():
                return self._commanded(event.command, one_line(event.author, 40))
            case ev.Evaluated(evaluation=done) if event.request_id in self.requests:
                return _evaluated(self.numbers.get(done.program_id, 0), done)
            case _ if getattr(event, "request_id", None) in self.requests:
                return self._about_request(event)
        return []

    def _asked(self, request: Request) -> None:
        if request.node_id != self.node_id:
            return
        self.requests[request.id] = request
        if request.kind is Kind.WRITE:
            self.count += 1
            self.numbers[request.id] = self.count

    def _submitted(self, event: ev.Submitted) -> list[str]:
        self.count += 1
        self.numbers[event.program_id] = self.count
        made = ", which the engine made a node for" if event.created else ""
        members = f"; it dispatches to {', '.join(m[:12] for m in event.members)}" if event.members else ""
        author = one_line(event.author, 40)
        return [f"attempt {self.count}: program {event.program_id[:12]} submitted by {author}{made}{members}"]

    def _received(self, event: ev.Received) -> list[str]:
        """How it was asked, where that is new, and what is odd about it."""
        self.models[event.request_id] = event.model
        what = self._what(event.request_id)
        new, self.asked_with = event.sent != self.asked_with, event.sent or self.asked_with
        lines = [f"{what}: asked with {one_line(event.sent, 400)}"] if event.sent and new else []
        return lines + [f"{what}: note: {one_line(note, 300)}" for note in event.notes]

    def _what(self, id: str) -> str:
        return f"attempt {self.numbers[id]}" if id in self.numbers else f"{self.requests[id].kind} {id}"

    def _about_request(self, event: ev.AnyEvent) -> list[str]:
        """Events that only name their request."""
        id = str(getattr(event, "request_id", ""))
        what = self._what(id)
        by = f" by {one_line(self.models[id], 60)}" if self.models.get(id) else ""
        match event:
            case ev.Written(program_id=program_id):
                self.numbers[program_id] = self.numbers[id]
                return [f"{what}: program {program_id[:12]} written{by}"]
            case ev.WriteFailed(verdict=verdict, reason=reason):
                return [f"{what}: {verdict}{by}: {one_line(reason, 600)}"]
            case ev.WorkLost(reason=reason):
                return [f"{what}: lost, to be asked again: {one_line(reason, 300)}"]
            case ev.Expired(reason=reason):
                return [f"{what}: nobody answered in time: {one_line(reason, 300)}"]
            case ev.PlanRefused(reason=reason):
                return [f"{what}{self._after()} was refused: {one_line(reason, 600)}"]
            case ev.PlanAbandoned(reason=reason):
                return [f"{what}{self._after()} was given up: {one_line(reason, 300)}"]
            case ev.Ignored(reason=reason):
                return [f"{what}: {one_line(reason, 300)}"]
        return []

    def _planned(self, event: ev.Planned) -> list[str]:
        told = [text for edit in event.edits if (text := self._edited(edit, event.request_id))]
        if event.request_id not in self.requests:
            return told
        inserts = [e.id for e in event.edits if isinstance(e, Insert)]
        pruned = [e.node_id for e in event.edits if isinstance(e, Prune)]
        updated = [e.node_id for e in event.edits if isinstance(e, Update)]
        made = [
            f"{verb} {', '.join(ids)}"
            for verb, ids in (("inserted", inserts), ("updated", updated), ("pruned", pruned))
            if ids
        ]
        lines = [f"plan {event.request_id}{self._after()}: {'; '.join(made) or 'no edits'}"]
        lines += [f"said: {quoted(event.assessment, 1000)}"] if event.assessment else []
        lines += [f"left out: {one_line(reason, 300)}" for reason in event.dropped]
        return lines + [text for text in told if not text.startswith("child")]

    def _after(self) -> str:
        return "" if self.node_id == trees.ROOT else " after this cycle"

    def _edited(self, edit: TreeEdit, request_id: str) -> str:
        """An edit of a plan, if it is about this node."""
        match edit:
            case Insert(id=id) if id == self.node_id:
                return f"inserted by plan {request_id}: V {edit.value:.2f}, difficulty {edit.action.difficulty}"
            case Insert(parent_id=parent) if parent == self.node_id:
                return f"child {edit.id} inserted by plan {request_id}: {quoted(edit.action.title)}"
            case Update(node_id=id) if id == self.node_id:
                changes = [f"V {edit.value:.2f}"] if edit.value is not None else []
                changes += [f"difficulty {edit.difficulty}"] if edit.difficulty is not None else []
                changes += [f"notes {quoted(edit.notes, 400)}"] if edit.notes is not None else []
                return f"updated by plan {request_id}: {', '.join(changes)}"
            case Prune(node_id=id):
                return self._pruned(id, f"by plan {request_id}", edit.reason)
        return ""

    def _pruned(self, target: str, by: str, reason: str) -> str:
        if self.closed or (target != self.node_id and target not in self.ancestors):
            return ""
        self.closed = True
        along = "" if target == self.node_id else f" with {target}"
        return f"pruned{along} {by}{': ' + quoted(reason, 400) if reason else ''}"

    def _cycle_closed(self, event: ev.CycleClosed) -> list[str]:
        if event.node_id != self.node_id:
            if self.node_id not in event.pruned:
                return []
            self.closed = True
            return [f"pruned, because {event.node_id} above it was rejected"]
        made, self.start = self.count - self.start, self.count
        if event.unfinished:
            return [f"open again after {plural(made, 'attempt')}, cut short: {one_line(event.reason)}"]
        self.closed = True
        if event.program_id is None or event.speedup is None:
            pruned = f"; pruned with it: {', '.join(event.pruned)}" if event.pruned else ""
            return [f"closed as rejected after {plural(made, 'attempt')}: {one_line(event.reason)}{pruned}"]
        gain = f", {ratio(event.gain)} over its parent" if event.gain else ""
        return [
            f"closed as solved after {plural(made, 'attempt')}: {one_line(event.reason)}",
            f"program {event.program_id[:12]}: {ratio(event.speedup)} over the baseline{gain}",
        ]

    def _commanded(self, command: ev.Command, author: str) -> list[str]:
        text = ""
        match command:
            case ev.Pin(node_id, pinned) if node_id == self.node_id:
                text = f"{'pinned' if pinned else 'no longer pinned'} by {author}"
            case ev.Boost(node_id, value) if node_id == self.node_id:
                text = f"V set to {value:.2f} by {author}"
            case ev.PruneNode(node_id, reason):
                text = self._pruned(node_id, f"by {author}", reason)
            case ev.AddAction(id=id, value=value) if id == self.node_id:
                text = f"added by {author}: V {value:.2f}, difficulty {command.action.difficulty}"
            case ev.AddAction(parent_id=parent, id=id) if parent == self.node_id:
                text = f"child {id} added by {author}: {quoted(command.action.title)}"
            case ev.Note(said, node_id, program_id) if node_id == self.node_id or program_id in self.numbers:
                text = f"{author} notes: {quoted(said, 1000)}"
            case ev.Review(program_id, accept, said) if program_id in self.numbers:
                word = "accepted" if accept else "not accepted"
                text = f"program {program_id[:12]} {word} by {author}: {quoted(said, 400)}"
        return [text] if text else []


def _evaluated(number: int, done: Evaluation) -> list[str]:
    what = f"attempt {number}: " if number else ""
    if done.verdict is not Verdict.PASSED or done.speedup is None:
        stage = f" at {one_line(done.stage, 20)}" if done.stage else ""
        return [f"{what}{done.verdict}{stage}{': ' if done.reason else ''}{one_line(done.reason, 600)}"]
    lines = [f"{what}passed, {ratio(done.speedup)} over the baseline{', confirmed' if done.confirmed else ''}"]
    named = [
        f"{one_line(w.workload, 40)} {ms(w.latency_ms)} ms" + (f" ({paired(w.speedup)})" if w.speedup else "")
        for w in done.workloads
        if w.latency_ms is not None
    ]
    lines += [", ".join(named)] if named else []
    lines += [f"doubt: {one_line(flag, 200)}" for flag in done.flags]
    lines += [f"profile: {line.lstrip('- ')}" for profile in done.profiles for line in one_profile(profile)]
    return lines


def _judged(event: ev.Judged, number: int) -> str:
    better = "an improvement" if event.versus_best else "the first that passed"
    parts = [f"judged attempt {number}: {better if event.improved else 'no improvement'}"]
    parts += [f"{ratio(event.versus_best)} over the cycle's best"] if event.versus_best else []
    parts += [f"{ratio(event.versus_parent)} over the parent"] if event.versus_parent else []
    return ", ".join([*parts, "NEW BEST OF THE RUN"] if event.new_best else parts)
