"""Keys: from bytes to names, from names to what is wanted. The terminal is put back whatever happens."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ksearch import events as ev
from ksearch.cli.watch_picture import View, cursor_at, order
from ksearch.state import State

ESCAPE = "escape"
_SEQUENCES = {
    "\x1b[A": "k", "\x1b[B": "j", "\x1bOA": "k", "\x1bOB": "j", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "g", "\x1b[F": "G", "\x1b[1~": "g", "\x1b[4~": "G", "\x1bOH": "g", "\x1bOF": "G",
}  # fmt: skip
_NAMES = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": ESCAPE}
_STEPS = {"j": 1, "k": -1, "page down": 10, "page up": -10, "g": -(10**9), "G": 10**9}
MAX_TYPED = 20  # characters of a node's id


@dataclass(frozen=True)
class Quit:
    pass


@dataclass(frozen=True)
class Read:
    """Show a text about a node in the pager: its diff against the parent's program, or its log."""

    node_id: str
    log: bool = False


@dataclass(frozen=True)
class Say:
    command: ev.Command


Wish = Quit | Read | Say


def names(data: bytes) -> list[str]:
    """The keys in what a terminal sent at once: characters, and names for those that have none."""
    text, keys = data.decode("utf-8", "ignore"), []
    while text:
        known = next((s for s in _SEQUENCES if text.startswith(s)), None)
        if known:
            keys.append(_SEQUENCES[known])
            text = text[len(known) :]
        elif text[0] == "\x1b" and text[1:2] in ("[", "O"):  # another special key: not of use here
            end = next((i for i, c in enumerate(text[2:], 2) if "@" <= c <= "~"), len(text))
            text = text[end + 1 :]
        else:
            keys.append(_NAMES.get(text[0], text[0]))
            text = text[1:]
    return keys


def press(view: View, key: str, state: State) -> Wish | None:
    """What a key wants; moves the cursor and fills in the question itself."""
    if view.asking is not None:
        return _answer(view, key, state)
    view.message = ""
    rows = order(state)
    at = cursor_at(view, rows)
    if key in _STEPS:
        view.cursor = rows[max(0, min(len(rows) - 1, at + _STEPS[key]))][1].id
    elif key == ESCAPE:
        view.cursor = None  # back to where work is
    elif key in ("q", "Q"):
        return Quit()
    elif key in ("enter", "l", "d"):
        return Read(rows[at][1].id, key == "l")
    elif key in ("p", "x") and view.viewing:
        view.message = "this run is open for viewing only"
    elif key == "p":
        return Say(ev.Resume() if state.paused or state.stopping else ev.Pause("asked at the terminal"))
    elif key == "x":
        view.asking = "" if rows[at][1].parent_id is None else rows[at][1].id
    return None


def _answer(view: View, key: str, state: State) -> Wish | None:
    typed = view.asking or ""
    if key == "enter":
        view.asking = None
        if typed in state.tree:
            return Say(ev.PruneNode(typed, "pruned at the terminal"))
        view.message = f"there is no node {typed!r}: nothing was pruned" if typed else "nothing was pruned"
    elif key == ESCAPE:
        view.asking, view.message = None, "nothing was pruned"
    elif key == "backspace":
        view.asking = typed[:-1]
    elif len(key) == 1 and key.isalnum() and key.isascii():
        view.asking = (typed + key)[:MAX_TYPED]
    return None


@contextmanager
def raw_keys() -> Iterator[bool]:
    """Keys come one by one and are not shown while this lasts; False where there is no keyboard. Ctrl-C stays."""
    if not sys.stdin.isatty():
        yield False
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield True
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def wait(seconds: float) -> list[str] | None:
    """Keys pressed within `seconds`, maybe none. None: the keyboard is gone."""
    ready, _, _ = select.select([sys.stdin.fileno()], [], [], seconds)
    if not ready:
        return []
    data = os.read(sys.stdin.fileno(), 1024)
    return names(data) if data else None
