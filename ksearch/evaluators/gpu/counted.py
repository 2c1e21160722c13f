"""What `ncu` runs: one program, one call to warm up, one call to be counted. In a jail of its own, after the verdict.

The program's process is the candidate's: what the counters say is advice, like the rest of a profile.
"""

from __future__ import annotations

import json
from pathlib import Path

from ksearch.evaluators.linux import sealed

ORDER, PROGRAM = "order.json", "program.bin"


def main(folder: str) -> None:
    from ksearch.evaluators.gpu.runner import GpuRunner

    order = json.loads(Path(folder, ORDER).read_text())
    runner = GpuRunner()
    runner.start({})
    runner.load(order["load"], [sealed(Path(folder, PROGRAM).read_bytes())])
    runner.map(order["map"], [])
    call = {"key": order["map"]["key"], "flush": False}
    runner.run({**call, "sets": [0]})
    runner.cuda.call("cudaProfilerStart")
    runner.run({**call, "sets": [1]})
    runner.cuda.call("cudaProfilerStop")
