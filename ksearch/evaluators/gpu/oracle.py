"""The oracle of tasks with device "cuda": the same as for CPUs, over GPU memory, judging many sets with one wait."""

from __future__ import annotations

import sys

import torch

from ksearch.evaluators import oracle, wire
from ksearch.evaluators.gpu import judging
from ksearch.evaluators.gpu.memory import Gpu
from ksearch.evaluators.judge import Group


class GpuOracle(oracle.Oracle):
    memory: Gpu

    def judge(self, order: wire.Message) -> wire.Message:
        """A quick look at all sets first; only what is not clearly right is looked at thoroughly.

        Where outputs are kept (in the checks, not in timed calls), the thorough look is taken in any case: its
        errors are reported.
        """
        if order.get("keep") or not order["sets"] or order.get("thorough"):
            return super().judge(order)
        group, peer, off = self.groups[order["key"]], self.groups.get(order.get("peer", "")), set(order.get("off", ()))
        fine = torch.stack([self._clearly_fine(group, i, peer, off) for i in order["sets"]]).tolist()
        doubtful = [index for index, good in zip(order["sets"], fine, strict=True) if not good]
        return super().judge({**order, "sets": doubtful})

    def _clearly_fine(self, group: Group, index: int, peer: Group | None, off: set[str]) -> torch.Tensor:
        one, filled = group.sets[index], group.filled[index]
        fine = torch.ones((), dtype=torch.bool, device="cuda")
        for slot, kept in zip(group.layout.inputs, filled.inputs, strict=True):
            if "input_hash" not in off and not slot.tensor.mutable:
                fine &= self.memory.hash(one.array(slot)) == kept
        if "canary" not in off:
            for slot in (*group.layout.inputs, *group.layout.outputs):
                fine &= one.sound(slot)  # type: ignore[attr-defined]
        names = {t.name for t in self.spec.inputs if t.mutable and filled.expected and t.name in filled.expected}
        for slot in (*group.layout.outputs, *(s for s in group.layout.inputs if s.tensor.name in names)):
            if filled.expected is not None:
                wanted, slack = filled.expected[slot.tensor.name], 1.0
            elif peer is not None:
                wanted, slack = peer.sets[index].array(slot), 2.0
            else:
                continue
            fine &= judging.surely_equal(one.array(slot), wanted, self._tolerance(slot.tensor, slack))
        return fine


def main() -> None:
    oracle.serve(int(sys.argv[1]), Gpu, GpuOracle)
