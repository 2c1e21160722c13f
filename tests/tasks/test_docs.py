"""docs/tasks.md is true: its example is a task, and its tables name the keys that exist."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from ksearch.definition import Limits
from ksearch.lint import Status, lint
from ksearch.tasks import bundled_tasks, load_task

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
BLOCKS = re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def example(tmp_path):
    for name, text in BLOCKS:
        (tmp_path / name).write_text(text)
    return load_task(tmp_path)


def test_the_example_is_a_task_that_passes_lint(example):
    assert example.name == "row_norm"
    report = lint(example)
    assert report.ok, str(report)
    assert sum(row.status is Status.OK for row in report.rows) >= 12


def test_every_key_that_is_read_is_on_the_page(example):
    keys = ["format", "name", "title", "description", "languages", "entry_point", "precision", "mean", "threads"]
    keys += ["forbid", "dtype", "shape", "mutable", "bytes_moved", "operations", "timed", "multiple_of", "values"]
    keys += [f.name for f in fields(Limits)]
    for key in keys:
        assert f"`{key}" in PAGE or f" {key} = " in PAGE, key


def test_bundled_tasks_are_on_the_page():
    for name in bundled_tasks():
        assert f"`{name}`" in PAGE
