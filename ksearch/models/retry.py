"""Asking again: for failures that pass by themselves and cost nothing, with the wait that the provider names."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ksearch.errors import ModelError, ModelTimeout
from ksearch.models.base import Answer, Call, Model


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    tries: int = 4  # calls in all
    first_wait_s: float = 1.0  # doubled each time, with jitter
    max_wait_s: float = 30.0  # a provider that asks for more is left to the run, which can pause


@dataclass(frozen=True, slots=True)
class Retrying:
    """A model that asks again after a transient failure.

    Not after a timeout, a cut connection or a garbled answer, which may have been billed: those end the call, and the
    run decides with its budget in view. Not when the provider names a wait beyond `max_wait_s`.
    """

    inner: Model
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], None] = time.sleep

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def context_tokens(self) -> int | None:
        return self.inner.context_tokens

    def complete(self, call: Call) -> Answer:
        tries = 0
        while True:
            tries += 1
            try:
                answer = self.inner.complete(call)
            except ModelError as error:
                error.tries = tries
                wait = None if call.once else self._wait(error, tries)
                if wait is None:
                    raise
                self.sleep(wait)
            else:
                return replace(answer, tries=tries)

    def _wait(self, error: ModelError, tries: int) -> float | None:
        """Seconds to wait before the next try; None: give up."""
        if not error.transient or isinstance(error, ModelTimeout) or error.maybe_billed or tries >= self.policy.tries:
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s if error.retry_after_s <= self.policy.max_wait_s else None
        wait: float = self.policy.first_wait_s * 2 ** (tries - 1) * random.uniform(0.5, 1.0)
        return min(wait, self.policy.max_wait_s)
