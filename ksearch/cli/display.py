"""What a search shows while it goes on: a picture on a terminal, plain lines in a pipe, JSON lines for programs."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ksearch import events as ev
from ksearch.cli import options as opt
from ksearch.cli.lines import event_line
from ksearch.codec import encode_event
from ksearch.run import Run
from ksearch.state import State
from ksearch.views import summary, tree_text

SHOWN = (
    ev.Planned, ev.PlanRefused, ev.PlanAbandoned, ev.WriteFailed, ev.Evaluated, ev.WorkLost, ev.Judged,
    ev.CycleClosed, ev.Submitted, ev.Paused, ev.Ended, ev.Commanded,
)  # fmt: skip
RESULTS = 5  # last lines under the tree
TREE = 3  # lines of the tree at least: the heading, one node, how many more there are


@contextmanager
def watching(run: Run, *, quiet: bool, as_json: bool) -> Iterator[None]:
    """Show what the run does while this lasts."""
    if as_json:
        run.watchers.append(_json_line)
    elif not quiet and sys.stdout.isatty():
        with _picture(run):
            yield
        return
    elif not quiet:
        run.watchers.append(_plain_lines())
    yield


def _json_line(event: ev.Event, _: State) -> None:
    opt.print_json(encode_event(event))
    sys.stdout.flush()


def _plain_lines() -> Callable[[ev.Event, State], None]:
    line = Lines()

    def show(event: ev.Event, state: State) -> None:
        if text := line(event, state):
            print(text, flush=True)

    return show


class Lines:
    """The line of each event that is worth one. What is odd about replies is told once, however many are.

    Args:
        told: what was told already, by others too.
    """

    def __init__(self, told: set[str] | None = None) -> None:
        self._told = set() if told is None else told

    def __call__(self, event: ev.Event, state: State) -> str:
        text = self.bare(event, state)
        return f"[{state.evaluated}/{state.config.budget.evaluations}] {text}" if text else ""

    def bare(self, event: ev.Event, state: State) -> str:
        """Without the count of evaluations."""
        new = isinstance(event, ev.Received) and not self._told.issuperset(event.notes)
        if isinstance(event, ev.Received):
            self._told.update(event.notes)
        return event_line(event, state) if new or isinstance(event, SHOWN) else ""


@contextmanager
def _picture(run: Run) -> Iterator[None]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    last: deque[str] = deque(maxlen=RESULTS)
    line = Lines()

    def draw(state: State) -> Text:
        return Text("\n".join(screen(state, last, console.width, console.height)), no_wrap=True, overflow="crop")

    with Live(draw(run.state), console=console, auto_refresh=False, redirect_stderr=True) as live:

        def on_event(event: ev.Event, state: State) -> None:
            last.extend(filter(None, [line(event, state)]))
            live.update(draw(state), refresh=True)

        run.watchers.append(on_event)
        try:
            yield
        finally:
            run.watchers.remove(on_event)


def screen(state: State, last: deque[str], width: int, height: int) -> list[str]:
    """The lines of the picture, at most height - 1 of them: budgets, the tree around where work is, last results."""
    head = summary(state, width).splitlines()
    room = max(0, height - 1 - len(head) - 2)  # under the head, and two empty lines
    results = [line[:width] for line in last][max(0, len(last) - max(0, room - TREE)) :]
    tree = tree_text(state, width, ascii=opt.plain()).splitlines()
    return [*head, "", *around(tree, max(TREE, room - len(results))), "", *results][: height - 1]


def around(tree: list[str], room: int) -> list[str]:
    """As many lines as there is room for, around the node being worked on, else the end; the rest is counted."""
    if len(tree) <= room:
        return tree
    column, nodes = tree[0], [line for line in tree[1:-1] if line]
    room = max(1, room - 2)
    at = next((i for i, line in enumerate(nodes) if "◐" in line), len(nodes) - 1)
    start = max(0, min(at - room // 2, len(nodes) - room))
    hidden = len(nodes) - min(room, len(nodes))
    return [column, *nodes[start : start + room], f"({hidden} more lines: ksearch show)"]
