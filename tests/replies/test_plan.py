"""A planner's reply: the one valid object is taken; everything else is refused with its place and cure."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksearch.protocol import Plan, Refusal
from ksearch.replies import parse_plan, plan_schema
from ksearch.replies.plan import MAX_EDITS
from ksearch.types import Action, Insert, Prune, Update, Verdict

KNOWN = ("root", "n1", "n2")
INSERT = {"op": "insert", "parent": "root", "title": "Tile the loops"}
GOOD = json.dumps({"assessment": "ok", "edits": [INSERT]})


def plan_of(text: str, **kwargs: object) -> Plan:
    reply = parse_plan(text, KNOWN, **kwargs)  # type: ignore[arg-type]
    assert isinstance(reply, Plan), reply
    return reply


def refusal_of(text: str, **kwargs: object) -> Refusal:
    reply = parse_plan(text, KNOWN, **kwargs)  # type: ignore[arg-type]
    assert isinstance(reply, Refusal), reply
    assert reply.reason
    return reply


def edit(**changes: object) -> str:
    return json.dumps({"edits": [INSERT | changes]})


def test_every_key_reaches_the_typed_plan() -> None:
    text = json.dumps(
        {
            "assessment": "as predicted",
            "edits": [
                INSERT
                | {"name": "a", "rationale": "cache", "difficulty": 2, "value": 1, "predicted_speedup": 1.5}
                | {"workloads": ["w1"], "enabling": True},
                {"op": "insert", "parent": "a", "title": "child"},
                {"op": "update", "node": "n1", "value": 0.25, "difficulty": 5, "notes": "hard"},
                {"op": "prune", "node": "n2", "reason": "done"},
            ],
        }
    )
    assert plan_of(text) == Plan(
        (
            Insert("root", Action("Tile the loops", "cache", 2, 1.5, ("w1",), True), 1.0, "a"),
            Insert("a", Action("child")),
            Update("n1", 0.25, 5, "hard"),
            Prune("n2", "done"),
        ),
        "as predicted",
    )


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f"Let S = {{x : x > 0}} and f() {{ return; }}.\n\n```json\n{GOOD}\n```\nThat is all.",
        f"I would tile, then:\n{GOOD}",
        f'<think>maybe {{"edits": []}}?</think>\n{GOOD}',
        f"so the plan is easy\n</think>\n{GOOD}",
        f"{GOOD}\nAgain, the same:\n```json\n{GOOD}\n```",
        "\ufeff" + GOOD.replace(": [", ":\r\n ["),
        f"~~~json\n{GOOD}\n~~~",
        f"```json\n{GOOD}",
        f"```cpp\nstruct S {{}};\n```\n{GOOD}",
    ],
)
def test_the_one_valid_object_is_found_wherever_it_stands(text: str) -> None:
    assert plan_of(text) == Plan((Insert("root", Action("Tile the loops")),), "ok")


def test_an_empty_list_of_edits_is_a_plan() -> None:
    assert plan_of('{"edits": []}') == Plan()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"edits": [{"op": "insert", "parent": "root", "title": "t"},]}', "line 1, column 60: a comma before"),
        ('{"edits": [],}', "trailing commas"),
        ('{"edits": [] // none\n}', "column 14: JSON has no comments"),
        ('{"edits": [] /* none */}', "JSON has no comments"),
        ('{\n"edits": [] # none\n}', "line 2, column 13: JSON has no comments"),
        ("{'edits': []}", "double quotes"),
        ("{edits: []}", "'edits' must stand in double quotes"),
        ('{"edits": None}', "None is Python"),
        ('{"edits": [], "assessment": "a\nb"}', "raw line break"),
        ('{"edits": [], "edits": []}', "'edits' occurs twice"),
        ('{"edits": [{"op": "prune", "op": "prune", "node": "n1"}]}', "'op' occurs twice"),
        ('{"edits": [{"op": "update", "node": "n1", "value": NaN}]}', "NaN is not JSON"),
        ('{"edits": [{"op": "update", "node": "n1", "value": -Infinity}]}', "-Infinity is not JSON"),
        ('{"edits": [{"op": "update", "node": "n1", "value": 1e999}]}', "out of range"),
        ('{"edits": [{"op": "update", "node": "n1", "difficulty": ' + "9" * 5000 + "}]}", "out of range"),
        ('{"edits": [], "assessment": "\\ud800"}', "surrogate"),
        ('{"edits": [], "assessment": "a\\u0000"}', "NUL"),
        ('{"edits": [{"op": "drop", "node": "n1"}]}', 'edits[0].op: must be "insert", "update" or "prune"'),
        ('{"edits": [{"node": "n1"}]}', "edits[0].op"),
        ('{"edits": [null]}', "edits[0]"),
        ('{"edits": {}}', "edits"),
        ('{"assessment": "x"}', "edits: the key is missing"),
        ('{"edits": [], "plan": 1}', "plan: unknown key"),
        (edit(priority=1), "edits[0].priority: unknown key; insert has op, parent"),
        (edit(value="0.5"), "edits[0].value: must be a number without quotes, got '0.5'"),
        (edit(value=True), "edits[0].value"),
        (edit(value=1.5), "edits[0].value"),
        (edit(difficulty=2.5), "edits[0].difficulty: must be a whole number"),
        (edit(difficulty=True), "edits[0].difficulty"),
        (edit(difficulty=6), "edits[0].difficulty"),
        (edit(predicted_speedup=-1), "edits[0].predicted_speedup"),
        (edit(enabling="yes"), "edits[0].enabling"),
        (edit(workloads="w1"), "edits[0].workloads"),
        (edit(title="  "), "edits[0].title: must not be blank"),
        (edit(title="x" * 301), "edits[0].title"),
        (edit(parent="n9"), "edits[0].parent: 'n9' is no node of the tree, nor the name of an insert before it"),
        (edit(name="n1"), "'n1' is taken"),
        (edit(name="no spaces"), "edits[0].name"),
        ('{"edits": [{"op": "update", "node": "n9", "value": 1}]}', "there are: root, n1, n2"),
        ('{"edits": [{"op": "update", "node": "n1"}]}', "at least one of"),
        ('{"edits": [{"op": "prune", "node": "n9"}]}', "edits[0].node"),
        (json.dumps({"edits": [INSERT] * (MAX_EDITS + 1)}), "edits"),
        ('{"edits": [' + "[" * 100_000 + "]" * 50_000, "deeply"),
    ],
)
def test_what_is_wrong_is_refused_with_place_and_cure(text: str, says: str) -> None:
    refusal = refusal_of(text)
    assert says in refusal.reason
    assert refusal.verdict in (Verdict.UNPARSABLE, Verdict.TRUNCATED)


def test_a_child_may_not_come_before_its_parent() -> None:
    edits = [INSERT | {"parent": "a"}, INSERT | {"name": "a"}]
    assert "'a' is no node" in refusal_of(json.dumps({"edits": edits})).reason


@pytest.mark.parametrize(
    "text",
    [
        f'{{"plan": {GOOD},}}',  # a trailing comma outside
        f'{{"ops": [{GOOD},]}}',
        f'{{"plan": {GOOD}',  # the outer one is cut off
        f'{{"plan": {GOOD} // comment\n}}',
        f"{{plan: {GOOD}}}",
        f'{{"draft":\n```json\n{GOOD}\n```\n}}',  # even when the inner one stands in a fence
        f'{{"draft":\n```json\n{GOOD}\n```\n',
        f'{{"plan": {GOOD}}}',  # sound, but not the form
    ],
)
def test_an_object_inside_another_is_never_the_plan(text: str) -> None:
    refusal_of(text)


def test_two_different_plans_are_ambiguous() -> None:
    for other in ('{"edits": []}', "```json\n" + edit(title="Other") + "\n```"):
        assert "2 different plans" in refusal_of(f"{GOOD}\nor\n{other}").reason


def test_a_broken_draft_before_a_sound_plan_does_not_matter() -> None:
    assert len(plan_of(f'```json\n{{"edits": [,]}}\n```\nCorrected:\n```json\n{GOOD}\n```').edits) == 1


@pytest.mark.parametrize(
    ("text", "finish", "verdict"),
    [
        ("", None, Verdict.TRUNCATED),
        (" \n\n", "stop", Verdict.TRUNCATED),
        ("<think>I wonder", None, Verdict.TRUNCATED),
        ("<think>I wonder</think>\n", None, Verdict.TRUNCATED),
        (GOOD, "length", Verdict.TRUNCATED),
        (GOOD[:40], None, Verdict.TRUNCATED),
        (f"```json\n{GOOD[:40]}", None, Verdict.TRUNCATED),
        (GOOD, "error", Verdict.TRUNCATED),
        (GOOD, "content_filter", Verdict.REFUSED),
        ("I'm sorry, but I can't help with that.", "stop", Verdict.REFUSED),
        ("I cannot assist.", None, Verdict.REFUSED),
        ("The tree looks fine to me.", None, Verdict.UNPARSABLE),
        ("[]", None, Verdict.UNPARSABLE),
        ("je ne sais pas", None, Verdict.UNPARSABLE),
        (GOOD + "\0", None, Verdict.UNPARSABLE),
        (b"\xff{}".decode("utf-8", "surrogateescape"), None, Verdict.UNPARSABLE),
    ],
)
def test_replies_without_a_plan_have_their_verdict(text: str, finish: str | None, verdict: Verdict) -> None:
    assert refusal_of(text, finish=finish).verdict is verdict


def test_workloads_are_checked_where_they_are_known() -> None:
    text = edit(workloads=["w2"])
    assert plan_of(text).edits
    assert "no workload 'w2'; there are: w1" in refusal_of(text, known_workloads=["w1"]).reason


@pytest.mark.timeout(60)  # quadratic work would take hours; each of these takes well under a second
@pytest.mark.parametrize(
    "flood",
    [
        "x" * 5_000_000,
        "{" * 200_000,
        '{"' * 100_000,
        "{}" * 100_000,
        '{"a":' * 40_000,
        "```\n" * 50_000,
        '\\"' * 100_000,
        "{ x " * 50_000,
        '{"edits":[' * 20_000,
    ],
    ids=lambda flood: flood[:6],
)
def test_floods_are_refused_without_quadratic_work(flood: str) -> None:
    refusal_of(flood)


@given(st.text() | st.text(alphabet='{}[]":,`~\n\\ edits').map(lambda t: t + GOOD))
def test_any_text_at_all_gives_a_plan_or_a_refusal(text: str) -> None:
    assert isinstance(parse_plan(text, KNOWN), Plan | Refusal)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from(["insert", "n1", "prune"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["op", "edits", "node", "parent", "title", "value"]), inner, max_size=4)
        ),
    )
)
def test_any_json_at_all_gives_a_plan_or_a_refusal(value: object) -> None:
    assert isinstance(parse_plan(json.dumps(value), KNOWN), Plan | Refusal)


titles = st.text(min_size=1, max_size=40).filter(
    lambda t: bool(t.strip()) and "\0" not in t and not any("\ud800" <= c <= "\udfff" for c in t)
)


@given(
    st.lists(st.tuples(titles, st.floats(0, 1), st.integers(1, 5)), max_size=4),
    st.sampled_from(["{}", "```json\n{}\n```", "Thus:\n{}", "```\n{}\n```\nDone."]),
    st.booleans(),
)
def test_a_plan_written_as_json_is_read_back_identically(
    inserts: list[tuple[str, float, int]], around: str, ascii_only: bool
) -> None:
    edits = [INSERT | {"title": t, "value": v, "difficulty": d} for t, v, d in inserts]
    text = around.replace("{}", json.dumps({"edits": edits}, ensure_ascii=ascii_only))
    expected = tuple(Insert("root", Action(t, difficulty=d), v) for t, v, d in inserts)
    assert plan_of(text) == Plan(expected)


def test_the_schema_names_the_three_edits_and_forbids_other_keys() -> None:
    schema = plan_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["$defs"]) == {"InsertReply", "UpdateReply", "PruneReply"}
    insert = schema["$defs"]["InsertReply"]
    assert {"title", "parent", "op"} <= set(insert["properties"])
    assert set(insert["required"]) == {"op", "parent", "title"}


def test_the_schema_holds_no_limit_that_grammars_of_local_models_choke_on() -> None:
    text = json.dumps(plan_schema())
    assert "maxLength" not in text
    assert "maxItems" not in text
    assert "discriminator" not in text
