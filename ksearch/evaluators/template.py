"""The warm template: one process with NumPy imported that forks a keeper and a jailed child per request.

    coordinator --spawn--> template --fork--> keeper (process 1 of its pid name space) --fork--> runner or compiler

The keeper runs no foreign code. It reports how its child ended, stops and continues it, and takes everything
down with itself. When the coordinator goes away, every descriptor closes, and so every process here ends.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from ksearch.evaluators import jail, linux, runner, wire

Serve = Callable[[int], None]


def serve(fd: int, run: Serve = runner.serve) -> None:
    """The template's whole life: take requests from the coordinator until it goes away. `run`: a runner's life."""
    linux.hide()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers report to the coordinator, not to us
    with suppress(OSError):
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)  # so that no keeper becomes a zombie elsewhere
    sock = socket.socket(fileno=fd)
    while True:
        try:
            request, fds = wire.recv(sock)
        except wire.Closed:
            return
        if os.fork() == 0:
            sock.detach()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _first_child(request, fds, run)
        for other in fds:
            os.close(other)


def _first_child(request: wire.Message, fds: list[int], run: Serve) -> NoReturn:
    """Opens the pid name space; its child is the keeper. Descriptors: control, keeper's own, output."""
    try:
        if "closed_descriptors" not in request["skip"]:
            close_others({0, 1, 2, *fds})
        os.setsid()
        os.umask(0o022)
        spec = jail.from_dict(request["jail"])
        climbed = jail.enter_pid_namespace(spec)
        if "pid_ns" not in climbed or os.fork() == 0:
            _keep(spec, climbed, request, fds, run)
    except BaseException as error:  # noqa: BLE001  # boundary: a broken keeper must be heard, then end
        with suppress(wire.Closed, OSError):
            wire.send(socket.socket(fileno=fds[1]), {"broken": f"{type(error).__name__}: {error}"})
        os._exit(1)
    os._exit(0)


def close_others(keep: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in keep:
            with suppress(OSError):
                os.close(int(name))


def _keep(spec: jail.JailSpec, climbed: list[str], request: wire.Message, fds: list[int], run: Serve) -> NoReturn:
    control, own, output = fds[:3]
    with suppress(OSError):
        linux.hide()
    climbed += jail.prepare(spec, "pid_ns" in climbed)
    report, told = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        os.close(report)
        _child(spec, climbed, request, (control, output, told), run)
    os.close(told)
    os.close(control)
    os.close(output)
    sock = socket.socket(fileno=own)
    rungs = os.read(report, 4096).decode()  # before any foreign code has run; empty: the child is dead
    os.close(report)
    wire.send(sock, {"rungs": rungs.split(",") if rungs else []})
    ended = _watch(sock, child)
    _sweep(spec, "pid_ns" in climbed)
    with suppress(wire.Closed):
        wire.send(sock, ended)
    os._exit(0)


def _child(
    spec: jail.JailSpec, climbed: list[str], request: wire.Message, fds: tuple[int, int, int], run: Serve
) -> NoReturn:
    """Becomes the runner or the compiler. `fds`: control, output, and a pipe that tells the keeper the rungs."""
    control, output, told = fds
    null = os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, target)
    jail.enter(spec, climbed)
    os.write(told, ",".join(climbed).encode())
    argv = request.get("argv")
    keep = {0, 1, 2} if argv else {0, 1, 2, control}
    if "closed_descriptors" not in request["skip"]:
        close_others(keep)
    if argv:
        path = os.environ.get("PATH", os.defpath)
        scratch = {"PATH": path, "LANG": "C", "TMPDIR": spec.folder, "HOME": spec.folder}
        os.execvpe(argv[0], argv, scratch)
    run(control)
    os._exit(0)


def _watch(sock: socket.socket, child: int) -> wire.Message:
    """Until the child has ended, or the coordinator says so or goes away. Returns how it ended."""
    wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    killed = False
    while True:
        pid, status, usage = os.wait4(-1, os.WNOHANG)  # also reaps what the child left behind
        if pid == child:
            return _ending(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, killed)
        if pid:
            continue
        ready, _, _ = select.select([sock.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
        if sock.fileno() in ready:
            killed |= _obey(sock, child)


def _obey(sock: socket.socket, child: int) -> bool:
    """Follow one order; True if the child was killed."""
    try:
        order = str(wire.recv(sock)[0]["do"])
    except (wire.Closed, wire.Malformed):
        order = "kill"
    if order == "stop":
        _signal_all(child, signal.SIGSTOP)
        wire.send(sock, {"stopped": True, "cpu_ns": _cpu_ns(child)})
    elif order == "continue":
        used = _cpu_ns(child)
        _signal_all(child, signal.SIGCONT)
        wire.send(sock, {"continued": True, "cpu_ns": used})
    else:
        _signal_all(child, signal.SIGKILL)
    return order == "kill"


def _cpu_ns(pid: int) -> int:
    """Processor time of all threads of the process until now, as the kernel counts it; -1: unknown."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)  # the clock of another process: clock_getcpuclockid(3)
    except OSError:
        return -1


def _signal_all(child: int, number: int) -> None:
    """The child and, where we are process 1, everything else in here."""
    with suppress(ProcessLookupError):
        if os.getpid() == 1:
            os.kill(-1, number)
        else:
            os.killpg(child, number)


def _ending(status: int, cpu_s: float, peak_kb: int, killed: bool) -> wire.Message:
    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    return {"exit": code, "signal": by, "cpu_s": cpu_s, "peak_kb": peak_kb, "killed": killed}


def _sweep(spec: jail.JailSpec, pid_ns: bool) -> None:
    """Nothing that the child started survives it."""
    if pid_ns:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    elif spec.uid is not None:
        _kill_user(spec.uid)
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if not pid_ns and spec.uid is None:
            _kill_children()
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.002)
        except ChildProcessError:
            return


def _kill_user(uid: int) -> None:
    if (pid := os.fork()) == 0:
        os.setresuid(uid, uid, uid)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL)
        os._exit(0)
    os.waitpid(pid, 0)


def _kill_children() -> None:
    """As subreaper we adopt whatever outlives its parent, so children are all there is, in the end."""
    me = os.getpid()
    try:
        text = open(f"/proc/{me}/task/{me}/children").read()  # noqa: PTH123, SIM115
    except OSError:
        return
    for pid in text.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def main() -> None:
    serve(int(sys.argv[1]))
