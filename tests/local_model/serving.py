"""llama.cpp as a real OpenAI-compatible endpoint on this machine, in a process of its own.

As a program: `python serving.py MODEL.gguf CONTEXT THREADS` prints the address and serves until it is killed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(model: Path, log: Path, threads: int, context: int = 8192) -> Iterator[str]:
    """Its base URL.

    Args:
        log: where the server's words go.
        threads: several wait for each other actively, which on a busy machine takes many times as long as one alone.
        context: tokens of prompt and reply together.
    """
    command = [sys.executable, __file__, str(model), str(context), str(threads)]
    with log.open("wb") as words:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=words, text=True)
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http"), f"the server did not start: {log.read_text(errors='replace')[-2000:]}"
            yield f"{address}/v1"
        finally:
            process.kill()
            process.wait()


def main(model: str, context: str, threads: str) -> None:
    import xllamacpp  # only in this process: its start takes the model's size in memory

    order = xllamacpp.CommonParams()
    order.model.path, order.n_ctx, order.n_parallel = model, int(context), 1
    order.model_alias = {Path(model).stem}  # else replies, and the log, name it by its path on this machine
    order.cpuparams.n_threads = order.cpuparams_batch.n_threads = int(threads)
    server = xllamacpp.Server(order)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
