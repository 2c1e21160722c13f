"""A writer's reply: the source as it is, or a refusal with its reason. Never prose, a half, or a choice of ours."""

from __future__ import annotations

import ast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ksearch.protocol import Refusal
from ksearch.replies import canonical_source, decode, parse_program, render_program
from ksearch.types import Program, Verdict

RUN = 'extern "C" void run(const float* a, float* b, long n) {\n  for (long i = 0; i < n; ++i) b[i] = a[i];\n}\n'
NL = "\n"
PY = "def run(a):\n    return a\n"


def parse(text: str, *languages: str, entry: str = "run", finish: str | None = None) -> Program | Refusal:
    return parse_program(text, languages=languages or ("cpp",), entry_point=entry, finish=finish)


def program_of(text: str, *languages: str, entry: str = "run") -> Program:
    reply = parse(text, *languages, entry=entry)
    assert isinstance(reply, Program), reply
    return reply


def refusal_of(text: str, *languages: str, finish: str | None = None) -> Refusal:
    reply = parse(text, *languages, finish=finish)
    assert isinstance(reply, Refusal), reply
    assert reply.reason
    return reply


def fenced(body: str, tag: str = "cpp", fence: str = "```") -> str:
    return f"{fence}{tag}\n{body}{fence}\n"


class TestOneBlock:
    @pytest.mark.parametrize("tag", ["cpp", "c++", "C++", "cxx", "c", ""])
    def test_is_taken_whatever_its_tag_is_called(self, tag: str) -> None:
        program = program_of(f"Here it is.\n\n{fenced(RUN, tag)}\nIt is fast.")
        assert program == Program({"kernel.cpp": RUN}, "kernel.cpp::run", "cpp")

    def test_takes_the_file_name_of_the_entry_point(self) -> None:
        assert program_of(fenced(RUN), entry="copy.cc::run").entry_point == "copy.cc::run"

    def test_may_be_fenced_by_tildes_or_more_backticks(self) -> None:
        for fence in ("~~~", "````", "~~~~~"):
            assert program_of(fenced(RUN, fence=fence)).sources["kernel.cpp"] == RUN

    def test_of_crlf_text_loses_only_the_carriage_returns(self) -> None:
        program = program_of(fenced(PY, "python").replace("\n", "\r\n"), "python")
        assert program.sources == {"kernel.py": PY}

    def test_keeps_hex_floats_tabs_and_trailing_blanks(self) -> None:
        source = '\n\n\tconst double k = 0x1.26bb1bbbb55516p+1;  \n#include "x"\n' + RUN + "\n\n"
        assert program_of(fenced(source)).sources["kernel.cpp"] == source

    def test_after_reasoning_with_drafts_is_the_only_one_that_counts(self) -> None:
        draft = fenced(RUN.replace("b[i]", "b[0]"))
        assert program_of(f"<think>\nperhaps\n{draft}\n</think>\n{fenced(RUN)}").sources["kernel.cpp"] == RUN

    def test_beside_a_plan_an_example_and_output_is_found(self) -> None:
        text = f"```\n1. copy\n2. don't stop\n```\n{fenced(RUN)}```cpp\nrun(a, b, 10);\n```\n```text\nok\n```\n"
        assert program_of(text).sources == {"kernel.cpp": RUN}

    def test_repeated_word_for_word_is_one_program(self) -> None:
        assert program_of(fenced(RUN) + "Again:\n" + fenced(RUN)).sources == {"kernel.cpp": RUN}

    def test_with_preprocessor_branches_and_odd_macros_is_not_misread(self) -> None:
        source = (
            "#if defined(__AVX512F__)\nvoid run(int n) {\n#else\nvoid run(long n) {\n#endif\n"
            "#error don't \"do\n#define OPEN {\n// don't {\n}\n"
        )
        assert program_of(fenced(source)).sources["kernel.cpp"] == source


