"""`python -m ksearch.redteam`: the same as `ksearch redteam`, on a machine with the standard library and NumPy only.

`--docs FILE` renews the tables in a page instead; `--keep` keeps what was seen of the GPU rows for that page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ksearch.redteam import report
from ksearch.redteam.gpu import measured
from ksearch.redteam.suite import run_redteam

BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def with_tables(page: str) -> str:
    """`page` with its tables as they are now.

    Raises:
        ValueError: the page lacks the marks between which they stand.
    """
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page needs the lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{report.markdown()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--docs"]:
        path = Path(arguments[1])
        path.write_text(with_tables(path.read_text("utf-8")), "utf-8")
        return 0
    names = [a for a in arguments if not a.startswith("-")]
    proofs = "--no-proofs" not in arguments
    rows = run_redteam(
        names, proofs=proofs, twins=proofs, told=lambda row: print(*report.line(row), sep="  ", flush=True)
    )
    print(*report.faults(rows), *report.summary(rows), sep="\n")
    if "--keep" in arguments:
        measured.keep(rows)
    return 0 if all(row.ok for row in rows if not row.left_out) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
