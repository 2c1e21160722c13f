"""Events survive the way to JSON and back, from this version and from every released one."""

from __future__ import annotations

import json
import math
import typing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch import codec
from ksearch import events as ev
from ksearch.codec import decode_event, decode_program, encode_event
from ksearch.errors import CodecError
from ksearch.fold import fold
from ksearch.protocol import SearchConfig
from ksearch.types import Program, Ratio
from tests.codec.make_golden import story
from tests.core.drive import Pool, config

GOLDEN = Path(__file__).parent / "golden"


def through_json(event: ev.Event) -> ev.Event:
    return decode_event(json.loads(json.dumps(encode_event(event), allow_nan=False)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9))
def test_any_log_survives_json(seed: int) -> None:
    pool = Pool(seed, config(width=2, max_active=2), people=0.1)
    pool.run()
    assert [through_json(e) for e in pool.log] == pool.log


def test_the_golden_story_holds_every_event_and_every_command() -> None:
    events = story()
    assert {type(e) for e in events} == set(typing.get_args(ev.AnyEvent))
    said = {type(e.command) for e in events if isinstance(e, ev.Commanded)}
    assert said == set(typing.get_args(ev.Command))
    assert [through_json(e) for e in events] == events


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.jsonl")), ids=lambda p: p.stem)
def test_golden_logs_of_every_version_are_still_read(path: Path) -> None:
    lines = path.read_text().splitlines()
    state = fold(decode_event(json.loads(line)) for line in lines)
    assert len(lines) > 30
    assert state.tree["n1"].speedup == Ratio(1.5, 1.485, 1.515)
    assert state.spent.tokens == 7700  # 700 settled, seven reservations that nothing settled
    assert state.ended == "budget: usd"


def test_version_1_is_what_this_version_writes() -> None:
    written = [json.loads(line) for line in (GOLDEN / "v1.jsonl").read_text().splitlines()]
    assert written == [encode_event(e) for e in story()]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_neither_gets_out_nor_in(bad: float) -> None:
    with pytest.raises(CodecError, match="not a finite number"):
        encode_event(ev.Ended(at=bad, reason="x"))
    with pytest.raises(CodecError, match="finite"):
        decode_event({"type": "ended", "v": 1, "at": bad, "reason": "x"})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"v": 1}, "needs a text 'type'"),
        ({"type": "ended"}, "needs a text 'type' and a whole number 'v'"),
        ({"type": "ended", "v": 99, "reason": "x"}, "newer than this K-Search"),
        ({"type": "from_the_future", "v": 1}, "later K-Search"),
        ({"type": "ended", "v": 1, "reason": "x", "mood": 1}, "unknown field 'mood'"),
        ({"type": "ended", "v": 1}, "missing 1 required"),
        ({"type": "ended", "v": 1, "reason": 7}, r"ended v1.reason: 7 is not a str"),
        ({"type": "ended", "v": 1, "reason": "x", "at": "soon"}, "at: 'soon' is not a finite number"),
        ({"type": "ended", "v": 1, "reason": "x", "at": True}, "True is not a finite number"),
        ({"type": "commanded", "v": 1, "author": "a", "command": {"type": "explode"}}, "'type' must be one of pause"),
        ({"type": "planned", "v": 1, "request_id": "r0", "edits": {}}, r"edits: \{\} is not a list"),
        (
            {"type": "planned", "v": 1, "request_id": "r0", "edits": [{"type": "update", "node_id": "n1", "value": 7}]},
            r"edits\[0\]: value must be a finite number in \[0, 1\], got 7",
        ),
    ],
)
def test_what_is_not_an_event_is_refused_by_place(body: dict[str, object], message: str) -> None:
    with pytest.raises(CodecError, match=message):
        decode_event(body)


def test_an_old_version_is_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(body: dict[str, object]) -> dict[str, object]:
        return {"reason": body["why"], **{k: v for k, v in body.items() if k != "why"}}

    monkeypatch.setattr(codec, "VERSIONS", {"ended": 2})
    monkeypatch.setattr(codec, "UPCASTERS", {("ended", 1): rename})
    assert decode_event({"type": "ended", "v": 1, "why": "done"}) == ev.Ended(reason="done")
    assert encode_event(ev.Ended(reason="done"))["v"] == 2
    monkeypatch.setattr(codec, "UPCASTERS", {})
    with pytest.raises(CodecError, match="too old"):
        decode_event({"type": "ended", "v": 1, "why": "done"})


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}\.cpp", fullmatch=True), st.text(), min_size=1))
def test_a_program_survives_its_canonical_form(sources: dict[str, str]) -> None:
    file = next(iter(sources))
    program = Program(sources, f"{file}::run", "cpp")
    assert decode_program(program.canonical) == program


def test_a_stored_program_that_is_none_is_refused() -> None:
    for data in (b"\xff", b"[]", b'{"sources":{"a":"x"},"entry_point":"b::run","language":"cpp"}'):
        with pytest.raises(CodecError):
            decode_program(data)


def test_numbers_are_written_even_at_their_defaults_so_that_new_defaults_cannot_change_an_old_run() -> None:
    written = encode_event(ev.RunStarted(config=SearchConfig()))["config"]
    assert written["stagnation"] == 7
    assert written["budget"] == {"evaluations": 120}