class TestFencesInsideCode:
    @pytest.mark.parametrize(
        "source",
        [
            f'def helper():\n    """Usage:\n```python\nhelper()\n```\n    """\n\n{PY}',
            f"TEXT = '''\n```\nnested\n```\n'''\n{PY}",
            f"{PY}\nDOC = r'''\n```\n'''\n",
            f'def run(a):\n    """```\n```"""\n    return a\n',  # noqa: F541
        ],
    )
    @pytest.mark.parametrize("tag", ["python", ""])
    def test_do_not_cut_a_docstring(self, source: str, tag: str) -> None:
        ast.parse(source)
        assert program_of(fenced(source, tag) + "Explanation.\n", "python").sources == {"kernel.py": source}

    @pytest.mark.parametrize(
        "head", ["/*\n```\nexample\n```\n*/\n", 'auto text = R"x(\n```cpp\nvoid run(int) {}\n```\n)x";\n', "// ```\n"]
    )
    def test_do_not_cut_a_comment_or_raw_string(self, head: str) -> None:
        text = fenced(head + RUN) + "\nAnd an example:\n```cpp\nrun(a, b, 1);\n```\n"
        assert program_of(text).sources == {"kernel.cpp": head + RUN}

    def test_count_only_at_the_start_of_a_line(self) -> None:
        source = RUN + "//   ```\n  // ~~~\n"
        assert program_of(fenced(source)).sources == {"kernel.cpp": source}
        assert isinstance(parse("  " + fenced(RUN)), Refusal)  # an indented fence opens nothing


class TestSeveralFiles:
    HEADER = "#pragma once\nvoid copy(const float*, float*, long);\n"

    def test_are_named_by_a_line_before_each_fence(self) -> None:
        text = f"FILE: src/copy.h\n{fenced(self.HEADER)}\nFILE: main.cpp\n\n{fenced(RUN)}"
        program = program_of(text)
        assert program.sources == {"src/copy.h": self.HEADER, "main.cpp": RUN}
        assert program.entry_point == "main.cpp::run"

    @pytest.mark.parametrize("line", ["**FILE: a.cpp**", "### FILE: `a.cpp`", "FILE:a.cpp  ", "> FILE: a.cpp"])
    def test_may_have_their_names_set_off(self, line: str) -> None:
        assert set(program_of(f"{line}\n{fenced(RUN)}").sources) == {"a.cpp"}

    def test_may_be_named_behind_the_tag(self) -> None:
        assert set(program_of(fenced(RUN, "cpp a.cpp")).sources) == {"a.cpp"}

    @pytest.mark.parametrize(
        "name",
        [
            "../k.cpp",
            "/etc/k.cpp",
            "a/../k.cpp",
            "a//k.cpp",
            "./k.cpp",
            "C:\\k.cpp",
            "a\\k.cpp",
            ".k.cpp",
            "k|k.cpp",
            "~/k.cpp",
            "$HOME/k.cpp",
            "k.cpp;rm",
            "-k.cpp",
            "\u202ek.cpp",
        ],
    )
    def test_with_names_that_leave_the_folder_are_refused(self, name: str) -> None:
        assert "file name" in refusal_of(f"FILE: {name}\n{fenced(RUN)}").reason

    @pytest.mark.parametrize("name", ["Makefile", "k.py", "k.rs", "k"])
    def test_of_another_kind_are_refused(self, name: str) -> None:
        assert name in refusal_of(f"FILE: {name}\n{fenced(RUN)}").reason

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (f"FILE: a.cpp\n{fenced(RUN)}FILE: b.cpp\n{fenced(RUN)}", "2 files define 'run'"),
            (f"FILE: a.cpp\n{fenced(RUN)}FILE: a.cpp\n{fenced(RUN + '//' + NL)}", "two different versions of a.cpp"),
            (f"FILE: a.cpp\n{fenced(RUN)}or\n{fenced(RUN + '// 2' + NL)}", "also defines"),
            (f"FILE: a.cpp\n{fenced('int x;' + NL)}", "no file defines 'run'"),
            (
                f"FILE: a.h\n{fenced('void f() {' + NL)}FILE: a.cpp\n{fenced(RUN)}",
                "a.h is no whole source: line 1",
            ),
            (f"FILE: a.cpp\n{fenced(RUN, 'cpp b.cpp')}", "two names"),
            (f"FILE: a.cpp\n{fenced(RUN, 'rust')}", "tagged 'rust'"),
            (f"FILE: a.cpp\n{fenced(RUN, 'diff')}", "tagged 'diff'"),
            (f"FILE: a.h\n{fenced('')}FILE: a.h/b.cpp\n{fenced(RUN)}", "lies under another file"),
        ],
    )
    def test_that_contradict_each_other_are_refused(self, text: str, says: str) -> None:
        assert says in refusal_of(text).reason

    def test_of_two_languages_are_refused(self) -> None:
        text = f"FILE: k.py\n{fenced('x = 1' + NL, 'python')}FILE: k.cpp\n{fenced(RUN)}"
        assert "k.py is no cpp source" in refusal_of(text, "cpp", "python").reason


