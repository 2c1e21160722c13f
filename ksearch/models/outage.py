"""Outages: a circuit breaker for each provider, so that one that is down is left alone and asked again one at a time.

After some failures in a row nothing is sent any more: callers are told at once, and for free, until when. Then one
call is the probe, while others wait for what becomes of it; it closes the circuit, or opens it again for twice as long.
A provider that names a time itself (Retry-After, a subscription's limit) is taken at its word.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ksearch.errors import ModelError, ProviderDown, QuotaExhausted
from ksearch.models.base import Answer, Call, Model
from ksearch.models.providers import taken_apart

MAX_WAIT_S = 900.0
LONGEST_S = 8 * 24 * 3600.0  # a provider that names a longer wait is not waited for: somebody has to look at it


@dataclass(frozen=True, slots=True)
class OutagePolicy:
    failures: int = 3  # calls in a row, each with its own repetitions, that open the circuit
    first_wait_s: float = 30.0  # doubled with each probe that fails, with jitter
    max_wait_s: float = MAX_WAIT_S
    patience_s: float = 24 * 3600.0  # of failures without one reply, after which somebody has to look at it
    named_wait_s: float = 30.0  # a wait that the provider names counts as an outage from here on


@dataclass
class Breaker:
    """The circuit of one provider, shared by all its models and threads of a process."""

    who: str
    policy: OutagePolicy = field(default_factory=OutagePolicy)
    clock: Callable[[], float] = time.time
    until: float | None = None  # open until then; None: closed
    _failures: int = 0
    _waits: int = 0  # times that it was opened in a row
    _began: float | None = None  # the first failure since the last reply
    _probing: bool = False
    _why: str = ""

    def __post_init__(self) -> None:
        self._changed = threading.Condition()

    @contextmanager
    def passing(self) -> Iterator[bool]:
        """Around one call: whether it is the probe.

        Raises:
            ProviderDown: nothing may be sent yet, or the probe that was waited for failed.
            ModelError: what the call raised, with `until` set where it means an outage.
        """
        probe = self._enter()
        try:
            yield probe
        except ModelError as error:
            self._failed(error, probe)
            raise
        except BaseException:
            self._left(probe)
            raise
        self._replied(probe)

    def try_now(self) -> None:
        """Somebody says that it may be up again: the next call is the probe."""
        with self._changed:
            if self.until is not None:
                self.until = self.clock()

    def _enter(self) -> bool:
        with self._changed:
            while self.until is not None:
                if self.clock() < self.until:
                    raise self._down()
                if not self._probing:
                    self._probing = True
                    return True
                self._changed.wait()
            return False

    def _down(self) -> ProviderDown:
        error = ProviderDown(self._why)
        error.until = self.until
        return error

    def _left(self, probe: bool) -> None:
        """Interrupted: nothing is known. Another may probe."""
        with self._changed:
            self._probing = self._probing and not probe
            self._changed.notify_all()

    def _replied(self, probe: bool) -> None:
        with self._changed:
            self._failures = self._waits = 0
            self.until = self._began = None
            self._probing = self._probing and not probe
            self._changed.notify_all()

    def _failed(self, error: ModelError, probe: bool) -> None:
        """Count a failure, and say in the error until when nothing more is to be asked, or that only people can help.

        A provider that rejects a call (key, model's name, length of the prompt) is there.
        """
        named = error.retry_after_s if error.transient or isinstance(error, QuotaExhausted) else None
        named = named if named is not None and named > self.policy.named_wait_s else None
        if not error.transient and named is None:
            self._replied(probe)
            return
        with self._changed:
            self._probing = self._probing and not probe
            now = self.clock()
            self._began = now if self._began is None else self._began
            self._failures += 1
            if self.until is None or probe:
                self._open(error, named, now)
            if self.until is not None:
                error.until = self.until
            self._changed.notify_all()

    def _open(self, error: ModelError, named: float | None, now: float) -> None:
        """Open the circuit, where this failure is one too many."""
        began = now if self._began is None else self._began
        waited_enough = self._waits > 0 and named is None and now - began >= self.policy.patience_s
        if waited_enough or (named or 0.0) > LONGEST_S:
            # The next call, after somebody has let the run go on, finds the circuit closed.
            self.until, self._failures, self._waits, self._began = None, 0, 0, None
            error.transient = False
            error.args = (f"{error} It is not asked again by itself: resume the run when it is back",)
        elif named is not None or self._waits or self._failures >= self.policy.failures:
            self._waits += 1
            wait = min(self.policy.first_wait_s * 2.0 ** min(self._waits - 1, 30), self.policy.max_wait_s)
            wait = max(wait * random.uniform(0.8, 1.2), error.retry_after_s or 0.0) if named is None else named
            self.until = now + wait
            error.transient = True
            self._why = f"{self.who} is waited for: {error}"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A model behind its provider's breaker."""

    inner: Model
    breaker: Breaker

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def context_tokens(self) -> int | None:
        return self.inner.context_tokens

    def complete(self, call: Call) -> Answer:
        with self.breaker.passing() as probe:
            return self.inner.complete(replace(call, once=True) if probe else call)


def provider_of(spec: str, base_url: str | None) -> str:
    """Whose outage it is: models of one provider at one address, or of one command, go down together."""
    kind, _, rest = spec.partition(":")
    if kind == "command":
        words = [word for word in rest.split() if not word.startswith("pass=")]
        return f"command:{words[0] if words else ''}"
    at = taken_apart(rest).base_url or base_url
    return f"{kind} at {at}" if at else kind
