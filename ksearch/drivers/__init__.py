"""Who carries a run forward: the straight line in `loop`, many at once in `workers`, and the protocols of those whom
they call in `desk`."""

from ksearch.drivers.desk import Answer, Desk, Errand, Evaluator, Job, Measured, Mind, Outcome
from ksearch.drivers.loop import drive
from ksearch.drivers.workers import Pools, drive_many

__all__ = [
    "Answer",
    "Desk",
    "Errand",
    "Evaluator",
    "Job",
    "Measured",
    "Mind",
    "Outcome",
    "Pools",
    "drive",
    "drive_many",
]
