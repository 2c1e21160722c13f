"""Options that several commands share."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ksearch.errors import BadInput

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH|URL",
        help="Where runs are kept: a file, or postgresql://... Default: KSEARCH_STORE, else `store` in the settings "
        "file, else ksearch/runs.db in the user's data folder.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Settings file. Default: ksearch.toml in the current folder."),
]
AuthorOption = Annotated[
    str | None, typer.Option("--author", metavar="NAME", help="Who says it. Default: your login name.")
]
RunArgument = Annotated[
    str | None, typer.Argument(metavar="[RUN]", show_default=False, help="Default: the latest unfinished run.")
]


def login_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in some containers
        return "somebody"


def print_json(value: Any) -> None:
    """One line of strict JSON."""
    print(json.dumps(value, allow_nan=False, ensure_ascii=False))


def read_input(name: str) -> bytes:
    """The bytes of a file, or of stdin for "-"."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}. Name a file, or - for standard input") from error


def write_output(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}. Name another place") from error


def width() -> int:
    """Columns to write in; 100 in a pipe."""
    return shutil.get_terminal_size((100, 24)).columns


def colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def plain() -> bool:
    """Whether stdout takes ASCII only."""
    return not (sys.stdout.encoding or "").lower().startswith("utf")
