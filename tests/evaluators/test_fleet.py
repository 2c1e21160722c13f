"""Several devices of one host: pretend ones, since what is tested is who gets what and who is put aside."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ksearch.errors import EvaluatorError
from ksearch.evaluators import gpus
from ksearch.evaluators.builder import BuildFailed, Built
from ksearch.evaluators.builds import Builds
from ksearch.evaluators.devices import GpuDevice
from ksearch.evaluators.elf import Symbols
from ksearch.evaluators.fleet import Fleet
from ksearch.types import Program, Verdict


def program(text: object) -> Program:
    return Program({"k.cpp": str(text)}, "k.cpp::run", "cpp")


@dataclass(eq=False)
class Pretend:
    label: str
    model: str = "H200"
    breaks: bool = False
    opens: bool = True
    gate: threading.Semaphore | None = None
    done: list[str] = field(default_factory=list)
    built: list[str] = field(default_factory=list)
    closed: bool = False
    at_work: int = 0

    def open(self) -> None:
        if not self.opens:
            raise EvaluatorError("the driver does not answer")

    def close(self) -> None:
        self.closed = True

    def build(self, program: Program) -> None:
        self.built.append(program.id)

    def evaluate(self, program: Program, against: Sequence[Program]) -> str:
        self.at_work += 1
        assert self.at_work == 1, "one at a time on each device"
        if self.gate:
            self.gate.acquire(timeout=10)
        self.at_work -= 1
        if self.breaks or "breaks everything" in program.sources["k.cpp"]:
            return "lost: an illegal address"
        self.done.append(program.id)
        return self.label


def why(found: str) -> str | None:
    return found.removeprefix("lost: ") if found.startswith("lost: ") else None


def fleet(*members: Pretend, said: list[str] | None = None) -> Fleet[str]:
    return Fleet(members, lost=why, tell=[].append if said is None else said.append)


def test_whoever_is_free_takes_the_next_program() -> None:
    slow, quick = Pretend("slow", gate=threading.Semaphore(0)), Pretend("quick")
    with fleet(slow, quick) as both, ThreadPoolExecutor(12) as pool:
        first = pool.submit(both.evaluate, program("first"))
        while not slow.at_work:
            pass
        rest = list(pool.map(both.evaluate, map(program, range(10))))
        assert rest == ["quick"] * 10, "nobody waits behind the slow one"
        assert slow.gate
        slow.gate.release()
        assert first.result(10) == "slow"
    assert slow.closed
    assert len(slow.built) + len(quick.built) == 11


def test_a_failing_device_is_put_aside_with_its_reason_and_its_work_goes_elsewhere() -> None:
    said: list[str] = []
    bad, good = Pretend("GPU 0", breaks=True), Pretend("GPU 1")
    with fleet(bad, good, said=said) as both:
        assert [both.evaluate(program(n)) for n in range(5)] == ["GPU 1"] * 5
        assert both.aside == {"GPU 0": "an illegal address"}
        assert both.working == [good]
    assert said == ["GPU 0 is put aside, its work goes to the others: an illegal address"]


def test_a_program_that_every_device_loses_is_lost_and_no_device_is_blamed() -> None:
    with fleet(Pretend("a"), Pretend("b")) as both:
        for _ in range(3):
            assert both.evaluate(program("breaks everything")) == "lost: an illegal address"
        assert both.aside == {}
        assert both.evaluate(program("sound")) in ("a", "b")


def test_the_last_device_is_never_put_aside() -> None:
    with fleet(Pretend("a", breaks=True)) as one:
        assert [one.evaluate(program(n)) for n in range(3)] == ["lost: an illegal address"] * 3
        assert one.aside == {}


def test_a_device_that_fails_under_load_loses_nothing() -> None:
    members = [Pretend(f"GPU {i}", breaks=i == 2) for i in range(4)]
    with fleet(*members) as four, ThreadPoolExecutor(16) as pool:
        found = list(pool.map(four.evaluate, map(program, range(200))))
    assert "lost: an illegal address" not in found
    assert Counter(id for m in members for id in m.done) == Counter(program(n).id for n in range(200))
    assert list(four.aside) == ["GPU 2"]


def test_what_does_not_open_is_put_aside_as_long_as_one_does() -> None:
    said: list[str] = []
    with fleet(Pretend("GPU 0", opens=False), Pretend("GPU 1"), said=said) as both:
        assert both.evaluate(program(1)) == "GPU 1"
    assert "the driver does not answer" in said[0]
    with (
        pytest.raises(EvaluatorError, match="no device works: GPU 0: the driver does not answer"),
        fleet(Pretend("GPU 0", opens=False)),
    ):
        pass


def test_different_models_are_refused_with_the_cure() -> None:
    members = Pretend("GPU 0", "H200"), Pretend("GPU 1", "A100")
    with pytest.raises(EvaluatorError, match="never compared.*CUDA_VISIBLE_DEVICES"), fleet(*members):
        pass
    assert all(m.closed for m in members)


H200 = [{"index": i, "name": "NVIDIA H200", "uuid": f"GPU-{i}{i}{i}-a"} for i in range(4)]
MIXED = [*H200[:2], {"index": 2, "name": "NVIDIA A100", "uuid": "GPU-222-a"}]


def indices(count: int | None = None, here: list[dict[str, object]] = H200, **environment: str) -> list[object]:
    return [g["index"] for g in gpus.chosen(count, environment, lambda: here)]


def test_the_gpus_are_those_that_the_environment_leaves_visible() -> None:
    assert indices() == [0, 1, 2, 3]
    assert indices(CUDA_VISIBLE_DEVICES="2,0") == [2, 0]
    assert indices(CUDA_VISIBLE_DEVICES="GPU-333,1,-1,0") == [3, 1]
    assert indices(2, CUDA_VISIBLE_DEVICES="3,2,1") == [3, 2]
    assert indices(here=MIXED, CUDA_VISIBLE_DEVICES="GPU-222") == [2]
    assert indices(here=MIXED, CUDA_VISIBLE_DEVICES="0,1", CUDA_DEVICE_ORDER="PCI_BUS_ID") == [0, 1]


@pytest.mark.parametrize(("count", "here", "named", "words"), [
    (None, [], None, "needs an NVIDIA GPU, and none, see `nvidia-smi`"),
    (None, H200, "", "none is visible: CUDA_VISIBLE_DEVICES=''"),
    (8, H200, None, "8 GPUs are asked for, and 4 are here: lower --gpus"),
    (None, H200, "7", "names '7', and the GPUs of this host are 0 or GPU-000-a"),
    (None, H200, "MIG-1", "only whole GPUs are measured on"),
    (None, MIXED, None, "never compared, and here are NVIDIA H200: GPU 0"),
    (None, MIXED, "0,1", "Set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
])  # fmt: skip
def test_what_cannot_be_used_is_said_with_its_cure(
    count: int | None, here: list[dict[str, object]], named: str | None, words: str
) -> None:
    with pytest.raises(EvaluatorError) as caught:
        indices(count, here, **({} if named is None else {"CUDA_VISIBLE_DEVICES": named}))
    assert words in str(caught.value)


def test_each_evaluators_processes_see_their_own_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert GpuDevice("GPU-1").environment()["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert GpuDevice().environment()["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_a_program_is_built_once_for_all_devices() -> None:
    builds, made = Builds(), []

    def build() -> Built:
        made.append(1)
        threading.Event().wait(0.05)
        return Built(b"so", Symbols(), (), 0.0)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: builds.built("p", build), range(4)))
    assert (len(made), len(set(map(id, found)))) == (1, 1)

    def fails() -> Built:
        made.append(1)
        raise BuildFailed(Verdict.COMPILE_ERROR, "no")

    for _ in range(2):
        with pytest.raises(BuildFailed):
            builds.built("q", fails)
    assert len(made) == 2
    with pytest.raises(OSError, match="full"):
        builds.built("r", lambda: (_ for _ in ()).throw(OSError("disk full")))
    assert builds.built("r", build).data == b"so", "a failure of our own is not kept"


@pytest.mark.heavy
def test_two_real_evaluators_share_what_was_built(make, cpp, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    builds = Builds()
    one, two = (make({"lease": tmp_path / name}) for name in "ab")
    one.builds = two.builds = builds
    with one, two:
        fast, good = cpp("{FAST}"), cpp("{GOOD} ")
        one.build(fast)
        two.build(good)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda e, p, q: e.evaluate(p, [q]), (one, two), (fast, good), (good, fast)))
    assert [f.evaluation.verdict for f in found] == [Verdict.PASSED] * 2
    assert all(f.evaluation.against for f in found)
