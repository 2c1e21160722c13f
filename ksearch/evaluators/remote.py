"""`python -m ksearch.evaluators.remote FOLDER [-o RESULTS]`: evaluate a bundle; needs Python and NumPy only."""

from __future__ import annotations

import sys
from pathlib import Path

from ksearch.errors import KSearchError
from ksearch.evaluators.bundle import evaluate_bundle


def main(arguments: list[str]) -> int:
    """Exit code 0: all measured; 1: the bundle or this machine is at fault; 2: called wrongly."""
    folder, *rest = arguments or [""]
    if not folder or folder.startswith("-") or (rest and (len(rest) != 2 or rest[0] != "-o")):
        print("usage: python -m ksearch.evaluators.remote FOLDER [-o RESULTS]", file=sys.stderr)
        return 2
    try:
        evaluate_bundle(
            Path(folder), tell=lambda text: print(text, flush=True), results=Path(rest[1]) if rest else None
        )
    except KSearchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
