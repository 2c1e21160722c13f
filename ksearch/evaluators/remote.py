"""`python -m ksearch.evaluators.remote FOLDER`: evaluate a bundle where only Python and NumPy are installed."""

from __future__ import annotations

import sys
from pathlib import Path

from ksearch.errors import KSearchError
from ksearch.evaluators.bundle import evaluate_bundle


def main(arguments: list[str]) -> int:
    """Exit code 0: all measured; 1: the bundle or this machine is at fault; 2: called wrongly."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m ksearch.evaluators.remote FOLDER", file=sys.stderr)
        return 2
    try:
        evaluate_bundle(Path(arguments[0]), tell=lambda text: print(text, flush=True))
    except KSearchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
