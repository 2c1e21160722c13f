"""The desk that a run's settings ask for, with its models, and an evaluator that only draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest import mock

from ksearch.drivers import Desk
from ksearch.run import Run
from ksearch.service.beginning import setting
from ksearch.service.desks import staffed
from ksearch.service.fleets import Measurers
from ksearch.testing.fakes import FakeEvaluator


@contextmanager
def desk_of(run: Run) -> Iterator[Desk]:
    at, drawing = setting(run.state), Measurers(FakeEvaluator(), lambda: None)
    with (
        mock.patch("ksearch.service.desks.measurers", return_value=nullcontext(drawing)),
        staffed(at.config, at.task) as staff,
    ):
        yield staff.desk(run, at)
