"""A real Ray cluster of this machine: a head and three nodes. One worker is killed and one node removed during a run.

Needs Ray (`pip install 'k-search[ray]'`); `.ci/run` installs it.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ksearch import events as ev
from ksearch.config import RunConfig
from ksearch.drivers import Desk, Job, Measured, Pools, drive_many
from ksearch.errors import EvaluatorError
from ksearch.evaluators.options import EvaluatorOptions
from ksearch.evaluators.raypool import RayPool
from ksearch.fold import fold
from ksearch.protocol import Budget, Done, SearchConfig
from ksearch.run import Run
from ksearch.service.fleets import measurers
from ksearch.service.measuring import Bench
from ksearch.store import open_store
from ksearch.tasks import load_task
from ksearch.testing.fakes import FakePlanner, FakeWriter
from ksearch.types import Program, Verdict

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
TASK = load_task("softmax")
QUICK = EvaluatorOptions(time_budget_s=0.1, time_cap_s=0.1, min_rounds=3, confirm=False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray", reason="needs Ray: pip install 'k-search[ray]'")
    from ray.cluster_utils import Cluster

    small = {"num_gpus": 0, "object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
    made.nodes = [made.add_node(num_cpus=1, **small) for _ in range(3)]
    yield made
    made.shutdown()


class Varied(FakeWriter):
    """Each time the task's own baseline with another comment: another program, and a sound one."""

    def read(self, job: Job, raw: bytes, finish: str) -> Program:
        base = TASK.spec.baseline
        name = next(iter(base.sources))
        sources = {**base.sources, name: f"{base.sources[name]}\n{raw.decode()}"}
        return Program(sources, base.entry_point, base.language)


def workers_of(node: Any) -> list[int]:
    """Processes at work on a program, among the children of our own node."""
    raylet = node.all_processes["raylet"][0].process.pid
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            if parent == raylet and b"ray::measure" in (path.parent / "cmdline").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def at_work(node: Any) -> int:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := workers_of(node):
            return found[0]
        time.sleep(0.05)
    raise AssertionError("nobody works there")


def test_the_settings_of_a_run_lead_to_the_cluster(cluster: Any) -> None:
    config = RunConfig(task="softmax", pool="ray", ray_address=cluster.address, parallel="auto")
    with measurers(config, TASK) as found:
        assert found.devices == 3
        done = found.evaluator.evaluate(TASK.spec.baseline, [])
    assert isinstance(done, Measured)
    assert done.evaluation.verdict is Verdict.PASSED
    assert done.record
    assert json.loads(done.record)["host"] == os.uname().nodename


def test_a_killed_worker_and_a_removed_node_lose_nothing(cluster: Any, tmp_path: Path) -> None:
    config = SearchConfig(Budget(7), stagnation=4, max_active=2, width=3)
    run = Run.create(open_store(tmp_path / "runs.db"), "run", config)
    calls: list[str] = []
    minds = FakePlanner(note=calls.append), Varied(note=calls.append)

    def trouble() -> None:
        os.kill(at_work(cluster.nodes[0]), signal.SIGKILL)
        at_work(cluster.nodes[1])
        cluster.remove_node(cluster.nodes[1], allow_graceful=False)

    with RayPool(TASK.spec, TASK.folder, address=cluster.address, options=QUICK) as pool:
        assert pool.devices == 3
        with pytest.raises(EvaluatorError, match="4 are asked for, and the Ray cluster has 3"):
            RayPool(TASK.spec, TASK.folder, gpus=4)._choose(pool._ray.nodes())
        troubled = threading.Thread(target=trouble)
        troubled.start()
        ended = drive_many(run, Desk(*minds, Bench(pool)), lambda: Pools(6, 4))
        troubled.join(60)
    events = run.log()
    assert ended == Done("budget: evaluations")
    assert fold(events) == run.state
    assert run.state.evaluated == 7
    measured = Counter(e.evaluation.program_id for e in events if isinstance(e, ev.Evaluated))
    assert set(measured.values()) == {1}
    assert {e.verdict for e in run.state.evaluations.values()} == {Verdict.PASSED}
    lost = [e for e in events if isinstance(e, ev.WorkLost)]
    assert len(lost) >= 2, "one by the kill, one with the node"
    assert all("Ray worker is lost" in e.reason for e in lost)
    paid = [c for c in calls if "evaluate" not in c]
    assert len(paid) == len(set(paid)), "no model was asked again"
    assert all(run.store.get_blob(e.record) for e in run.state.evaluations.values() if e.record)
