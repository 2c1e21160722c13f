"""`command:CMD`: any program as a model. Prompt on its standard input, reply on its standard output.

It runs in an empty folder that is removed afterwards, with a scrubbed environment, as its own process group, and is
killed as a whole when its time or output limit is reached, or when it has left children behind. The command lines of
known coding agents (`command:claude`) are called as they want to be: see `presets`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from ksearch.errors import BadAnswer, ModelSetupError, ModelTimeout, ModelUnavailable
from ksearch.models.base import Answer, Call
from ksearch.models.classify import clean, message_of, text_error
from ksearch.models.presets import PRESETS, Preset

MAX_OUTPUT_BYTES = 16_000_000
STDERR_TAIL_BYTES = 4_000
# What a command-line tool needs to find itself, its settings and its log-in, and to speak to its server. No keys.
KEPT_VARIABLES = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "SSL_CERT_FILE"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "SSL_CERT_DIR"),
        *("REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
        *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    )
)

ReadOutput = Callable[[bytes, Call], Answer]


def plain_text(output: bytes, call: Call) -> Answer:  # noqa: ARG001
    """The output is the reply. How it ended and what it cost is not known."""
    return Answer(output.decode("utf-8", "surrogateescape"), output, None, "command")


def scrubbed(environment: Mapping[str, str], also: Sequence[str]) -> dict[str, str]:
    """The variables that a command gets: the list above, LC_*, and those named by the user."""
    kept = KEPT_VARIABLES | set(also)
    return {key: value for key, value in environment.items() if key in kept or key.startswith("LC_")}


def _split(command: str) -> tuple[list[str], list[str]]:
    """The command line in words, and the variables that `pass=NAME` before it names."""
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ModelSetupError(f"command:{command}: {error}") from None
    passed = list(itertools.takewhile(lambda word: word.startswith("pass="), argv))
    argv = argv[len(passed) :]
    if not argv:
        raise ModelSetupError("command: names no program. Write command:PROGRAM ARGUMENTS")
    return argv, [word.removeprefix("pass=") for word in passed]


def tells_usd(command: str) -> bool:
    """Whether a command reports what its replies have cost.

    Raises:
        ModelSetupError: it is no command line.
    """
    preset = PRESETS.get(_split(command)[0][0])
    return preset is not None and preset.tells_usd


class CommandModel:
    """A program on this machine as a model.

    Args:
        command: the command line, split as a shell would; no shell is started. Words `pass=VARIABLE` before it name
            further variables that the program gets. The bare name of a known tool stands for its preset.
        pass_env: further variables it gets (a key that it needs, named by the user).
        read_output: how an answer is read from what it printed. None: as its preset does, else as plain text.
    """

    context_tokens: int | None = None

    def __init__(self, command: str, pass_env: Sequence[str] = (), read_output: ReadOutput | None = None) -> None:
        argv, passed = _split(command)
        found = shutil.which(argv[0])
        if found is None:
            raise ModelSetupError(f"command:{command}: no program {argv[0]!r} on PATH")
        self.name = f"command:{command}"
        self.preset: Preset | None = PRESETS.get(argv[0]) if read_output is None else None
        self.argv = [str(Path(found).absolute()), *argv[1:]]
        self.pass_env = (*pass_env, *passed, *(self.preset.kept if self.preset else ()))
        self.read_output = read_output or plain_text

    def complete(self, call: Call) -> Answer:
        began = time.monotonic()
        # Files, not pipes: a grandchild that keeps a pipe open cannot hold us, and nothing fills up memory.
        with (
            tempfile.TemporaryDirectory(prefix="ksearch-model-", ignore_cleanup_errors=True) as folder,
            tempfile.TemporaryDirectory(prefix="ksearch-model-", ignore_cleanup_errors=True) as files,
            tempfile.TemporaryFile() as prompt,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            prompt.write(self._prompt(call).encode("utf-8", "replace"))
            prompt.seek(0)
            argv, environment = self._argv(call, Path(files)), self._environment(Path(files)) | {"PWD": folder}
            code = self._run(argv, folder, environment, (prompt, out, err), began + call.timeout_s)
            out.seek(0)
            output, tail = out.read(MAX_OUTPUT_BYTES + 1), _tail(err)
            flooded = _size(out) + _size(err) > MAX_OUTPUT_BYTES
            self._check(code, output, tail, "" if flooded else f"within {call.timeout_s:g} s")
            preset = self.preset
            answer = preset.read(output, call, Path(files)) if preset else self.read_output(output, call)
        model = self.name if answer.model in ("command", preset and preset.name) else answer.model
        return replace(answer, seconds=time.monotonic() - began, model=model)

    def _prompt(self, call: Call) -> str:
        return call.user_text if self.preset and self.preset.system else call.text

    def _argv(self, call: Call, files: Path) -> list[str]:
        """The user's own arguments come after the preset's: where both say something, theirs counts."""
        if self.preset is None:
            return self.argv
        return [self.argv[0], *self.preset.arguments(call, files), *self.argv[1:], *self.preset.last]

    def _environment(self, files: Path) -> dict[str, str]:
        found, preset = scrubbed(os.environ, self.pass_env), self.preset
        for name, text in preset.files.items() if preset else ():
            (files / name).write_text(text, encoding="utf-8")
        own = preset.environment.items() if preset else ()
        return found | {name: value.replace("{files}", str(files)) for name, value in own}

    def _run(
        self,
        argv: list[str],
        folder: str,
        environment: Mapping[str, str],
        files: tuple[IO[bytes], IO[bytes], IO[bytes]],
        deadline: float,
    ) -> int | None:
        """Exit code, or None when it was killed for its time or output."""
        try:
            child = subprocess.Popen(
                argv,
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelUnavailable(f"{self.name} could not be started: {error.strerror}") from None
        ended = False
        try:
            while time.monotonic() < deadline and _size(files[1]) + _size(files[2]) <= MAX_OUTPUT_BYTES:
                # Not reaped yet, so that its number still belongs to its group when the group is killed below.
                if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    ended = True
                    break
                time.sleep(0.02)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)  # the child, and whatever it left behind
            child.wait()
        return child.returncode if ended else None

    def _check(self, code: int | None, output: bytes, tail: str, within: str) -> None:
        """Raise what the end of the program stands for; `within` is empty where it was its output that was too much."""
        last_words = f" Its last words: {clean(tail[-1000:])}" if tail.strip() else ""
        if not within:
            message = f"{self.name} printed more than {MAX_OUTPUT_BYTES:,} bytes and was stopped.{last_words}"
            raise BadAnswer(message, maybe_billed=True, raw=output[:10_000])
        if code is None:
            message = f"{self.name} gave no whole reply {within} and was stopped.{last_words}"
            raise ModelTimeout(message, maybe_billed=True, raw=output)
        if code != 0:
            how = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
            known = (self.preset.said(output) or self.preset.said(tail.encode())) if self.preset else ""
            said = known or (tail if tail.strip() else output[-STDERR_TAIL_BYTES:].decode("utf-8", "replace"))
            raise text_error(f"{self.name} {how}", message_of(said[-1000:]), output)


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, _size(file) - STDERR_TAIL_BYTES))
    return file.read().decode("utf-8", "replace")
