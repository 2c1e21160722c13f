"""Settings: defaults < file < environment < flags, each with its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksearch import config
from ksearch.errors import ConfigError
from tests.cli.shell import Shell


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ksearch.toml"
    path.write_text('model = "command:cat"\nevaluations = 7\nwidth = 2\nusd = 3\nstore = "x.db"\n')
    return path


def test_flag_beats_environment_beats_file_beats_default(file: Path) -> None:
    env = {"KSEARCH_EVALUATIONS": "8", "KSEARCH_USD": "0.5", "KSEARCH_TASK": "12"}
    loaded = config.load({"evaluations": 9, "tokens": None}, env, file)
    made = loaded.config
    assert (made.evaluations, made.usd, made.width, made.stagnation, made.task) == (9, 0.5, 2, 7, "12")
    assert {name: loaded.origins[name] for name in ("evaluations", "usd", "width", "stagnation", "tokens")} == {
        "evaluations": "flag --evaluations",
        "usd": "environment KSEARCH_USD",
        "width": f"file {file}",
        "stagnation": "default",
        "tokens": "default",
    }


def test_what_the_log_keeps_gives_the_same_settings_back(file: Path) -> None:
    loaded = config.load({"minutes": 1.5}, {}, file)
    back = config.recorded(loaded.context())
    assert back
    assert (back.config, back.origins) == (loaded.config, loaded.origins)
    assert back.config.search.budget.seconds == 90


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("evaluatons = 3", "ksearch.toml: unknown key 'evaluatons'. Did you mean 'evaluations'"),
        (
            'evaluations = "3"',
            r"file .*ksearch.toml: evaluations = '3' cannot be used: input should be a valid integer",
        ),
        ("evaluations = true", "evaluations = True cannot be used"),
        ("usd = nan", "usd = nan cannot be used"),
        ("width = 0", "width = 0 cannot be used: .* greater than or equal to 1"),
        ("width = [", "ksearch.toml is not TOML: "),
    ],
)
def test_mistake_in_the_file_is_named_by_file_key_and_value(file: Path, text: str, says: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        config.load({}, {}, file)


def test_mistake_in_the_environment_is_named_and_a_misspelt_variable_noted() -> None:
    with pytest.raises(ConfigError, match="environment KSEARCH_TOKENS: tokens = 'many' cannot be used"):
        config.load({}, {"KSEARCH_TOKENS": "many"})
    with pytest.raises(ConfigError, match="no-such.toml cannot be read"):
        config.load({}, {"KSEARCH_CONFIG": "no-such.toml"})
    notes = config.load({}, {"KSEARCH_EVALUATION": "3", "KSEARCH_TEST_POSTGRES_URL": "x"}).notes
    assert notes == ("KSEARCH_EVALUATION is not a setting and was not used; did you mean KSEARCH_EVALUATIONS?",)


def test_run_shows_where_each_setting_came_from(shell: Shell) -> None:
    (shell.folder / "ksearch.toml").write_text('stagnation = 4\nstore = "elsewhere.db"\n')
    shell("new", "--name", "a", "--evaluations", "3", KSEARCH_STORE="", KSEARCH_WIDTH="2")
    assert (shell.folder / "elsewhere.db").exists()
    out = shell("show", "a", "--config", "--store", "elsewhere.db")
    assert "evaluations = 3  (flag --evaluations)" in out
    assert "width = 2  (environment KSEARCH_WIDTH)" in out
    assert "stagnation = 4  (file ksearch.toml)" in out
    assert "max_retries = 3  (default)" in out
    shown = shell.json("show", "a", "--config", "--store", "elsewhere.db")
    assert shown["config"]["stagnation"] == {"value": 4, "origin": "file ksearch.toml"}
    (shell.folder / "ksearch.toml").write_text("store = 3\n")
    assert "store = 3" in shell.fails("runs", code=2, KSEARCH_STORE="")
