"""Who carries a run forward: the straight line in `loop`, and the protocols of those it calls in `desk`."""

from ksearch.drivers.desk import Answer, Desk, Evaluator, Job, Measured, Mind
from ksearch.drivers.loop import drive

__all__ = ["Answer", "Desk", "Evaluator", "Job", "Measured", "Mind", "drive"]