class TestLanguages:
    def test_the_first_allowed_one_that_fits_the_tag_is_meant(self) -> None:
        assert program_of(fenced(PY, "python"), "cpp", "python").language == "python"
        assert program_of(fenced(PY, "python"), "triton").language == "triton"
        assert program_of(fenced(PY, "python"), "triton", "python").language == "python"
        assert program_of(fenced(PY, "triton"), "python", "triton").language == "triton"
        assert program_of(fenced(RUN), "cuda").entry_point == "kernel.cu::run"
        assert program_of(fenced(RUN, "cuda"), "cpp", "cuda").language == "cuda"

    def test_the_wrong_one_is_refused_by_name(self) -> None:
        assert "the code is rust, asked for was cpp" in refusal_of(fenced("fn run() {}\n", "rust")).reason
        assert "the code is python" in refusal_of(fenced(PY, "python")).reason

    def test_an_unknown_one_is_the_callers_mistake(self) -> None:
        with pytest.raises(ValueError, match="no language 'cobol'"):
            parse(fenced(RUN), "cobol")


class TestRefusals:
    def test_two_drafts_are_ambiguous(self) -> None:
        reason = refusal_of(f"{fenced(RUN)}Better:\n{fenced(RUN.replace('++i', 'i++'))}").reason
        assert "2 different blocks define 'run' (lines 1, 7)" in reason

    def test_code_in_two_allowed_languages_is_ambiguous(self) -> None:
        assert "2 different blocks" in refusal_of(fenced(RUN) + fenced(PY, "python"), "cpp", "python").reason

    @pytest.mark.parametrize(
        "text",
        [
            "```cpp\n" + RUN,
            "```cpp\n" + RUN[:30],
            f"{fenced(RUN)}Now the fast one:\n```cpp\n{RUN[:40]}",
            "```cpp\n" + RUN + "  ```\n",  # the closing fence is indented
            "```cpp\n" + RUN.rstrip() + "```",
            "````cpp\n" + RUN + "```\n",
            f"FILE: a.cpp\n{fenced(RUN)}FILE: b.h\n```cpp\nint",
            "",
            "<think>tile it",
        ],
    )
    def test_a_reply_that_breaks_off_is_truncated(self, text: str) -> None:
        assert refusal_of(text).verdict is Verdict.TRUNCATED

    def test_a_stray_fence_at_the_end_is_not(self) -> None:
        assert program_of(fenced(RUN) + "```\n").sources == {"kernel.cpp": RUN}

    def test_a_whole_program_at_the_output_limit_is_truncated_all_the_same(self) -> None:
        assert refusal_of(fenced(RUN), finish="length").verdict is Verdict.TRUNCATED

    @pytest.mark.parametrize("text", ["I can't help with that.", "I’m sorry, no.", "As an AI, I must decline."])
    def test_a_refusal_is_refused(self, text: str) -> None:
        assert refusal_of(text, finish="stop").verdict is Verdict.REFUSED

    @pytest.mark.parametrize(
        ("text", "languages", "says"),
        [
            ("Use tiling.", ("cpp",), "no code block"),
            ("Use tiling.", ("python",), "no code block"),
            (fenced("step 1\n", "text"), ("cpp",), "no block of code"),
            (fenced("int x = 1;\n"), ("cpp",), "no block defines 'run'"),
            (fenced("void run(int);\nint y = run2(run(1));\n"), ("cpp",), "no block defines 'run'"),
            (fenced("// void run(int) {}\n"), ("cpp",), "no block defines 'run'"),
            (fenced("void run(int n) {\n"), ("cpp",), "line 1: this '{' is never closed"),
            (fenced("void run(int n) { /*\n"), ("cpp",), "this comment never ends"),
            (fenced("def run(a:\n", "python"), ("python",), "line 1"),
            (fenced("def run(a:\n", ""), ("python",), "no whole source"),
            (fenced("import x.run as run2\n", "python"), ("python",), "no block defines"),
            (fenced("Here is how to run it: f(x) (and so on)\n"), ("cpp",), "no block defines"),
            (fenced(RUN + "\0"), ("cpp",), "NUL"),
            (fenced(RUN) + "x" * 5_000_000, ("cpp",), "at most"),
            ("```\n" * 1000, ("cpp",), "fence lines"),
            ('{"program": "void run() {}"}', ("cpp",), "no code block"),
            ("Here you are:\n" + RUN, ("cpp",), "no code block"),
            (RUN + "\nI hope this helps!", ("cpp",), "no code block"),
            (PY + "\nI hope this helps!", ("python",), "no code block"),
            ("FILE: kernel.cpp\n" + RUN, ("cpp",), "no code block"),
        ],
    )
    def test_what_is_no_program_has_its_reason(self, text: str, languages: tuple[str, ...], says: str) -> None:
        refusal = refusal_of(text, *languages)
        assert says in refusal.reason
        assert refusal.verdict is Verdict.UNPARSABLE


