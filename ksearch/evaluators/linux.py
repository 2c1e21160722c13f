"""The few system calls that Python does not wrap: prctl, unshare, mount, capset, seccomp. Linux only."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import socket
import struct

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x0002_0000, 0x0400_0000, 0x0800_0000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x1000_0000, 0x2000_0000, 0x4000_0000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND = 1, 2, 4, 8, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1033, 1, 2, 4, 8

_LIBC = ctypes.CDLL(None, use_errno=True)

# name -> (x86_64, aarch64); None: that architecture has no such call
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435),
    "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "kexec_load": (246, 104),
    "init_module": (175, 105), "finit_module": (313, 273), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "socket": (41, 198),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "open_by_handle_at": (304, 265), "personality": (135, 92), "reboot": (169, 142),
    "sched_setaffinity": (203, 122), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
}  # fmt: skip
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_SIGNALS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")  # allowed towards oneself
_PROCESSES = ("fork", "vfork", "execve", "execveat")
_ALLOW, _ERRNO, _EPERM, _EAGAIN, _ENOSYS = 0x7FFF0000, 0x00050000, 1, 11, 38
_CLONE_THREAD = 0x0001_0000
_AF_UNIX = 1


def _call(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def prctl(option: int, value: int = 0) -> None:
    zero = ctypes.c_ulong(0)
    _call(_LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero), f"prctl {option}")


def unshare(flags: int) -> None:
    _call(_LIBC.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    name = kind.encode() if kind else None
    given = data.encode() if data else None
    _call(_LIBC.mount(source.encode(), target.encode(), name, ctypes.c_ulong(flags), given), f"mount {target}")


def loopback_up() -> None:
    """Switch on the loopback of a network name space of our own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        fcntl.ioctl(handle, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING


def drop_capabilities() -> None:
    """Empty all three sets of this process (version 3 header)."""
    header, empty = struct.pack("<Ii", 0x20080522, 0), bytes(24)
    _call(_LIBC.capset(header, empty), "capset")


def syscall(number: int, *arguments: object) -> int:
    return _call(_LIBC.syscall(ctypes.c_long(number), *arguments), f"system call {number}")


def hide() -> None:
    """Close /proc/PID/mem, maps and descriptors of this process to its own user."""
    prctl(PR_SET_DUMPABLE, 0)


def _statement(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def _filter(threads: bool, processes: bool, local_sockets: bool) -> bytes:
    column, arch = _ARCHITECTURES[platform.machine()]
    load, equal, at_least, set_, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    deny = _statement(answer, _ERRNO | _EPERM)
    code = [_statement(load, 4), _statement(equal, arch, 1, 0), deny, _statement(load, 0)]
    code += [_statement(at_least, 0x4000_0000, 0, 1), deny]  # the x32 calls
    for name, numbers in _NUMBERS.items():
        number = numbers[column]
        if number is None or (processes and name in (*_PROCESSES, "clone", "clone3", *_SIGNALS, "tkill")):
            continue
        if name in _SIGNALS:
            own = [_statement(load, 16), _statement(equal, os.getpid(), 1, 0), deny, _statement(answer, _ALLOW)]
            code += [_statement(equal, number, 0, len(own)), *own]
        elif name == "socket" and local_sockets:
            local = [_statement(load, 16), _statement(equal, _AF_UNIX, 0, 1), _statement(answer, _ALLOW), deny]
            code += [_statement(equal, number, 0, len(local)), *local]
        elif name == "clone" and threads:
            thread = [_statement(load, 16), _statement(set_, _CLONE_THREAD, 1, 0)]
            thread += [_statement(answer, _ERRNO | _EAGAIN), _statement(answer, _ALLOW)]
            code += [_statement(equal, number, 0, len(thread)), *thread]
        else:
            again = name in (*_PROCESSES, "clone")
            error = _ENOSYS if name == "clone3" else _EAGAIN if again else _EPERM
            code += [_statement(equal, number, 0, 1), _statement(answer, _ERRNO | error)]
    code.append(_statement(answer, _ALLOW))
    return b"".join(code)


def seccomp(*, threads: bool, processes: bool, local_sockets: bool = False) -> None:
    """Refuse new processes (and threads, unless `threads`), signals to others, sockets and the like.

    `local_sockets`: those of this machine are allowed, for a GPU's driver.

    Raises:
        OSError: the kernel or the container does not allow filters.
    """
    if platform.machine() not in _ARCHITECTURES:
        raise OSError(_ENOSYS, f"no filter for {platform.machine()}")
    code = _filter(threads, processes, local_sockets)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(program, len(program))
    zero = ctypes.c_ulong(0)
    mode = ctypes.c_ulong(2)
    address = ctypes.c_ulong(ctypes.addressof(holder))
    _call(_LIBC.prctl(PR_SET_SECCOMP, mode, address, zero, zero), "seccomp")


def sealed(data: bytes) -> int:
    """A memfd with these bytes that nobody can change; the caller closes it."""
    fd = os.memfd_create("program", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
