"""One message, one packet: JSON over a SOCK_SEQPACKET pair, descriptors beside it. Nothing is ever unpickled."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]
MAX_BYTES = 160_000  # of trusted messages; below the default send buffer
MAX_REPLY_BYTES = 64_000  # of a runner's
MAX_FDS = 200


class Closed(Exception):
    """The other end is gone."""


class Malformed(Exception):
    """What came is no message: too long, not JSON, not an object."""


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(sock: socket.socket, message: Message, fds: Sequence[int] = ()) -> None:
    """Send one message.

    Raises:
        Closed: the other end is gone.
    """
    data = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
    try:
        if fds:
            socket.send_fds(sock, [data], list(fds))
        else:
            sock.send(data)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Closed(str(error)) from error


def recv(sock: socket.socket, limit: int = MAX_BYTES) -> tuple[Message, list[int]]:
    """Wait for one message from a trusted process; the caller owns the descriptors.

    Raises:
        Closed: the other end is gone.
        Malformed: no message of at most `limit` bytes.
    """
    try:
        data, fds, _, _ = socket.recv_fds(sock, limit + 1, MAX_FDS)
    except ConnectionResetError as error:
        raise Closed(str(error)) from error
    try:
        return _decode(data, limit), fds
    except (Closed, Malformed):
        for fd in fds:
            os.close(fd)
        raise


def recv_untrusted(sock: socket.socket, limit: int = MAX_REPLY_BYTES) -> Message:
    """Wait for one message from a runner. Descriptors it sends are dropped by the kernel.

    Raises:
        Closed: the other end is gone.
        Malformed: no message of at most `limit` bytes.
    """
    try:
        return _decode(sock.recv(limit + 1), limit)
    except ConnectionResetError as error:
        raise Closed(str(error)) from error


def _decode(data: bytes, limit: int) -> Message:
    if not data:
        raise Closed("end of stream")
    if len(data) > limit:
        raise Malformed(f"a message of more than {limit} bytes")
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise Malformed(f"not an object but {type(message).__name__}")
    return message
