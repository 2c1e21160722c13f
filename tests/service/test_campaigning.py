"""Which settings of a campaign reach which task, and what becomes of a task that they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ksearch.config import RunConfig, load
from ksearch.drivers import Pools, drive_many
from ksearch.run import Run
from ksearch.search import ALL_KINDS
from ksearch.service.allotting import Grant
from ksearch.service.beginning import setting
from ksearch.service.campaigning import Campaigner
from ksearch.service.campaigns import Campaign, Entry, Terms
from ksearch.service.desks import Staff
from ksearch.service.tasklist import read_tasks
from ksearch.store import Store, open_store
from ksearch.tasks import Task
from ksearch.testing.fakes import fake_desk


@dataclass
class Told:
    """A face that only notes."""

    aside: dict[str, str] = field(default_factory=dict)
    configs: list[tuple[str, RunConfig]] = field(default_factory=list)

    def gives(self, campaign: Campaign, grant: Grant) -> None: ...

    def fails(self, entry: Entry, why: str) -> None:
        self.aside[entry.listed.name] = why

    def carry(self, run: Run, staff: Staff, enough: Callable[[], bool]) -> None:
        drive_many(run, staff.desk(run, setting(run.state)), lambda: Pools(1, 1), enough)

    @contextmanager
    def staffing(self, config: RunConfig, task: Task | None) -> Iterator[Staff]:
        assert task
        self.configs.append((task.spec.device, config))
        yield Staff(lambda *_: fake_desk(), ALL_KINDS)


def carry_on(store: Store, tmp_path: Path, evaluations: int, **settings: object) -> tuple[Campaign, Told]:
    (tmp_path / "list.txt").write_text("softmax\ntrimul_gpu\n")
    campaign, told = Campaign(store, "both", read_tasks(str(tmp_path / "list.txt"))), Told()
    config = load({"model": "fake:1", **settings}, {}).config
    terms = Terms("both", str(tmp_path), config, evaluations, 1, 1)
    Campaigner(campaign, terms, told, told.staffing, lint=False).carry_on()
    return campaign, told


def test_gpus_are_asked_for_by_the_gpu_tasks_of_a_list_only(tmp_path: Path) -> None:
    store = open_store("sqlite:///:memory:")
    for evaluations in (4, 8):  # begun, and gone on with
        campaign, told = carry_on(store, tmp_path, evaluations, parallel=4, gpus=2)
        assert told.aside == {}
        assert {(device, config.gpus) for device, config in told.configs} == {("cpu", None), ("cuda", 2)}
        assert sum(line.evaluations for line in campaign.lines) == evaluations


def test_a_task_that_does_not_take_the_language_is_set_aside_and_the_rest_goes_on(tmp_path: Path) -> None:
    campaign, told = carry_on(open_store("sqlite:///:memory:"), tmp_path, 4, language="triton")
    assert told.aside == {"softmax": "it takes cpp, and not --language triton"}
    assert [entry.failed for entry in campaign.entries] == [True, False]
    assert [line.evaluations for line in campaign.lines] == [0, 4]
