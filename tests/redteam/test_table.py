"""What holds for the table of cheats as such: nothing here is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksearch.errors import BadInput
from ksearch.evaluators.defences import Defence
from ksearch.redteam.__main__ import with_tables
from ksearch.redteam.cheat import CHEATS as FOLDER
from ksearch.redteam.cheat import Cheat
from ksearch.redteam.suite import chosen, stopped, succeeded
from ksearch.redteam.table import CHEATS
from ksearch.types import Evaluation, Ratio, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "redteam.md"
HELPERS = {"honest.h", "honest.py", "patch.h", "spy.py"}
NO_CHEAT_FOR = {Defence.CACHE_FLUSH}  # a condition of measuring: there is nothing to steal by it
every_cheat = pytest.mark.parametrize("cheat", CHEATS, ids=lambda c: c.name)


def test_the_page_shows_the_table_as_it_is() -> None:
    page = PAGE.read_text("utf-8")
    assert with_tables(page) == page, "run: python -m ksearch.redteam --docs docs/redteam.md"


def test_every_file_is_in_the_table_once() -> None:
    files = [cheat.file for cheat in CHEATS]
    assert len(set(files)) == len(files)
    assert {p.name for p in FOLDER.iterdir() if p.is_file()} - HELPERS == set(files)


def test_every_defence_is_needed_against_some_cheat() -> None:
    named = {defence for cheat in CHEATS for defence in cheat.defences}
    assert set(Defence) - named == NO_CHEAT_FOR


@every_cheat
def test_a_twin_differs_in_the_switch_alone(cheat: Cheat) -> None:
    mine, twins = cheat.source.splitlines(), cheat.program(twin=True).sources[cheat.file].splitlines()
    only_mine = [line for line in mine if line not in twins]
    assert all("CHEAT" in line or line.endswith("# cheat only") for line in only_mine)
    assert [line for line in twins if line not in mine] in (["CHEAT = False"], ["#define CHEAT 0"])


@every_cheat
def test_a_cheat_names_its_defence_or_says_what_else_stops_it(cheat: Cheat) -> None:
    assert bool(cheat.defences) != bool(cheat.because)
    assert cheat.what.endswith((".", ")", "?"))
    assert (Verdict.PASSED in cheat.verdicts) <= (cheat.saves or cheat.steals)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"'no-such-cheat'.*cached-by-pointer"):
        chosen(["no-such-cheat"])


def evaluation(verdict: Verdict, stage: str = "time", speedup: float = 1.0, log: str = "") -> Evaluation:
    passed = verdict is Verdict.PASSED
    return Evaluation(
        "p", verdict, stage=stage, log=log, latency_ms=1.0 if passed else None,
        speedup=Ratio(speedup, speedup, speedup) if passed else None,
    )  # fmt: skip


def test_stopped_and_succeeded_are_never_both() -> None:
    caught, barren, fenced = (
        Cheat("c.cpp", (Verdict.WRONG_VALUES,), ("time",)),
        Cheat("c.cpp", (Verdict.PASSED,), ("time",), saves=True),
        Cheat("c.cpp", (Verdict.PASSED,), ("time",), steals=True),
    )
    assert stopped(caught, evaluation(Verdict.WRONG_VALUES))
    assert not stopped(caught, evaluation(Verdict.WRONG_VALUES, "smoke"))
    assert not stopped(caught, evaluation(Verdict.PASSED))
    assert succeeded(caught, evaluation(Verdict.PASSED))
    assert stopped(barren, evaluation(Verdict.PASSED, speedup=1.1))
    assert not stopped(barren, evaluation(Verdict.PASSED, speedup=12.0))
    assert succeeded(barren, evaluation(Verdict.PASSED, speedup=12.0))
    assert not succeeded(barren, evaluation(Verdict.PASSED, speedup=1.1))
    assert stopped(fenced, evaluation(Verdict.PASSED))
    loot = "some words\nLOOT: a key\nmore"
    assert not stopped(fenced, evaluation(Verdict.PASSED, log=loot))
    assert succeeded(fenced, evaluation(Verdict.FORGED, log=loot))
