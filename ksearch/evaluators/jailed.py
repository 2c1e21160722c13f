"""The coordinator's handle on a jailed process, which is never trusted."""

from __future__ import annotations

import os
import secrets
import select
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from ksearch.evaluators import wire
from ksearch.evaluators.jail import JailSpec
from ksearch.evaluators.processes import Broken, Cheated, Ended, Flooded, Overdue, Service

OUTPUT_CAP_BYTES = 1 << 20
OUTPUT_KEPT = 4000


class Jailed:
    """One jailed process behind its keeper: a runner when `argv` is empty, else that command."""

    def __init__(
        self, template: Service, spec: JailSpec, *, argv: Sequence[str] = (), skip: Sequence[str] = (),
        output_cap_bytes: int | None = OUTPUT_CAP_BYTES, reply_cap_bytes: int | None = wire.MAX_REPLY_BYTES,
        tokens: bool = True,
    ) -> None:  # fmt: skip
        self.control, theirs = wire.pair()
        self.keeper, keepers = wire.pair()
        self.output, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(write, True)
        self.printed, self.printed_bytes = b"", 0
        self.output_cap, self.reply_cap, self.tokens = output_cap_bytes, reply_cap_bytes, tokens
        self.ending: wire.Message | None = None
        self.stopped = False
        self.turn_cpu_ns: int | None = None  # processor time between the last `resume` and `stop`, by the kernel
        self._cpu_ns = -1
        order: wire.Message = {"jail": asdict(spec), "skip": list(skip)}
        if argv:
            order["argv"] = list(argv)
        with theirs, keepers:
            template.send(order, [theirs.fileno(), keepers.fileno(), write])
        os.close(write)
        self.poll = select.poll()
        for fd in (self.control.fileno(), self.keeper.fileno(), self.output):
            self.poll.register(fd, select.POLLIN)
        if argv:  # nobody answers there
            self.poll.unregister(self.control.fileno())
        self.rungs: list[str] = self._from_keeper(20.0)["rungs"]

    @property
    def log(self) -> str:
        return self.printed.decode("utf-8", "replace")

    def ask(self, order: wire.Message, fds: Sequence[int] = (), timeout_s: float = 20.0) -> wire.Message:
        """One order, one answer.

        Raises:
            Ended, Overdue, Cheated, Flooded: what a program may do instead of answering.
        """
        self._nothing_waits()
        token = secrets.token_hex(8)
        order["token"] = token
        try:
            wire.send(self.control, order, fds)
        except (wire.Closed, OSError):
            raise Ended(self._await_ending()) from None
        answer = self._answer(time.monotonic() + timeout_s, timeout_s)
        if self.tokens and answer.pop("token", None) != token:
            self.kill()
            raise Cheated("an answer with the wrong token on the runner's descriptor")
        return answer

    def _nothing_waits(self) -> None:
        if not self.tokens or self.ending is not None:
            return
        if any(fd == self.control.fileno() for fd, event in self.poll.poll(0) if event & select.POLLIN):
            try:
                wire.recv_untrusted(self.control)
            except wire.Closed:
                raise Ended(self._await_ending()) from None
            except wire.Malformed:
                pass
            self.kill()
            raise Cheated("an answer that nobody had asked for on the runner's descriptor")

    def _answer(self, deadline: float, limit_s: float) -> wire.Message:
        control, keeper = self.control.fileno(), self.keeper.fileno()
        while True:
            left = deadline - time.monotonic()
            ready = {fd for fd, _ in self.poll.poll(max(left, 0) * 1000)}
            if control in ready:
                return self._read_answer()
            if self.output in ready:
                self._drain()
            if keeper in ready:
                self._drain()
                raise Ended(self._await_ending())
            if left <= 0:
                raise Overdue(limit_s, self.kill())

    def _read_answer(self) -> wire.Message:
        try:
            return wire.recv_untrusted(self.control, self.reply_cap or 10_000_000)
        except wire.Closed:
            raise Ended(self._await_ending()) from None
        except wire.Malformed as error:
            self.kill()
            raise Cheated(f"on the runner's descriptor: {error}") from error

    def wait(self, timeout_s: float) -> wire.Message:
        """Until the process has ended.

        Raises:
            Overdue, Flooded
        """
        deadline = time.monotonic() + timeout_s
        while self.ending is None:
            left = deadline - time.monotonic()
            ready = {fd for fd, _ in self.poll.poll(max(left, 0) * 1000)}
            if self.output in ready:
                self._drain()
            if self.keeper.fileno() in ready:
                self._await_ending()
            elif left <= 0:
                raise Overdue(timeout_s, self.kill())
        self._drain()
        return self.ending

    def _drain(self) -> None:
        while True:
            try:
                data = os.read(self.output, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                with suppress(KeyError):
                    self.poll.unregister(self.output)
                return
            self.printed_bytes += len(data)
            # The first lines hold the compiler's first error, the last ones a program's last words.
            both = self.printed + data
            self.printed = both if len(both) <= 2 * OUTPUT_KEPT else both[:OUTPUT_KEPT] + both[-OUTPUT_KEPT:]
            if self.output_cap is not None and self.printed_bytes > self.output_cap:
                self.kill()
                raise Flooded(f"printed more than {self.output_cap} bytes")

    def _from_keeper(self, timeout_s: float) -> Any:
        self.keeper.settimeout(timeout_s)
        try:
            answer, _ = wire.recv(self.keeper)
        except (wire.Closed, TimeoutError) as error:
            raise Broken("the keeper of a jailed process is gone or silent") from error
        if "broken" in answer:
            raise Broken(f"sandbox: {answer['broken']}")
        return answer

    def _await_ending(self, timeout_s: float = 10.0) -> wire.Message:
        while self.ending is None:
            message = self._from_keeper(timeout_s)
            if "cpu_s" in message:
                self.ending = message
                with suppress(Flooded):
                    self._drain()  # its last words
        return self.ending

    def stop(self) -> None:
        """Off turn: no thread of it runs until `resume`."""
        if not self.stopped and self.ending is None:
            now = int(self._order("stop", "stopped").get("cpu_ns", -1))
            self.turn_cpu_ns = now - self._cpu_ns if now >= 0 <= self._cpu_ns else None
            self.stopped = True

    def resume(self) -> None:
        if self.stopped:
            self._cpu_ns = int(self._order("continue", "continued").get("cpu_ns", -1))
            self.stopped = False

    def _order(self, do: str, done: str) -> wire.Message:
        try:
            wire.send(self.keeper, {"do": do})
        except wire.Closed:
            raise Ended(self._await_ending()) from None
        message = self._from_keeper(10.0)
        while done not in message:
            if "cpu_s" in message:
                self.ending = message
                raise Ended(message)
            message = self._from_keeper(10.0)
        return dict(message)

    def kill(self) -> wire.Message:
        """Kill it and everything it started; returns how it ended. Idempotent."""
        if self.ending is None:
            with suppress(wire.Closed, OSError):
                wire.send(self.keeper, {"do": "kill"})
            self._await_ending()
        assert self.ending is not None
        return self.ending

    def close(self) -> None:
        """Kill, and give every descriptor back."""
        try:
            with suppress(Broken):
                self.kill()
            with suppress(Flooded, OSError):
                self._drain()
        finally:
            self.control.close()
            self.keeper.close()
            with suppress(OSError):
                os.close(self.output)
