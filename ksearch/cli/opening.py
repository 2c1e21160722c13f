"""From `--store` and RUN to an open run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ksearch.cli.boundary import say
from ksearch.errors import BadInput, StoreError, UnknownRun

if TYPE_CHECKING:
    from ksearch.run import Run
    from ksearch.store import RunInfo, Store


def store_place(flag: str | None) -> str:
    """Flag, else KSEARCH_STORE, else the settings file, else the user's data folder."""
    if given := flag or os.environ.get("KSEARCH_STORE"):
        return given
    return _place_in_file() or str(_data_home() / "ksearch" / "runs.db")


def _place_in_file() -> str | None:
    named = Path(os.environ.get("KSEARCH_CONFIG") or "ksearch.toml")
    if not named.is_file():
        return None
    from ksearch.config import read_file

    place = read_file(named).get("store")
    if place is not None and not isinstance(place, str):
        raise BadInput(f"{named}: store = {place!r} cannot be used: it must be a text, a path or URL")
    return place


def _data_home() -> Path:
    given = os.environ.get("XDG_DATA_HOME", "")
    return Path(given) if given.startswith("/") else Path("~/.local/share").expanduser()


@contextmanager
def opened(flag: str | None, *, readonly: bool = False) -> Iterator[Store]:
    """The store, open; its notes go to stderr. A failure in the default place names the way out of it."""
    from ksearch.store import open_store

    place = store_place(flag)
    try:
        store = open_store(place, readonly=readonly)
    except StoreError as error:
        if flag or os.environ.get("KSEARCH_STORE"):
            raise
        raise type(error)(f"{error} `--store PATH`, or KSEARCH_STORE, says where.") from error
    with store:
        for note in store.notes:
            say(f"note: {note}")
        yield store


@contextmanager
def opened_run(flag: str | None, name: str | None, *, readonly: bool = False) -> Iterator[Run]:
    """The run by name, the latest unfinished one for None, or the one in an exported .jsonl file."""
    if name and name.endswith(".jsonl"):
        flag, name, readonly = name, None, True
        if not Path(flag).is_file():
            raise BadInput(f"{flag}: there is no such file. Name a run, or an exported run's .jsonl file")
    with opened(flag, readonly=readonly) as store:
        yield find_run(store, name, viewing=readonly)


def find_run(store: Store, name: str | None, *, viewing: bool = False) -> Run:
    """Raises:
    UnknownRun: there is none of that name, or none at all.
    """
    from ksearch.run import Run

    if name:
        return started(Run(store, name))
    infos = sorted((i for i in store.runs() if i.seq), key=lambda i: (i.updated_at, i.created_at), reverse=True)
    for info in infos:
        run = Run(store, info.id)
        if not run.state.ended:
            _taken(run, infos, "the latest unfinished one")
            return run
    if infos and viewing:
        run = Run(store, infos[0].id)
        _taken(run, infos, "the latest one")
        return run
    if infos:
        raise UnknownRun(f"{store.name} holds ended runs only. Name one: `ksearch runs` lists them")
    raise UnknownRun(f"{store.name} holds no run yet: `ksearch new` or `ksearch run` begins one")


def _taken(run: Run, infos: list[RunInfo], why: str) -> None:
    if len(infos) > 1:
        say(f"run {run.id} ({why})")


def started(run: Run) -> Run:
    if run.seq == 0:
        raise UnknownRun(f"run {run.id} was named but never begun (interrupted): begin it again by the same name")
    return run


def whole_program_id(run: Run, prefix: str) -> str:
    """The measured program whose id begins with `prefix`: ids are shown shortened."""
    found = [id for id in run.state.evaluations if id.startswith(prefix)]
    if len(found) > 1:
        raise BadInput(f"{len(found)} programs of run {run.id} begin with {prefix!r}: give more of the id")
    if not found:
        raise BadInput(
            f"no measured program of run {run.id} begins with {prefix!r}: `ksearch show {run.id}` lists them"
        )
    return found[0]
