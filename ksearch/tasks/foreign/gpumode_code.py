"""The code written around a GPU MODE problem: inputs() and reference(), and the baseline program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ksearch.tasks.foreign.draft import Draft


def common(draft: Draft, codes: Mapping[str, list[Any]], numbers: list[str]) -> str:
    return f"""\
DEVICE = {draft.device!r}
CODES = {json.loads(json.dumps(dict(codes)))!r}
INPUTS = { {t.name: t.dtype for t in draft.inputs}!r}
OUTPUTS = {[t.name for t in draft.outputs]!r}
NUMBERS = {numbers!r}
MUTABLE = {[t.name for t in draft.inputs if t.mutable]!r}
"""


def glue(common: str) -> str:
    return f"""\
import inspect

import ksearch_bridge as bridge
import torch

{common}_templates = {{}}


def _data(axes, seed):
    given = {{k: CODES[k][v - 1] if k in CODES else v for k, v in axes.items() if k != "problem"}}
    if "seed" in inspect.signature(generate_input).parameters:
        given["seed"] = seed % (1 << 31)
    with bridge.placed(DEVICE):
        torch.manual_seed(seed)
        return generate_input(**given)


def inputs(axes, rng):
    found = bridge.leaves(_data(axes, bridge.seed_of(rng)), NUMBERS)
    return {{name: bridge.outward(value, DEVICE) for name, (_, value) in zip(INPUTS, found, strict=True)}}


def reference(inputs, axes):
    key = tuple(axes.items())
    if key not in _templates:  # where its tensors belong, and what is beside them
        _templates[key] = bridge.emptied(_data(axes, 1))
    tensors = {{name: bridge.inward(inputs[name], dtype) for name, dtype in INPUTS.items()}}
    with bridge.placed(DEVICE):
        found = bridge.leaves(ref_kernel(bridge.refilled(_templates[key], list(tensors.values()), NUMBERS)))
    made = {{name: bridge.outward(value, DEVICE) for name, (_, value) in zip(OUTPUTS, found, strict=True)}}
    return made | {{name: bridge.outward(tensors[name], DEVICE) for name in MUTABLE}}
"""


_BASELINE = '''\
"""The reference kernel of the problem, called as a program."""

import inspect
import itertools

import ksearch_bridge as bridge
import original
import torch

torch.set_num_threads(1)
@COMMON@AXES = @AXES@
SHAPES = @SHAPES@
DOMAIN = @DOMAIN@
_templates = {}


def _shapes(axes):
    return [tuple(eval(str(d), {}, dict(axes)) for d in shape) for shape in SHAPES.values()]


def _template(shapes):
    """What generate_input() gives beside tensors, for the sizes that these shapes tell."""
    every = (dict(zip(DOMAIN, values)) for values in itertools.product(*DOMAIN.values()))
    axes = next(a for a in itertools.chain(AXES, every) if _shapes(a) == shapes)
    given = {k: CODES[k][v - 1] if k in CODES else v for k, v in axes.items() if k != "problem"}
    if "seed" in inspect.signature(original.generate_input).parameters:
        given["seed"] = 1
    return bridge.emptied(original.generate_input(**given))


def run(@NAMES@):
    given = dict(@GIVEN@)
    tensors = [bridge.inward(given[name], dtype) for name, dtype in INPUTS.items()]
    key = tuple(tuple(t.shape) for t in tensors)
    with bridge.placed(DEVICE):
        if key not in _templates:
            _templates[key] = _template(list(key))
        found = bridge.leaves(original.ref_kernel(bridge.refilled(_templates[key], tensors, NUMBERS)))
    found = tuple(bridge.outward(value, DEVICE) for _, value in found)
    return found if len(found) > 1 else found[0]
'''


def baseline(draft: Draft, common: str) -> str:
    """Programs do not receive the axes: they are found again by the shapes of the inputs."""
    names = [t.name for t in draft.inputs]
    parts = {
        "COMMON": common,
        "AXES": repr([w["axes"] for w in draft.workloads]),
        "SHAPES": repr({t.name: t.shape for t in draft.inputs}),
        "DOMAIN": repr({a: e["values"] for a, e in draft.axes.items()}),
        "NAMES": ", ".join(names),
        "GIVEN": ", ".join(f"{n}={n}" for n in names),
    }
    text = _BASELINE
    for mark, value in parts.items():
        text = text.replace(f"@{mark}@", value)
    return text
