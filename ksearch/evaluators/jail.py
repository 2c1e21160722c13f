"""What a jailed process may do, applied from the inside in two steps: by its keeper, then by itself.

The ladder, each rung recorded by name: own session, limits, scrubbed environment, private folder, uid drop;
user, network, pid and mount name spaces; Landlock and seccomp. A rung that the machine refuses is left out and
its absence is part of every result.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksearch.evaluators import landlock, linux

COVERED = ("/root", "/home", "/tmp", "/var/tmp", "/dev/shm", "/run", "/mnt", "/srv", "/media")
PRIVATE = "/tmp"  # the one writable folder inside the mount name space
NAMESPACES = (
    ("net_ns", linux.CLONE_NEWNET),
    ("ipc_ns", linux.CLONE_NEWIPC),
    ("uts_ns", linux.CLONE_NEWUTS),
)


@dataclass(frozen=True, slots=True)
class JailSpec:
    """JSON-able. `skip` names rungs that are not to be climbed."""

    folder: str  # private folder on the host, owned by `uid`; for builds also where the result appears
    uid: int | None = None  # None: stay who we are
    processes: int = 1  # processes and threads
    build: bool = False  # may run the compiler
    compiles: bool = False  # a runner that may do so too: just-in-time compilation
    threads: bool = False
    memory_bytes: int = 4 << 30  # on top of what the process has mapped at the start
    file_bytes: int = 64 << 20
    cpu_s: int = 600
    cpus: tuple[int, ...] = ()
    visible: tuple[str, ...] = ()  # read-only paths that must stay reachable
    loopback: bool = False  # a network name space has one that is up
    device: str = "cpu"  # cuda: what a GPU's driver needs is let through
    skip: tuple[str, ...] = field(default_factory=tuple)


def from_dict(data: Mapping[str, Any]) -> JailSpec:
    """Inverse of `dataclasses.asdict`, after a trip through JSON."""
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return JailSpec(**given)


def enter_pid_namespace(spec: JailSpec) -> list[str]:
    """In the keeper's parent: the next child is process 1 of a new pid (and user) name space."""
    if "namespaces" in spec.skip:
        return []
    user = os.geteuid() != 0
    uid, gid = os.geteuid(), os.getegid()
    try:
        linux.unshare(linux.CLONE_NEWPID | (linux.CLONE_NEWUSER if user else 0))
    except OSError:
        return []
    if user:
        linux.prctl(linux.PR_SET_DUMPABLE, 1)  # or the three files below belong to root
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    return ["pid_ns", *(["user_ns"] if user else [])]


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def prepare(spec: JailSpec, pid_ns: bool) -> list[str]:
    """In the keeper: the other name spaces. Returns the rungs climbed."""
    climbed: list[str] = []
    with suppress(OSError):
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    if "namespaces" in spec.skip or not pid_ns:
        return climbed
    for name, flag in NAMESPACES:
        with suppress(OSError):
            linux.unshare(flag)
            climbed.append(name)
    if spec.loopback and "net_ns" in climbed:
        with suppress(OSError):
            linux.loopback_up()
    try:
        linux.unshare(linux.CLONE_NEWNS)
        _mounts(spec)
        climbed.append("mount_ns")
    except OSError as error:
        raise OSError(error.errno, f"the mount name space is half made: {error}") from error
    return climbed


