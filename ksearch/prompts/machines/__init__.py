"""Public facts of processors, for the hardware sheet: data in `gpus.toml` and `cpus.toml`, chosen by what was read.

They come after everything that was measured, and are the first to be cut where a prompt has no room.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

_WINS = "public figures; what is measured above wins"


def gpu_facts(name: str, capability: Sequence[int] | None = None) -> str:
    """What is known of a GPU by its model's name and compute capability; empty where it is nothing.

    Without a capability the architecture is taken from the models named in its title.
    """
    data = _read("gpus.toml")
    kinds = {key: kind for key, kind in data.items() if key != "model"}
    found = next((k for k in kinds.values() if _is(k, name, capability)), None)
    rates = next((m["rates"] for m in data["model"] if re.search(m["match"], name)), "")
    lines = [f"- data sheet of this model: {rates}"] if rates else []
    if found is None:
        return "\n".join([f"Known of this GPU ({_WINS}):", *lines]) if lines else ""
    lines += [f"- {fact}" for fact in found["facts"]]
    lines += ["What usually pays there:", *(f"- {habit}" for habit in found["habits"])]
    return "\n".join([f"Known of {found['title']} ({_WINS}):", *lines])


def _is(kind: Mapping[str, Any], name: str, capability: Sequence[int] | None) -> bool:
    if capability:
        return list(capability) in kind["capabilities"]
    models = re.findall(r"[A-Z]+ ?\d+\w*", kind["title"].partition("(")[2])
    return any(re.search(rf"\b{re.escape(model)}", name) for model in models)


def cpu_facts(model: str, simd: Sequence[str]) -> str:
    """What is known of a CPU's core: by its model, else by its instruction sets; empty where it is nothing."""
    data = _read("cpus.toml")
    found = next((core for core in data["core"] if re.search(core["match"], model)), None)
    found = found or next((kind for name, kind in data["general"].items() if name in simd), None)
    if found is None:
        return ""
    return "\n".join([f"Known of {found['title']} ({_WINS}):", *(f"- {fact}" for fact in found["facts"])])


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(__name__).joinpath(name).read_text("utf-8"))
