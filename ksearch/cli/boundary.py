"""The one place where an error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import typer

from ksearch import errors

# The code of an error is that of its nearest class here. 0: done. 1: done, and the answer is no (a reply that was
# recorded but refused, nothing to hand out).
CODES: dict[type[BaseException], int] = {
    errors.BadInput: 2,
    errors.TaskError: 2,
    errors.CodecError: 2,
    errors.StoreError: 3,
    errors.KSearchError: 4,  # the run or the request: InvalidReply, InvalidCommand, InvalidEdit, PromptError
    errors.ModelSetupError: 5,
    errors.Unavailable: 5,
    errors.EvaluatorError: 6,
}
INTERRUPTED = 130
UNEXPECTED = 70
PIPE_CLOSED = 141


def exit_code(error: errors.KSearchError) -> int:
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)


def say(text: str) -> None:
    """A remark for people: never on stdout, which may be read by a program. Where both go to one place, what was
    printed before it stands before it."""
    with suppress(BrokenPipeError):  # the reader of stdout has gone; the remark may still be seen
        sys.stdout.flush()
    print(text, file=sys.stderr)


def guarded(command: Callable[[], object]) -> int:
    """Run a command line and return its exit code. Nothing but messages reaches the user."""
    try:
        code = command()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except typer.Exit as done:
        return done.exit_code
    except errors.KSearchError as error:
        say(f"error: {error}")
        return exit_code(error)
    except (KeyboardInterrupt, typer.Abort):
        say("stopped. `ksearch resume` goes on with an unfinished run")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of a pipe has gone (`| head`); typer makes a SystemExit of it. Nobody is left to tell: keep
        # Python from flushing into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001  # the outer boundary: a person gets one line, a file the rest
        return _usage(error) or _unexpected(error)


def _usage(error: Exception) -> int:
    """A mistake in the command line itself, as typer reports it; 0 if it is something else."""
    code, message = getattr(error, "exit_code", None), getattr(error, "format_message", None)
    if not isinstance(code, int) or message is None:
        return 0
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "ksearch")
    say(f"error: {message()}\nSee `{path} --help`.")
    return code


def _unexpected(error: Exception) -> int:
    text = "".join(traceback.format_exception(error))
    if os.environ.get("KSEARCH_DEBUG"):
        say(text)
        return UNEXPECTED
    try:
        with tempfile.NamedTemporaryFile("w", prefix="ksearch-error-", suffix=".txt", delete=False) as file:
            file.write(text)
        where = f"The details are in {Path(file.name)}"
    except OSError:
        where = "Set KSEARCH_DEBUG=1 to see the details"
    say(f"error: something unexpected happened: {type(error).__name__}: {error}. {where}: please report it")
    return UNEXPECTED