def _mounts(spec: JailSpec) -> None:
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    keep = {}
    for path in spec.visible:
        if any(path == c or path.startswith(c + "/") for c in COVERED) and Path(path).exists():
            keep[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
    own = os.open(spec.folder, os.O_PATH | os.O_CLOEXEC)
    for path in COVERED:
        if Path(path).is_dir() and not Path(path).is_symlink():
            flags = linux.MS_NOSUID | linux.MS_NODEV
            mode, size = ("1777", spec.file_bytes) if path == PRIVATE else ("755", 1 << 20)
            linux.mount("tmpfs", path, "tmpfs", flags, f"size={size},mode={mode},nr_inodes=4096")
    for path, fd in keep.items():
        Path(path).mkdir(parents=True, exist_ok=True)
        linux.mount(f"/proc/self/fd/{fd}", path, None, linux.MS_BIND | linux.MS_REC)
        os.close(fd)
    if spec.build:
        Path(spec.folder).mkdir(parents=True, exist_ok=True)
        linux.mount(f"/proc/self/fd/{own}", spec.folder, None, linux.MS_BIND)
    os.close(own)
    with suppress(OSError):  # refused where the host hides parts of /proc: then the old one shows no pid of ours
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


def enter(spec: JailSpec, climbed: list[str]) -> None:
    """In the jailed process itself: limits, user, fences. Adds to `climbed`; there is no way back."""
    os.setsid()
    climbed.append("session")
    if spec.cpus:
        with suppress(OSError):
            os.sched_setaffinity(0, spec.cpus)
            climbed.append("pinned")
    private = PRIVATE if "mount_ns" in climbed and not spec.build else spec.folder
    _limits(spec)
    climbed.append("limits")
    if spec.uid is not None:
        os.setgroups([])
        os.setresgid(spec.uid, spec.uid, spec.uid)
        os.setresuid(spec.uid, spec.uid, spec.uid)
        climbed.append("uid")
    os.umask(0o077)
    os.chdir(private)
    os.environ["TMPDIR"] = os.environ["HOME"] = private
    with suppress(OSError):
        linux.prctl(linux.PR_SET_PDEATHSIG, 9)
    _attempt(climbed, "no_capabilities", linux.drop_capabilities)
    _attempt(climbed, "no_new_privs", lambda: linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1))
    if "landlock" not in spec.skip:
        _attempt(climbed, "landlock", lambda: landlock.restrict(spec.visible, [private, *_driver(spec)]))
    if "seccomp" not in spec.skip:
        processes, sockets = spec.build or spec.compiles, spec.device == "cuda"
        _attempt(
            climbed, "seccomp",
            lambda: linux.seccomp(threads=spec.threads, processes=processes, local_sockets=sockets),
        )  # fmt: skip


def _driver(spec: JailSpec) -> list[str]:
    """What the NVIDIA driver's library opens for writing: its device files, and its own threads' names."""
    if spec.device != "cuda":
        return []
    return [*(str(p) for p in Path("/dev").glob("nvidia*")), f"/proc/{os.getpid()}"]


def _attempt(climbed: list[str], name: str, step: Callable[[], object]) -> None:
    with suppress(OSError):
        step()
        climbed.append(name)


def _limits(spec: JailSpec) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, spec.file_bytes),
        (resource.RLIMIT_NOFILE, 4096),  # Python keeps one for every buffer set that it maps
        (resource.RLIMIT_CPU, spec.cpu_s),
        (resource.RLIMIT_MEMLOCK, 1 << 20),
    ]
    if "limit_memory" not in spec.skip:
        # A GPU's driver reserves address space for all memory of the machine and the GPU: there only what is
        # writable and private counts.
        kind = resource.RLIMIT_DATA if spec.device == "cuda" else resource.RLIMIT_AS
        wanted.append((kind, pages * os.sysconf("SC_PAGE_SIZE") + spec.memory_bytes))
    if spec.uid is not None and "limit_processes" not in spec.skip:
        # Counted per user: only a user of its own can be held to so few.
        wanted.append((resource.RLIMIT_NPROC, spec.processes))
    for kind, value in wanted:
        _, most = resource.getrlimit(kind)
        limit = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (limit, limit))


def level(climbed: Sequence[str]) -> str:
    """The ladder in one word: what a reader of a result has to know about the fence."""
    if "mount_ns" in climbed and "pid_ns" in climbed:
        return "namespaces"
    if "landlock" in climbed and "seccomp" in climbed:
        return "landlock"
    return "limits"
