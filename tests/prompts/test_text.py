from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from ksearch.prompts.text import cell, clip, ends, fenced, head, one_line, quoted, tail, visible
from tests.prompts.markdown import headings

HOSTILE = st.text(alphabet=st.sampled_from('`~#{}|"\\\n\r\t\x00\x1b\u2028\u202e\ud800ab é漢')) | st.text()
SHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ud800-\udfff]")


@given(HOSTILE)
def test_a_fenced_text_cannot_leave_its_fence(text: str) -> None:
    block = fenced(text, "cpp")
    assert headings(f"{block}\n# after") == ["# after"]
    assert not SHOWN.search(block)


@given(HOSTILE, st.integers(1, 200))
def test_one_line_is_one_short_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1
    assert not SHOWN.search(line)


@given(HOSTILE)
def test_quotes_and_cells_cannot_be_left(text: str) -> None:
    assert quoted(text).count('"') == 2
    assert "|" not in cell(text)


@given(st.text(alphabet="ab\n", max_size=400), st.integers(0, 300))
def test_cuts_keep_to_their_limit_and_say_that_they_cut(text: str, limit: int) -> None:
    for cut in (head, tail, ends):
        shown = cut(text, limit)
        assert len(shown) <= limit
        assert shown in ("", text) or "[" in shown
    assert len(clip(text, limit)) <= limit


def test_head_keeps_the_start_tail_the_end_and_ends_both() -> None:
    text = "\n".join(f"line {i}" for i in range(100))
    assert head(text, 200).startswith("line 0\n")
    assert tail(text, 200).endswith("line 99")
    both = ends(text, 200)
    assert both.startswith("line 0\n")
    assert both.endswith("line 99")


def test_what_cannot_be_seen_is_written_out() -> None:
    assert visible("a\x1b[31mb\u202ec\r\nd\re") == "a\\u001b[31mb\\u202ec\nd\ne"


def test_a_fence_grows_with_the_longest_run_inside() -> None:
    assert fenced("``` and ````", "text") == "`````text\n``` and ````\n`````"


def test_a_megabyte_is_handled_quickly() -> None:
    start = time.process_time()
    one_line("x" * 10**6)
    fenced("`" * 10**6)
    assert time.process_time() - start < 5  # linear: a quadratic pass would take minutes
