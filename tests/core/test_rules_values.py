"""Design 3 and the faults seen before: what is not a sound value never gets in."""

from __future__ import annotations

import math

import pytest

from ksearch.protocol import Budget, Cost, SearchConfig
from ksearch.types import Action, Evaluation, Insert, Node, Program, Ratio, Update, Verdict, WorkloadResult
from tests.core.story import pid, ratio

NOT_A_VALUE = [math.nan, math.inf, -math.inf, -0.1, 1.01, 7, True, "1", None]


@pytest.mark.parametrize("value", NOT_A_VALUE)
def test_v_is_a_finite_number_from_0_to_1(value: float) -> None:
    with pytest.raises(ValueError, match=r"value must be a finite number in \[0, 1\]"):
        Insert("root", Action("a"), value)
    with pytest.raises(ValueError, match="value"):
        Node("n1", "root", Action("a"), value)
    if value is not None:
        with pytest.raises(ValueError, match="value"):
            Update("n1", value=value)


@pytest.mark.parametrize("difficulty", [0, 6, 99, -1, 2.5, True, math.nan])
def test_difficulty_is_a_whole_number_from_1_to_5(difficulty: int) -> None:
    with pytest.raises(ValueError, match="difficulty must be 1 to 5"):
        Action("a", difficulty=difficulty)
    with pytest.raises(ValueError, match="difficulty must be 1 to 5"):
        Update("n1", difficulty=difficulty)


@pytest.mark.parametrize("predicted", [-1.0, math.nan, math.inf, 1e9])
def test_a_predicted_speedup_is_finite_and_not_negative(predicted: float) -> None:
    with pytest.raises(ValueError, match="predicted_speedup"):
        Action("a", predicted_speedup=predicted)


@pytest.mark.parametrize("title", ["", "  ", "\n"])
def test_an_action_has_a_title(title: str) -> None:
    with pytest.raises(ValueError, match="title"):
        Action(title)


@pytest.mark.parametrize(
    "numbers", [(-1, -1, -1), (1, 1.1, 1.2), (1, 0.9, 0.95), (1, 0, 2), (math.nan, 1, 1), (1, 0.5, math.inf), (0, 0, 0)]
)
def test_a_ratio_is_positive_and_lies_in_its_interval(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="ratio|low|high"):
        Ratio(*numbers)


def test_a_ratio_is_faster_only_if_its_whole_interval_is_above_1() -> None:
    assert Ratio(1.5, 1.001, 2).faster
    assert not Ratio(1.5, 1.0, 2).faster
    assert not Ratio(1.5, 0.9, 2).faster


def test_a_passing_program_has_a_speedup_and_a_time_and_a_failing_one_has_neither() -> None:
    for verdict, speedup, latency_ms in [
        (Verdict.PASSED, None, 1.0),
        (Verdict.PASSED, ratio(2), None),
        (Verdict.PASSED, None, None),
        (Verdict.TOO_FAST, ratio(2), None),
        (Verdict.TOO_FAST, None, 1.0),
        (Verdict.TOO_FAST, ratio(2), 1.0),
    ]:
        with pytest.raises(ValueError, match="exactly when passed"):
            Evaluation(pid("a"), verdict, speedup=speedup, latency_ms=latency_ms)


@pytest.mark.parametrize("latency_ms", [-1.0, math.nan, math.inf])
def test_times_are_finite_and_not_negative(latency_ms: float) -> None:
    with pytest.raises(ValueError, match="latency_ms"):
        Evaluation(pid("a"), Verdict.PASSED, speedup=ratio(2), latency_ms=latency_ms)
    with pytest.raises(ValueError, match="latency_ms"):
        WorkloadResult("w", Verdict.PASSED, latency_ms=latency_ms)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(evaluations=-1),
        lambda: Budget(tokens=-1),
        lambda: Budget(usd=math.nan),
        lambda: Budget(seconds=math.inf),
        lambda: Cost(tokens=-1),
        lambda: Cost(usd=-0.01),
        lambda: SearchConfig(stagnation=0),
        lambda: SearchConfig(width=0),
        lambda: SearchConfig(max_active=0),
        lambda: SearchConfig(max_new_nodes=0),
        lambda: SearchConfig(max_difficulty=0),
        lambda: SearchConfig(max_retries=-1),
    ],
)
def test_limits_are_sound(make: type[Budget]) -> None:
    with pytest.raises(ValueError, match="must"):
        make()


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../x", "a//x", "./x", "a\\x", "a\0x", "", "a/", "."])
def test_a_source_path_stays_inside_its_folder(path: str) -> None:
    with pytest.raises(ValueError, match="source path"):
        Program({path: "x"}, f"{path}::run", "cpp")


@pytest.mark.parametrize("entry", ["k.cpp", "k.cpp::", "other.cpp::run", "::run", ""])
def test_an_entry_point_names_a_source_and_a_function(entry: str) -> None:
    with pytest.raises(ValueError, match="entry point"):
        Program({"k.cpp": "x"}, entry, "cpp")


def test_a_program_has_a_source() -> None:
    with pytest.raises(ValueError, match="at least one source"):
        Program({}, "k.cpp::run", "cpp")


def test_the_id_of_a_program_is_a_whole_sha_256() -> None:
    assert len(pid("a")) == 64
    assert int(pid("a"), 16)


def test_programs_that_differ_anywhere_have_different_ids() -> None:
    ids = {
        Program({"a": "x", "b": "y"}, "a::run", "cpp").id,
        Program({"a": "x", "b": "y"}, "b::run", "cpp").id,
        Program({"a": "x", "b": "y"}, "a::go", "cpp").id,
        Program({"a": "x", "b": "y"}, "a::run", "cuda").id,
        Program({"a": "x\0b\0y"}, "a::run", "cpp").id,
        Program({"a": "x", "b": "y\0"}, "a::run", "cpp").id,
        Program({"a": "xb", "by": ""}, "a::run", "cpp").id,
        Program({"a": "y", "b": "x"}, "a::run", "cpp").id,
    }
    assert len(ids) == 8


def test_the_order_of_the_sources_does_not_matter() -> None:
    one, two = {"a": "x", "b": "y"}, {"b": "y", "a": "x"}
    assert Program(one, "a::run", "cpp").id == Program(two, "a::run", "cpp").id
