"""The evaluator of this machine as the drivers want it: a result, and its record as bytes with their hash in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ksearch.drivers import Measured
from ksearch.evaluators.local import LocalEvaluator
from ksearch.protocol import Lost
from ksearch.store import blob_name
from ksearch.types import Program


@dataclass(frozen=True)
class Bench:
    """Measures here. `local` must be open."""

    local: LocalEvaluator

    def evaluate(self, program: Program, against: Sequence[Program]) -> Measured | Lost:
        found = self.local.evaluate(program, against)
        if isinstance(found.evaluation, Lost):
            return found.evaluation
        record = json.dumps(found.record, allow_nan=False, sort_keys=True).encode()
        return Measured(replace(found.evaluation, record=blob_name(record)), record)
