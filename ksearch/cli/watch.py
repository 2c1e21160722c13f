"""watch: a run in the terminal, live, read from the store. The search neither notices nor depends on it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from ksearch.cli import options as opt

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ksearch import events as ev
    from ksearch.cli.watch_keys import Say, Wish
    from ksearch.cli.watch_picture import View
    from ksearch.run import Run
    from ksearch.state import State
    from ksearch.store import Store

LOOK_S = 0.5  # the store is asked for news this often
KEY_S = 0.2  # longest wait for a key, and so for a resize to show
TICK_S = 1.0  # redrawn at least this often, for the ages in it


def watch(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|FILE.jsonl]", show_default=False, help="Default: the latest unfinished run."),
    ] = None,
    author: opt.AuthorOption = None,
    store: opt.StoreOption = None,
    quiet: opt.QuietOption = False,
    as_json: opt.JsonOption = False,
) -> int:
    """Watch a run in the terminal, live. It reads the store: a broken ssh line does the search no harm.

    On a terminal: the tree, budgets, results, who is at work; j and k move, Enter shows the diff against the parent
    in $PAGER, l the log, p pauses or resumes, x prunes, q leaves. Elsewhere: plain lines until the run ends.

    \b
    Examples:
      ksearch watch
      ksearch watch softmax-1
      ksearch watch softmax-1 | tee log.txt
      ksearch watch softmax-1 --quiet && echo done
    """
    from ksearch.cli.boundary import INTERRUPTED, say
    from ksearch.cli.opening import opened_run

    exported = bool(run and run.endswith(".jsonl"))
    try:
        with opened_run(store, run, readonly=True) as found, _ends_cleanly():
            if as_json or quiet or not _full():
                return _lines(found, quiet=quiet, as_json=as_json, follow=not exported)
            return Screen(found, _writer(store, exported), author or opt.login_name()).show()
    except KeyboardInterrupt:
        say("no longer watched; the search does not notice")
        return INTERRUPTED


def _full() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def _ends_cleanly() -> Iterator[None]:
    """SIGTERM and a hang-up end it the way Ctrl-C does, so that the terminal is put back."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- plain lines ---------------------------------------------------------------------------------------------------


def _lines(run: Run, *, quiet: bool, as_json: bool, follow: bool) -> int:
    """All that has happened, then what happens, until the run ends. Exit code 1: it ended without a program."""
    from ksearch.cli.display import SHOWN
    from ksearch.cli.lines import event_line, times
    from ksearch.codec import encode_event
    from ksearch.fold import apply
    from ksearch.prompts.text import one_line
    from ksearch.state import State

    def told(event: ev.Event, state: State) -> None:
        if as_json:
            opt.print_json(encode_event(event))
        elif not quiet and isinstance(event, SHOWN) and (text := event_line(event, state)):
            when = time.strftime("%H:%M:%S", time.localtime(event.at))
            print(f"{when} [{state.evaluated}/{state.config.budget.evaluations}] {one_line(text, 1000)}")
        sys.stdout.flush()

    state = State()
    for event in run.log()[: run.seq]:
        state = apply(state, event)
        told(event, state)
    run.watchers.append(told)
    while follow and not run.state.ended:
        time.sleep(LOOK_S)
        run.refresh()
    best = run.state.evaluations.get(run.state.best_id or "")
    if not as_json:
        speedup = times(best.speedup) if best else "no program passed"
        print(f"run {run.id} {f'ended: {run.state.ended}' if run.state.ended else 'has not ended'}; best: {speedup}")
    return 0 if best else 1


# --- the full screen -----------------------------------------------------------------------------------------------


def _writer(flag: str | None, exported: bool) -> Callable[[], Store] | None:
    """How to open the store for a command; None: nothing can be said to this run."""
    if exported:
        return None
    from ksearch.cli.opening import store_place
    from ksearch.store import open_store

    return lambda: open_store(store_place(flag))


def _view(viewing: bool) -> View:
    from ksearch.cli.watch_picture import MAX_RESULTS, View

    return View(viewing=viewing, last=deque(maxlen=MAX_RESULTS))


