from __future__ import annotations

import tomllib

import pytest

from ksearch.tasks.toml_lines import index_lines, line_of

TEXT = '''\
# comment with [brackets] and a = b
title = "x"  # [not.a.table]
note = """
[not.a.table]
key = 1
"""
other = \'\'\'one line\'\'\'
[plain]
"quoted key" = 1
dotted.key = 2
inline = { a = 1, b = 2 }
[plain.inner]
c = 3
[[list]]
name = "first"
[[list]]
name = "second"
[list.sub]
d = 4
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("note",), 3),
        (("other",), 7),
        (("plain",), 8),
        (("plain", "quoted key"), 9),
        (("plain", "dotted", "key"), 10),
        (("plain", "inline"), 11),
        (("plain", "inline", "b"), 11),
        (("plain", "inner", "c"), 13),
        (("plain", "absent"), 8),
        (("list", 0, "name"), 15),
        (("list", 1, "name"), 17),
        (("list", 1, "sub", "d"), 19),
        (("list",), 14),
        (("nowhere",), None),
        ((), None),
    ],
)
def test_a_key_is_found_on_its_line(path, line):
    tomllib.loads(TEXT)
    assert line_of(index_lines(TEXT), path) == line