@given(st.binary())
def test_any_bytes_at_all_give_a_program_or_a_refusal(raw: bytes) -> None:
    assert isinstance(parse(decode(raw), "cpp"), Program | Refusal)


def test_bytes_that_are_no_utf8_are_refused_by_line() -> None:
    assert "line 2 holds a byte that is not valid UTF-8" in refusal_of(decode(b"```cpp\n\xff\n```\n")).reason


class TestNoFence:
    def test_code_and_nothing_else_is_taken(self) -> None:
        assert program_of(PY, "python").sources == {"kernel.py": PY}
        assert program_of("#include <cmath>\n" + RUN).sources == {"kernel.cpp": "#include <cmath>\n" + RUN}


@pytest.mark.timeout(120)  # quadratic work would take hours
@pytest.mark.parametrize("language", ["cpp", "python"])
@pytest.mark.parametrize(
    "flood",
    [
        "x" * 5_000_000,
        "(" * 290_000,
        "run(" * 70_000,
        "-" * 290_000,
        ("```python\n'''\n" * 140) + "a\n" * 1000,
        ("```cpp\n/*\n" * 149) + "a\n" * 140_000 + "```\n" * 150,
        "```cpp\n" + "#" * 280_000 + "\n```\n",
        "```\n" + "run '" * 55_000 + "\n```\n",
    ],
    ids=lambda flood: repr(flood[:12]),
)
def test_floods_are_refused_without_quadratic_work(flood: str, language: str) -> None:
    refusal_of(flood, language)


fences = st.sampled_from(["```", "```cpp\n", "~~~\n", "\n", "\r\n", "FILE: a.cpp\n", "`", "```python\n", "\n```\n"])
marks = st.sampled_from(["/*", "*/", '"""', "'", '"', 'R"(', ")", "{", "}", "#if\n", "\\", "\0", "\ud800", "\u2028"])
words = st.sampled_from([RUN, PY, "run(", "<think>", "</think>\n", "I can't ", "é", "\x0c"])
pieces = fences | marks | words


@given(st.text() | st.lists(pieces, max_size=12).map("".join), st.sampled_from(["cpp", "python", "cuda", "triton"]))
def test_any_text_at_all_gives_a_program_or_a_refusal(text: str, language: str) -> None:
    reply = parse(text, language, "python", "cpp")
    assert isinstance(reply, Program | Refusal)


@given(st.lists(pieces, max_size=12).map("".join))
def test_every_line_of_a_program_is_a_line_of_the_reply(text: str) -> None:
    reply = parse(text, "cpp", "python")
    if isinstance(reply, Program):
        for source in reply.sources.values():
            assert source.strip("\n") in text.replace("\r\n", "\n").replace("\r", "\n")


readable = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
marked = st.lists(
    st.sampled_from(["```", "````\n", "\n```\n", "~~~\n", "\r\n", "FILE: x.cpp\n", "`"]) | readable, max_size=6
)


@given(marked.map("".join), st.sampled_from(["/*{}*/", 'R"k({})k";', "//{}"]))
def test_cpp_with_anything_in_a_comment_or_string_is_read_back_identically(text: str, around: str) -> None:
    text = canonical_source(text)[:-1] if "\n" in canonical_source(text) and around != "//{}" else text.split("\n")[0]
    assume("*/" not in text and ')k"' not in text and not (around == "//{}" and ("\r" in text or text.endswith("\\"))))
    source = canonical_source(around.replace("{}", text.replace("\r", "")) + "\n" + RUN)
    program = Program({"a.cpp": source, "b/c.h": "\n"}, "a.cpp::run", "cpp")
    assert program_of(f"Thus:\n{render_program(program)}\nDone.") == program


@given(marked.map("".join))
def test_python_with_anything_in_a_docstring_is_read_back_identically(text: str) -> None:
    source = canonical_source("r'''" + text + "'''\n" + PY)
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        assume(False)
    program = Program({"k.py": source, "empty.py": ""}, "k.py::run", "python")
    assert program_of(render_program(program), "python") == program