@dataclass
class Screen:
    """The loop: look at the store, draw, wait for a key. One thread, so nothing can race."""

    run: Run
    writer: Callable[[], Store] | None
    author: str
    last: deque[str] = field(default_factory=lambda: deque(maxlen=5))

    def show(self) -> int:
        from rich.console import Console

        from ksearch.cli.watch_keys import Read
        from ksearch.cli.watch_pages import page, show

        self.view = _view(self.writer is None)
        self.ascii, self.colour = opt.plain(), opt.colour()  # asked now: Live puts another stdout in place
        self._catch_up()
        self.run.watchers.append(self._note)
        console = Console()
        while True:
            wish = self._until_a_wish(console)
            if not isinstance(wish, Read):
                break
            self.view.message = show(page(self.run, wish.node_id, log=wish.log, width=console.width))
        best = self.run.state.evaluations.get(self.run.state.best_id or "")
        from ksearch.cli.lines import times
        from ksearch.cli.watch_picture import standing

        print(f"run {self.run.id} {standing(self.run.state)}; best: {times(best.speedup) if best else 'none yet'}")
        return 0

    def _catch_up(self) -> None:
        """The last results before we came."""
        from ksearch.fold import apply
        from ksearch.state import State

        state = State()
        for event in self.run.log()[: self.run.seq]:
            state = apply(state, event)
            self._note(event, state)

    def _note(self, event: ev.Event, state: State) -> None:
        from ksearch.cli.display import SHOWN
        from ksearch.cli.lines import event_line

        if isinstance(event, SHOWN) and (text := event_line(event, state)):
            self.last.append(f"{time.strftime('%H:%M:%S', time.localtime(event.at))} {text}")
            self.view.last = tuple(self.last)

    def _until_a_wish(self, console: Console) -> Wish:
        """Draw until somebody wants to leave, or to read something. The terminal is its old self afterwards."""
        from rich.live import Live

        from ksearch.cli.watch_keys import raw_keys

        with raw_keys() as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
            looked = drawn = 0.0
            shown: tuple[object, ...] = ()
            while True:
                if time.monotonic() - looked >= LOOK_S:
                    self._look()
                    looked = time.monotonic()
                now = (self.run.seq, console.size, self.view.cursor, self.view.asking, self.view.message)
                if now != shown or time.monotonic() - drawn >= TICK_S:
                    live.update(self._drawing(console), refresh=True)
                    shown, drawn = now, time.monotonic()
                if not keyboard:
                    time.sleep(KEY_S)
                    continue
                wish = self._keys()
                if wish is not None:
                    return wish

    def _look(self) -> None:
        from ksearch.errors import StoreError

        try:
            self.run.refresh()
            self.view.problem = ""
        except StoreError as error:  # a share that is away comes back; damage stays and is shown
            self.view.problem = str(error)

    def _drawing(self, console: Console) -> Text:
        from rich.text import Text

        from ksearch.cli.watch_picture import picture

        size = console.size
        lines = picture(self.run.id, self.run.state, self.view, time.time(), size.width, size.height, ascii=self.ascii)
        text = Text(no_wrap=True, overflow="crop", end="")
        for i, (style, line) in enumerate(lines):
            text.append(("\n" if i else "") + line, style if self.colour or "reverse" in style else None)
        return text

    def _keys(self) -> Wish | None:
        """Carry out what the keys want here; hand on what needs the terminal."""
        from ksearch.cli.watch_keys import Quit, Say, press, wait

        keys = wait(KEY_S)
        if keys is None:  # the line is gone
            return Quit()
        for key in keys:
            wish = press(self.view, key, self.run.state)
            if isinstance(wish, Say):
                self._say(wish)
            elif wish is not None:
                return wish
        return None

    def _say(self, wish: Say) -> None:
        from ksearch.cli.lines import command_words
        from ksearch.errors import KSearchError
        from ksearch.run import Run

        assert self.writer is not None, "a viewer's keys never get here"
        try:
            with self.writer() as store:
                Run(store, self.run.id).command(wish.command, self.author)
        except KSearchError as error:
            self.view.message = f"refused: {error}"
        else:
            self.view.message = f"done: {command_words(wish.command)}"
            self._look()
