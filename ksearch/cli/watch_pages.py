"""What Enter and `l` open in the pager: a node's program beside its parent's, its log and its story."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from ksearch.errors import KSearchError
from ksearch.events import AnyEvent
from ksearch.history import attempts_at
from ksearch.prompts.text import one_line, plural, ratio, visible
from ksearch.run import Run
from ksearch.service.beginning import log_of
from ksearch.state import State
from ksearch.story import node_story
from ksearch.types import Node, Program

MAX_TEXT = 2_000_000  # characters shown


def page(run: Run, node_id: str, *, log: bool, width: int) -> str:
    """The text about a node: diff against the parent's program, or the log of its last attempt and its story."""
    state = run.state
    program_id = _program(state, node_id)
    text = ""
    if program_id and not log:
        text = _diff(run, state, node_id, program_id)
    if not text:
        events = log_of(run)
        text = f"{_logs(state, events, node_id)}\n\n{node_story(events, state, node_id, width)}\n"
    return text[:MAX_TEXT]


def _program(state: State, node_id: str) -> str | None:
    """The node's best program: closed, or of the cycle at work; else the last one that it measured."""
    cycle = state.cycles.get(node_id)
    if cycle:
        tried = [a.program_id for a in cycle.attempts if a.program_id]
        return cycle.best_id or (tried[-1] if tried else None)
    return state.tree[node_id].program_id


def _parent_program(state: State, node: Node) -> tuple[str, str | None]:
    cycle = state.cycles.get(node.id)
    if cycle:
        return node.parent_id or "", cycle.base_id
    parent = state.tree.get(node.parent_id or "")
    return (parent.id, parent.program_id) if parent else ("", None)


def _diff(run: Run, state: State, node_id: str, program_id: str) -> str:
    node = state.tree[node_id]
    parent_id, base_id = _parent_program(state, node)
    done = state.evaluations.get(program_id)
    told = f", {ratio(done.speedup)} over the baseline" if done and done.speedup else ""
    head = f"{node_id}  {one_line(node.action.title)}\nprogram {program_id[:12]}{told}\n"
    try:
        mine = run.program(program_id)
        base = run.program(base_id) if base_id else None
    except KSearchError as error:
        return f"{head}\n{error}\n"
    if base is None:
        return f"{head}{parent_id or 'its parent'} has no program of this run (the baseline): the whole source\n\n" + (
            "\n".join(f"--- {one_line(path)}\n{visible(text)}" for path, text in mine.sources.items())
        )
    lines = difference(base, mine)
    where = f"against program {(base_id or '')[:12]} of {parent_id}"
    return f"{head}{where}\n\n" + ("\n".join(lines) if lines else "no difference") + "\n"


def difference(before: Program, after: Program) -> list[str]:
    """A unified diff, file by file; nothing in it that a terminal would act on."""
    lines: list[str] = []
    for path in dict.fromkeys([*before.sources, *after.sources]):
        old, new = (visible(p.sources.get(path, "")).splitlines() for p in (before, after))
        name = one_line(path)
        lines += difflib.unified_diff(old, new, f"parent/{name}", f"this/{name}", lineterm="")
    return lines


def _logs(state: State, events: Sequence[AnyEvent], node_id: str) -> str:
    """Verdict, reason and log of the node's last measured attempt."""
    tried = [a for a in attempts_at(events, node_id) if a.program_id in state.evaluations]
    if not tried:
        return "no program of this node has been measured yet"
    done = state.evaluations[tried[-1].program_id or ""]
    head = f"last of {plural(len(tried), 'measured attempt')}: program {done.program_id[:12]}, {done.verdict}"
    reason = f"\n{one_line(done.reason, 2000)}" if done.reason else ""
    return f"{head}{reason}\n\n{visible(done.log) or 'it left no log'}"


def show(text: str) -> str:
    """Run $PAGER on a text; return what went wrong, if anything. The terminal must be an ordinary one again."""
    wanted = shlex.split(os.environ.get("PAGER", "")) or [shutil.which("less") or shutil.which("more") or "cat"]
    env = {"LESS": "-R", **os.environ}
    try:
        done = subprocess.run(wanted, input=text.encode("utf-8", "replace"), env=env, check=False)
    except OSError as error:
        return f"the pager {wanted[0]} cannot be run: {error.strerror}. Set PAGER to another one"
    sys.stdout.flush()
    return "" if done.returncode == 0 else f"the pager {wanted[0]} ended with code {done.returncode}"
